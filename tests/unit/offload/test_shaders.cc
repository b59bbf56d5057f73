#include "test_shaders.hh"

namespace headrace {

Next OffloadFan::escape(Packet*& p, Emitter& emit) const {
  if (Packet* copy = p->clone()) emit(2, copy);
  return 1;
}

Status OffloadFar::configure(Args& args) { return args.read_mp("OFFSET", offset).complete(); }
Status OffloadRash::configure(Args& args) { return args.read_mp("OFFSET", offset).complete(); }
Status OffloadScan::configure(Args& args) { return args.read_mp("VALUE", value).complete(); }
Status OffloadSly::configure(Args& args) { return args.read_mp("OFFSET", offset).complete(); }

}  // namespace headrace
