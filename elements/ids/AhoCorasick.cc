#include "elements/ids/AhoCorasick.hh"

#include "elements/ids/pattern_table.hh"

namespace headrace {

HEADRACE_ELEMENT(AhoCorasick)

}  // namespace headrace
