#include "elements/ip/IPMirror.hh"

namespace headrace {

Status IPMirror::configure(Args& args) { return args.read_p("DST_ANNO", annotate).complete(); }

}  // namespace headrace
