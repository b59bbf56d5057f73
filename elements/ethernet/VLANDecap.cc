#include "elements/ethernet/VLANDecap.hh"

namespace headrace {

Status VLANDecap::configure(Args& args) {
  return args.read_p("ANNO", annotate).read("ETHERTYPE", ethertype).complete();
}

}  // namespace headrace
