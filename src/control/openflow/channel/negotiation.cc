#include "control/openflow/channel/negotiation.hh"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace headrace::openflow {

namespace {

constexpr auto k10 = static_cast<uint8_t>(Version::k1_0), k13 = static_cast<uint8_t>(Version::k1_3);

uint8_t header_version(const Message& hello) {
  return hello.hello_version != 0 ? hello.hello_version : static_cast<uint8_t>(hello.version);
}

std::string list(uint32_t bitmap) {
  std::string text;
  for (unsigned version = 0; version < 32; ++version)
    if ((bitmap >> version & 1) != 0) text += fmt::format("{}0x{:02x}", text.empty() ? "" : ", ", version);
  return text.empty() ? "none" : text;
}

}  // namespace

Message hello_of(Versions ours, uint32_t xid) {
  Message message;
  message.version = ours.highest();
  message.xid = xid;
  message.body = Hello{{ours.bitmap()}};
  return message;
}

std::optional<Version> negotiate(Versions ours, const Message& hello) {
  const auto& theirs = std::get<Hello>(hello.body).versions;
  if (!theirs.empty()) {
    const uint32_t common = theirs[0] & ours.bitmap();
    if ((common >> k13 & 1) != 0) return Version::k1_3;
    if ((common >> k10 & 1) != 0) return Version::k1_0;
    return std::nullopt;
  }
  const uint8_t lower = std::min(header_version(hello), static_cast<uint8_t>(ours.highest()));
  if (lower == k13 && ours.v1_3) return Version::k1_3;
  if (lower == k10 && ours.v1_0) return Version::k1_0;
  return std::nullopt;
}

std::string incompatible(Versions ours, const Message& hello) {
  const auto& theirs = std::get<Hello>(hello.body).versions;
  return fmt::format("no common version: the switch speaks {}, the controller {}", list(ours.bitmap()),
                     theirs.empty() ? fmt::format("0x{:02x}", header_version(hello)) : list(theirs[0]));
}

}  // namespace headrace::openflow
