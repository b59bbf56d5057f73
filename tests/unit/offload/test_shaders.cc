#include "test_shaders.hh"

#include <algorithm>

#include "headrace/args.hh"
#include "headrace/handlers.hh"

namespace headrace {

Next OffloadFan::escape(Packet*& p, Emitter& emit) const {
  if (Packet* copy = p->clone()) emit(2, copy);
  return 1;
}

Status OffloadFar::configure(Args& args) { return args.read_mp("OFFSET", offset).complete(); }
Status OffloadRash::configure(Args& args) { return args.read_mp("OFFSET", offset).complete(); }
Status OffloadScan::configure(Args& args) { return args.read_mp("VALUE", value).complete(); }
Status OffloadSly::configure(Args& args) { return args.read_mp("OFFSET", offset).complete(); }

void OffloadTwins::refresh(const Owner& owner) { tables = owner.tables; }

void OffloadTwins::mirror(Mirror& mirror, const Owner& owner) {
  struct Addresses {
    const uint32_t *part, *first, *second;
  };
  Addresses addresses;
  addresses.part = mirror.array(owner.first, Owner::kSize / 2);
  addresses.first = mirror.array(owner.first, Owner::kSize);
  addresses.second = mirror.array(owner.second, Owner::kSize);
  tables = &mirror.object(addresses)->part;
}

void OffloadTwins::add_handlers(Handlers& handlers, Owner& owner) {
  handlers.write("set", [&owner](const std::string& text, Errors& errors) -> Status {
    uint32_t value;
    if (!parse_argument(text, value, ArgContext())) return errors.error("expected a number");
    std::fill_n(owner.first, Owner::kSize, value);
    std::fill_n(owner.second, Owner::kSize, value);
    return {};
  });
}

}  // namespace headrace
