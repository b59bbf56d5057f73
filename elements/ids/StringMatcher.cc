#include "elements/ids/StringMatcher.hh"

#include "elements/ids/pattern_table.hh"

namespace headrace {

HEADRACE_ELEMENT(StringMatcher)

}  // namespace headrace
