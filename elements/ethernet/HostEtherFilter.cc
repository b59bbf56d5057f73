#include "elements/ethernet/HostEtherFilter.hh"

#include "headrace/headers.hh"

namespace headrace {

static_assert(static_cast<int>(PacketType::kHost) == HostEtherFilter::kTypeHost);
static_assert(static_cast<int>(PacketType::kBroadcast) == HostEtherFilter::kTypeBroadcast);
static_assert(static_cast<int>(PacketType::kMulticast) == HostEtherFilter::kTypeMulticast);
static_assert(static_cast<int>(PacketType::kOtherHost) == HostEtherFilter::kTypeOtherHost);

namespace {

void split(const EtherAddress& address, uint32_t& high, uint16_t& low) {
  Net32 first;
  Net16 last;
  std::memcpy(&first, address.data(), 4);
  std::memcpy(&last, address.data() + 4, 2);
  high = first;
  low = last;
}

}  // namespace

Status HostEtherFilter::configure(Args& args) {
  EtherAddress ether;
  if (!args.read_mp("ETHER", ether)
           .read_p("DROP_OWN", drop_own)
           .read_p("DROP_OTHER", drop_other)
           .read("OFFSET", offset, Between{0, 65535})
           .complete())
    return Status::failed();
  split(ether, ether_high, ether_low);
  return {};
}

void HostEtherFilter::add_handlers(Handlers& handlers) {
  handlers.read("ether", [this] {
    const Net32 high(ether_high);
    const Net16 low(ether_low);
    std::array<uint8_t, 6> bytes;
    std::memcpy(bytes.data(), &high, 4);
    std::memcpy(bytes.data() + 4, &low, 2);
    return EtherAddress(bytes).unparse();
  });
  handlers.write("ether", [this](const std::string& value, Errors& errors) {
    EtherAddress ether;
    if (!parse_argument(value, ether, ArgContext(nullptr, &errors))) return errors.error("expected Ethernet address");
    split(ether, ether_high, ether_low);
    return Status();
  });
}

}  // namespace headrace
