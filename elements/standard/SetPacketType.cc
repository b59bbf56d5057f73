#include "elements/standard/SetPacketType.hh"

namespace headrace {

Status SetPacketType::configure(Args& args) {
  std::string word;
  if (!args.read_mp("TYPE", word, WordArg()).complete()) return Status::failed();
  static const Choice<PacketType> types{{"HOST", PacketType::kHost},           {"BROADCAST", PacketType::kBroadcast},
                                        {"MULTICAST", PacketType::kMulticast}, {"OTHERHOST", PacketType::kOtherHost},
                                        {"OUTGOING", PacketType::kOutgoing},   {"LOOPBACK", PacketType::kLoopback},
                                        {"FASTROUTE", PacketType::kFastRoute}};
  PacketType found;
  if (!types.parse(word, found, ArgContext())) return args.errors().error("unrecognized packet type '{}'", word);
  type = static_cast<uint8_t>(found);
  return {};
}

HEADRACE_ELEMENT(SetPacketType)

}  // namespace headrace
