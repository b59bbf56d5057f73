#include "elements/control/PortInfo.hh"

#include "headrace/headers.hh"

namespace headrace {

namespace {

Status define_port(const std::string& entry, Args& args) {
  std::vector<std::string> words;
  if (!parse_argument(entry, words, args.context())) return Status::failed();
  if (words.empty() || words[0].starts_with('#')) return {};
  const std::string place = words.size() > 1 ? words[1] : "";
  const size_t slash = place.find('/');
  uint16_t port;
  if (!parse_argument(place.substr(0, slash), port, ArgContext()))
    return args.errors().error("expected 'NAME PORT/PROTO'");
  std::vector<int> protocols{ip_protocol::kTcp, ip_protocol::kUdp};
  if (slash != std::string::npos) {
    uint8_t protocol;
    // A line of /etc/services may name a protocol that this system does not know; no lookup can match it then.
    if (!IpProtocol().parse(place.substr(slash + 1), protocol, ArgContext())) return {};
    protocols = {protocol};
  }
  for (size_t i = 0; i < words.size() && !words[i].starts_with('#'); ++i) {
    if (i == 1) continue;
    for (const int protocol : protocols) args.scope()->define_port(words[i], protocol, port);
  }
  return {};
}

}  // namespace

Status PortInfo::configure(Args& args) {
  std::vector<std::string> entries;
  args.consume_rest(entries);
  Status status = args.complete();
  for (const std::string& entry : entries) status &= define_port(entry, args);
  return status;
}

}  // namespace headrace
