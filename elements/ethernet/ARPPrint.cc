#include "elements/ethernet/ARPPrint.hh"

#include <fmt/format.h>

#include <cstring>

#include "headrace/chatter.hh"
#include "headrace/fields.hh"

namespace headrace {

namespace {

/// What lies behind the addresses' lengths.
constexpr int kFixedPart = 8;
/// Protocol numbers of the trailer encapsulation of old (RFC 893).
constexpr uint16_t kTrailer = 0x1000;

std::string describe(const ArpHeader& arp, int length) {
  const uint16_t protocol = arp.protocol, hardware = arp.hardware, operation = arp.operation;
  if ((protocol != eth::kTypeIp4 && protocol != kTrailer) || arp.protocol_length != 4 || arp.hardware_length != 6)
    return fmt::format("arp-#{} for proto #{} ({}) hardware #{} ({})", operation, protocol, arp.protocol_length,
                       hardware, arp.hardware_length);
  if (length < static_cast<int>(sizeof(ArpHeader))) return fmt::format("truncated-arp ({})", length);
  const EtherAddress sender = arp.sender_ether, target = arp.target_ether;
  const IpAddress sender_ip = arp.sender_ip, target_ip = arp.target_ip;
  std::string text = protocol == kTrailer ? "trailer-" : "";
  switch (operation) {
    case 1:
      text += fmt::format("arp who-has {}{} tell {}", target_ip, target ? fmt::format(" ({})", target) : "", sender_ip);
      break;
    case 2:
      text += fmt::format("arp reply {} is-at {}", sender_ip, sender);
      break;
    case 3:
      text += fmt::format("rarp who-is {} tell {}", target, sender);
      break;
    case 4:
      text += fmt::format("rarp reply {} at {}", target, target_ip);
      break;
    case 8:
      text += fmt::format("invarp who-is {} tell {}", target, sender);
      break;
    case 9:
      text += fmt::format("invarp reply {} at {}", target, target_ip);
      break;
    default:
      text += fmt::format("arp-#{}", operation);
  }
  if (hardware != ArpHeader::kEthernet) text += fmt::format("hardware #{}", hardware);
  return text;
}

}  // namespace

Status ARPPrint::configure(Args& args) {
  return args.read_p("LABEL", label_)
      .read("TIMESTAMP", timestamp_)
      .read("ETHER", ether_)
      .read("ACTIVE", active_)
      .read("OUTFILE", file_name_, FileName())
      .complete();
}

Status ARPPrint::initialize(Errors& errors) {
  if (file_name_.empty()) return {};
  const int error = file_.open(file_name_, name());
  return error == 0 ? Status() : errors.error("{}: {}", file_name_, std::strerror(error));
}

void ARPPrint::add_handlers(Handlers& handlers) {
  handlers.value("active", active_);
  handlers.read("lost", [this] { return std::to_string(file_.lost()); });
}

std::string ARPPrint::line(const Packet& p) const {
  std::string text = label_.empty() ? "" : label_ + ": ";
  if (timestamp_) text += p.timestamp().unparse() + ": ";
  if (ether_) {
    const int at = p.has_mac_header() ? p.mac_header_offset() : 0;
    if (at >= -static_cast<int>(p.headroom()) && at + 14 <= p.network_header_offset() &&
        at + 14 <= static_cast<int>(p.length())) {
      const auto& ether = *reinterpret_cast<const EtherHeader*>(p.data() + at);
      text += fmt::format("{} > {}: ", EtherAddress(ether.src), EtherAddress(ether.dst));
    }
  }
  const int length = p.network_length();
  if (length < kFixedPart) return text + fmt::format("truncated-arp ({})", length);
  return text + describe(*reinterpret_cast<const ArpHeader*>(p.network_header()), length);
}

Packet* ARPPrint::act(Packet* p, Emitter&) {
  if (!active_ || !p->has_network_header()) return p;
  std::string text = line(*p);
  if (file_.is_open()) {
    text += '\n';
    file_.add(text);
  } else {
    chatter_line(std::move(text));
  }
  return p;
}

}  // namespace headrace
