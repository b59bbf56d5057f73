#include "elements/analysis/AggregateLength.hh"

namespace headrace {

Status AggregateLength::configure(Args& args) { return args.read("IP", ip).complete(); }

}  // namespace headrace
