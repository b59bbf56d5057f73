#include "elements/analysis/AggregatePaint.hh"

#include <headrace/args.hh>

namespace headrace {

Status AggregatePaint::configure(Args& args) {
  return args.read_p("BITS", bits, Between{1, 8}).read("INCREMENTAL", incremental).complete();
}

}  // namespace headrace
