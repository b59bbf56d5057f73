#include "src/io/linux/xfrm_message.hh"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/ipsec.h>
#include <linux/udp.h>
#include <linux/xfrm.h>
#include <netinet/in.h>
#include <netlink/attr.h>
#include <netlink/msg.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "tables/sa/replay_window.hh"

namespace headrace::io {

namespace {

constexpr int kV4Bits = 96;

static_assert(sizeof(xfrm_selector) == sizeof(XfrmPolicyId::selector));

Ip6Address address_of(const xfrm_address_t& address, bool v6) {
  return v6 ? Ip6Address::from_bytes(&address) : Ip6Address::v4_mapped(IpAddress::from_bytes(&address));
}

xfrm_address_t kernel_address(const Ip6Address& address, bool v6) {
  xfrm_address_t out{};
  std::memcpy(&out, address.data() + (v6 ? 0 : 12), v6 ? 16 : 4);
  return out;
}

/// The attributes of a message, by type.
class Attributes {
 public:
  Attributes(nlmsghdr* header, int skip) { good_ = nlmsg_parse(header, skip, table_, XFRMA_MAX, nullptr) >= 0; }
  bool good() const { return good_; }

  /// The value, if it is there and long enough.
  template <typename T>
  const T* get(int type) const {
    const nlattr* const found = table_[type];
    return found != nullptr && nla_len(found) >= static_cast<int>(sizeof(T)) ? static_cast<const T*>(nla_data(found))
                                                                             : nullptr;
  }
  int length(int type) const { return table_[type] == nullptr ? 0 : nla_len(table_[type]); }
  uint32_t number(int type) const {
    uint32_t value = 0;
    if (const auto* const found = get<uint32_t>(type)) std::memcpy(&value, found, sizeof value);
    return value;
  }
  bool marked() const {
    const auto* const mark = get<xfrm_mark>(XFRMA_MARK);
    return mark != nullptr && mark->m != 0;
  }

 private:
  bool good_;
  nlattr* table_[XFRMA_MAX + 1] = {};
};

/// A key, behind the structure that tells its length in bits. False if it is not all there.
bool take_key(const void* key, unsigned bits, size_t room, SecretBytes& out) {
  if (bits % 8 != 0 || bits / 8 > room || bits / 8 > SecretBytes::kMost) return false;
  out = SecretBytes({static_cast<const uint8_t*>(key), bits / 8});
  return true;
}

template <typename T>
std::string_view algorithm_name(const T& algorithm) {
  return {algorithm.alg_name, strnlen(algorithm.alg_name, sizeof algorithm.alg_name)};
}

struct CipherName {
  std::string_view name;
  unsigned bits;  // of the key, with the salt
  Cipher cipher;
};
constexpr CipherName kCipherNames[] = {
    {"rfc4106(gcm(aes))", 160, Cipher::kAES128GCM}, {"rfc4106(gcm(aes))", 288, Cipher::kAES256GCM},
    {"rfc3686(ctr(aes))", 160, Cipher::kAES128CTR}, {"rfc3686(ctr(aes))", 288, Cipher::kAES256CTR},
    {"cbc(aes)", 128, Cipher::kAES128CBC},          {"cbc(aes)", 256, Cipher::kAES256CBC},
    {"cbc(des3_ede)", 192, Cipher::k3DESCBC},       {"ecb(cipher_null)", 0, Cipher::kNull},
};
struct IntegrityName {
  std::string_view name;
  unsigned bits, icv_bits;
  Integrity integrity;
};
constexpr IntegrityName kIntegrityNames[] = {
    {"hmac(sha1)", 160, 96, Integrity::kHMACSHA1},
    {"hmac(sha256)", 256, 128, Integrity::kHMACSHA256},
    {"digest_null", 0, 0, Integrity::kNone},
};

std::string take_cipher(std::string_view name, unsigned bits, const void* key, size_t room, AssociationConfig& config) {
  const auto* const found = std::find_if(std::begin(kCipherNames), std::end(kCipherNames),
                                         [&](const CipherName& c) { return c.name == name && c.bits == bits; });
  if (found == std::end(kCipherNames)) return fmt::format("{} with {} bits of key is not supported", name, bits);
  config.cipher = found->cipher;
  return take_key(key, bits, room, config.key) ? "" : "its key is cut off";
}

std::string take_integrity(std::string_view name, unsigned bits, unsigned icv_bits, const void* key, size_t room,
                           AssociationConfig& config) {
  const auto* const found =
      std::find_if(std::begin(kIntegrityNames), std::end(kIntegrityNames),
                   [&](const IntegrityName& i) { return i.name == name && i.bits == bits && i.icv_bits == icv_bits; });
  if (found == std::end(kIntegrityNames))
    return fmt::format("{} with {} bits of key and {} of ICV is not supported", name, bits, icv_bits);
  config.integrity = found->integrity;
  return take_key(key, bits, room, config.integrity_key) ? "" : "its key is cut off";
}

std::string take_algorithms(const Attributes& attributes, XfrmState& state) {
  const auto room = [&](int type, size_t front) { return static_cast<size_t>(attributes.length(type)) - front; };
  if (const auto* const aead = attributes.get<xfrm_algo_aead>(XFRMA_ALG_AEAD)) {
    if (aead->alg_icv_len != 128)
      return fmt::format("{} with {} bits of ICV is not supported", algorithm_name(*aead), aead->alg_icv_len);
    return take_cipher(algorithm_name(*aead), aead->alg_key_len, aead->alg_key, room(XFRMA_ALG_AEAD, sizeof *aead),
                       state.config);
  }
  const auto* const crypt = attributes.get<xfrm_algo>(XFRMA_ALG_CRYPT);
  const auto* const auth = attributes.get<xfrm_algo_auth>(XFRMA_ALG_AUTH_TRUNC);
  const auto* const plain_auth = attributes.get<xfrm_algo>(XFRMA_ALG_AUTH);
  if (crypt == nullptr && auth == nullptr && plain_auth == nullptr) {
    state.larval = true;
    return "";
  }
  if (crypt == nullptr) return "it has no cipher, not even that for no encryption";
  if (std::string problem = take_cipher(algorithm_name(*crypt), crypt->alg_key_len, crypt->alg_key,
                                        room(XFRMA_ALG_CRYPT, sizeof *crypt), state.config);
      !problem.empty())
    return problem;
  if (auth != nullptr)
    return take_integrity(algorithm_name(*auth), auth->alg_key_len, auth->alg_trunc_len, auth->alg_key,
                          room(XFRMA_ALG_AUTH_TRUNC, sizeof *auth), state.config);
  // Without a length of its own, the ICV has 96 bits.
  if (plain_auth != nullptr)
    return take_integrity(algorithm_name(*plain_auth), plain_auth->alg_key_len, 96, plain_auth->alg_key,
                          room(XFRMA_ALG_AUTH, sizeof *plain_auth), state.config);
  return "";
}

uint64_t limit_of(uint64_t limit) { return limit == XFRM_INF ? 0 : limit; }

XfrmStateId id_of(const xfrm_id& id, bool v6) { return {address_of(id.daddr, v6), ntohl(id.spi), id.proto}; }

void take_numbers(const Attributes& attributes, const xfrm_usersa_info& info, XfrmState& state) {
  AssociationConfig& config = state.config;
  config.extended_sequence = (info.flags & XFRM_STATE_ESN) != 0;
  state.window = info.replay_window;
  if (const auto* const esn = attributes.get<xfrm_replay_state_esn>(XFRMA_REPLAY_ESN_VAL)) {
    state.esn_words = esn->bmp_len;
    state.window = esn->replay_window;
    const auto whole = [](uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; };
    state.sequence = std::max(whole(esn->oseq_hi, esn->oseq), whole(esn->seq_hi, esn->seq));
  } else if (const auto* const plain = attributes.get<xfrm_replay_state>(XFRMA_REPLAY_VAL)) {
    state.sequence = std::max(plain->oseq, plain->seq);
  }
  config.replay_window = std::clamp(state.window, ReplayWindow::kSmallest, ReplayWindow::kLargest);
}

std::string take_rest(const Attributes& attributes, const xfrm_usersa_info& info, XfrmState& state) {
  AssociationConfig& config = state.config;
  if (info.id.proto != IPPROTO_ESP) return fmt::format("protocol {} is not ESP", info.id.proto);
  if (attributes.marked()) return "states with a mark are not supported";
  switch (info.mode) {
    case XFRM_MODE_TRANSPORT:
      config.mode = IPsecMode::kTransport;
      break;
    case XFRM_MODE_TUNNEL:
      config.mode = state.v6 ? IPsecMode::kTunnel6 : IPsecMode::kTunnel4;
      config.source = state.binding.source;
      config.destination = state.binding.destination;
      break;
    default:
      return fmt::format("mode {} is neither tunnel nor transport", info.mode);
  }
  if (const auto* const encap = attributes.get<xfrm_encap_tmpl>(XFRMA_ENCAP)) {
    if (encap->encap_type != UDP_ENCAP_ESPINUDP)
      return fmt::format("encapsulation {} is not that of RFC 3948", encap->encap_type);
    config.udp_encapsulation = UDPEncapsulation{ntohs(encap->encap_sport), ntohs(encap->encap_dport)};
  }
  if ((info.flags & XFRM_STATE_NOPMTUDISC) != 0) config.outer_df = OuterDF::kClear;
  if ((attributes.number(XFRMA_SA_EXTRA_FLAGS) & XFRM_SA_XFLAG_DONT_ENCAP_DSCP) != 0) config.outer_dscp = 0;
  config.most_bytes = state.limits.hard_bytes;
  config.most_packets = state.limits.hard_packets;
  return "";
}

XfrmState read_state(const xfrm_usersa_info& info, const Attributes& attributes) {
  XfrmState state;
  state.v6 = info.family == AF_INET6;
  state.id = id_of(info.id, state.v6);
  state.binding = {info.mode == XFRM_MODE_TUNNEL, address_of(info.saddr, state.v6), state.id.destination, info.reqid,
                   attributes.number(XFRMA_IF_ID)};
  state.config.spi = state.id.spi;
  state.limits = {limit_of(info.lft.soft_byte_limit), limit_of(info.lft.hard_byte_limit),
                  limit_of(info.lft.soft_packet_limit), limit_of(info.lft.hard_packet_limit)};
  state.added_at = info.curlft.add_time;
  take_numbers(attributes, info, state);
  state.problem = take_rest(attributes, info, state);
  if (state.problem.empty()) state.problem = take_algorithms(attributes, state);
  if (state.larval || !state.problem.empty()) return state;
  if (!state.config.authenticates()) {
    state.problem = "nothing would authenticate its packets";
  } else {
    for (const AssociationProblem& problem : check_association(state.config))
      if (problem.fatal && state.problem.empty()) state.problem = problem.text;
  }
  return state;
}

/// Ports by their mask, which must make one range of them.
std::optional<PortRange> ports_of(uint16_t port, uint16_t mask) {
  const auto others = static_cast<uint16_t>(~mask);
  if ((others & (others + 1)) != 0) return std::nullopt;
  return PortRange{static_cast<uint16_t>(port & mask), static_cast<uint16_t>(port | others)};
}

/// The policies that the kernel's one stands for: one, or without a family one for each.
std::string take_selector(const xfrm_userpolicy_info& info, std::vector<Policy>& policies) {
  const xfrm_selector& selector = info.sel;
  if (selector.ifindex != 0 || selector.user != 0) return "policies of an interface or a user are not supported";
  const std::optional<PortRange> sports = ports_of(ntohs(selector.sport), ntohs(selector.sport_mask));
  const std::optional<PortRange> dports = ports_of(ntohs(selector.dport), ntohs(selector.dport_mask));
  if (!sports || !dports) return "its ports are not one range";
  const bool has_ports = !sports->all() || !dports->all();
  if (has_ports && selector.proto != IPPROTO_TCP && selector.proto != IPPROTO_UDP && selector.proto != IPPROTO_SCTP)
    return fmt::format("protocol {} has no ports, and types of ICMP are not supported", selector.proto);
  if (selector.family == AF_UNSPEC && (selector.prefixlen_s != 0 || selector.prefixlen_d != 0))
    return "it has a prefix, but no family";
  for (const bool v6 : {false, true}) {
    if (selector.family != AF_UNSPEC && v6 != (selector.family == AF_INET6)) continue;
    const int most = v6 ? 128 : 32, front = v6 ? 0 : kV4Bits;
    if (selector.prefixlen_s > most || selector.prefixlen_d > most) return "its prefix is too long";
    Policy policy;
    policy.v6 = v6;
    policy.source = {address_of(selector.saddr, v6), selector.prefixlen_s + front};
    policy.destination = {address_of(selector.daddr, v6), selector.prefixlen_d + front};
    if (selector.proto != 0) policy.protocol = selector.proto;
    policy.source_ports = *sports;
    policy.destination_ports = *dports;
    policies.push_back(policy);
  }
  return "";
}

std::string take_template(const Attributes& attributes, const Policy& policy, XfrmPolicy& out) {
  const auto* const first = attributes.get<xfrm_user_tmpl>(XFRMA_TMPL);
  if (first == nullptr) return "";
  if (attributes.length(XFRMA_TMPL) >= static_cast<int>(2 * sizeof *first))
    return "it has more than one template, as for compression";
  if (first->id.proto != IPPROTO_ESP) return fmt::format("its template's protocol {} is not ESP", first->id.proto);
  if (first->mode != XFRM_MODE_TUNNEL && first->mode != XFRM_MODE_TRANSPORT)
    return fmt::format("its template's mode {} is neither tunnel nor transport", first->mode);
  if (first->optional != 0) return "its template is optional: packets would also pass unprotected";
  const bool v6 = first->family == AF_INET6;
  XfrmBinding binding{first->mode == XFRM_MODE_TUNNEL, address_of(first->saddr, v6), address_of(first->id.daddr, v6),
                      first->reqid, out.id.if_id};
  if (!binding.tunnel) {
    // Without addresses of the template, those of packets count.
    if (policy.source.length != 128 || policy.destination.length != 128)
      return "in transport mode it must be about one host at each end";
    binding.source = policy.source.address;
    binding.destination = policy.destination.address;
  }
  out.binding = binding;
  return "";
}

XfrmPolicy read_policy(const xfrm_userpolicy_info& info, const Attributes& attributes) {
  XfrmPolicy policy;
  std::memcpy(policy.id.selector.data(), &info.sel, sizeof info.sel);
  policy.id.direction = info.dir;
  policy.id.if_id = attributes.number(XFRMA_IF_ID);
  // Others are of sockets, such as those by which IKE escapes from policies.
  if (info.dir != XFRM_POLICY_IN && info.dir != XFRM_POLICY_OUT && info.dir != XFRM_POLICY_FWD) return policy;
  const auto* const first = attributes.get<xfrm_user_tmpl>(XFRMA_TMPL);
  // What comes from inside is not asked about twice.
  if (info.dir == XFRM_POLICY_FWD && first != nullptr && first->optional != 0) return policy;
  if (attributes.marked()) {
    policy.problem = "policies with a mark are not supported";
    return policy;
  }
  policy.problem = take_selector(info, policy.policies);
  if (!policy.problem.empty()) {
    policy.policies.clear();
    return policy;
  }
  if (info.action == XFRM_POLICY_ALLOW) policy.problem = take_template(attributes, policy.policies[0], policy);
  for (Policy& p : policy.policies) {
    p.direction = info.dir == XFRM_POLICY_OUT ? IPsecDirection::kOut : IPsecDirection::kIn;
    // What cannot be protected as the policy says must not pass unprotected.
    const bool discard = info.action != XFRM_POLICY_ALLOW || !policy.problem.empty();
    // A daemon that has put a successor there names the one to send by until its peer is ready.
    if (!discard && policy.binding) p.spi = ntohl(first->id.spi);
    p.action = discard ? PolicyAction::kDiscard : policy.binding ? PolicyAction::kProtect : PolicyAction::kBypass;
    // The kernel asks those with small numbers first.
    p.priority = static_cast<int32_t>(
        -static_cast<int64_t>(std::min<uint32_t>(info.priority, std::numeric_limits<int32_t>::max())));
  }
  return policy;
}

/// A copy of the structure behind the header of a message: netlink aligns to 4 bytes only. Nothing if it is cut off.
template <typename T>
std::optional<T> body_of(nlmsghdr* header) {
  if (nlmsg_datalen(header) < static_cast<int>(sizeof(T))) return std::nullopt;
  T body;
  std::memcpy(&body, nlmsg_data(header), sizeof body);
  return body;
}

void read_state_message(nlmsghdr* header, XfrmMessage& message) {
  if (header->nlmsg_type == XFRM_MSG_DELSA) {
    const auto id = body_of<xfrm_usersa_id>(header);
    if (!id) return;
    message.state.id = {address_of(id->daddr, id->family == AF_INET6), ntohl(id->spi), id->proto};
    message.change = XfrmChange::kStateGone;
  } else if (header->nlmsg_type == XFRM_MSG_EXPIRE) {
    const auto expire = body_of<xfrm_user_expire>(header);
    // A soft limit is the daemon's matter.
    if (!expire || expire->hard == 0) return;
    message.state.id = id_of(expire->state.id, expire->state.family == AF_INET6);
    message.change = XfrmChange::kStateGone;
  } else if (const auto info = body_of<xfrm_usersa_info>(header)) {
    const Attributes attributes(header, sizeof *info);
    if (!attributes.good()) return;
    message.state = read_state(*info, attributes);
    message.change = XfrmChange::kState;
  }
}

void read_policy_message(nlmsghdr* header, XfrmMessage& message) {
  if (header->nlmsg_type == XFRM_MSG_DELPOLICY) {
    const Attributes attributes(header, sizeof(xfrm_userpolicy_id));
    const auto* const policy = attributes.good() ? attributes.get<xfrm_userpolicy_info>(XFRMA_POLICY) : nullptr;
    if (policy == nullptr) return;
    // Attributes are aligned to 4 bytes only.
    xfrm_userpolicy_info info;
    std::memcpy(&info, static_cast<const void*>(policy), sizeof info);
    message.policy = read_policy(info, attributes);
    message.change = XfrmChange::kPolicyGone;
  } else if (header->nlmsg_type == XFRM_MSG_POLEXPIRE) {
    const auto expire = body_of<xfrm_user_polexpire>(header);
    if (!expire || expire->hard == 0) return;
    const Attributes attributes(header, sizeof *expire);
    if (!attributes.good()) return;
    message.policy = read_policy(expire->pol, attributes);
    message.change = XfrmChange::kPolicyGone;
  } else if (const auto info = body_of<xfrm_userpolicy_info>(header)) {
    const Attributes attributes(header, sizeof *info);
    if (!attributes.good()) return;
    message.policy = read_policy(*info, attributes);
    message.change = XfrmChange::kPolicy;
  }
}

/// Puts a message together.
class Writer {
 public:
  Writer(uint16_t type, uint16_t flags) : bytes_(NLMSG_HDRLEN) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
    std::memcpy(bytes_.data(), &header, sizeof header);
  }
  void append(const void* data, size_t size) {
    const auto* const from = static_cast<const uint8_t*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }
  void attribute(uint16_t type, const void* data, size_t size) {
    const nlattr header{static_cast<uint16_t>(NLA_HDRLEN + size), type};
    append(&header, sizeof header);
    append(data, size);
  }
  std::vector<uint8_t> take() {
    const auto size = static_cast<uint32_t>(bytes_.size());
    std::memcpy(bytes_.data() + offsetof(nlmsghdr, nlmsg_len), &size, sizeof size);
    return std::move(bytes_);
  }

 private:
  std::vector<uint8_t> bytes_;
};

uint16_t family_of(const XfrmState& state) { return state.v6 ? AF_INET6 : AF_INET; }

}  // namespace

std::optional<XfrmMessage> read_xfrm_message(std::span<const uint8_t>& bytes) {
  // libnl asks for a header that may be written, and does not write.
  auto* const header = reinterpret_cast<nlmsghdr*>(const_cast<uint8_t*>(bytes.data()));
  if (bytes.size() > std::numeric_limits<int>::max() || !nlmsg_ok(header, static_cast<int>(bytes.size())))
    return std::nullopt;
  bytes = bytes.subspan(std::min<size_t>(NLMSG_ALIGN(header->nlmsg_len), bytes.size()));
  XfrmMessage message;
  switch (header->nlmsg_type) {
    case NLMSG_DONE:
      message.change = XfrmChange::kEnd;
      break;
    case NLMSG_ERROR:
      if (const auto error = body_of<nlmsgerr>(header)) message.error = -error->error;
      message.change = XfrmChange::kEnd;
      break;
    case XFRM_MSG_NEWSA:
    case XFRM_MSG_UPDSA:
    case XFRM_MSG_DELSA:
    case XFRM_MSG_EXPIRE:
      read_state_message(header, message);
      break;
    case XFRM_MSG_FLUSHSA:
      if (const auto flush = body_of<xfrm_usersa_flush>(header);
          flush && (flush->proto == IPSEC_PROTO_ANY || flush->proto == 0 || flush->proto == IPPROTO_ESP))
        message.change = XfrmChange::kStatesGone;
      break;
    case XFRM_MSG_NEWPOLICY:
    case XFRM_MSG_UPDPOLICY:
    case XFRM_MSG_DELPOLICY:
    case XFRM_MSG_POLEXPIRE:
      read_policy_message(header, message);
      break;
    case XFRM_MSG_FLUSHPOLICY:
      message.change = XfrmChange::kPoliciesGone;
      break;
    default:
      break;
  }
  return message;
}

std::vector<uint8_t> xfrm_use_message(const XfrmState& state, const XfrmUse& use) {
  Writer message(XFRM_MSG_NEWAE, NLM_F_REPLACE | NLM_F_ACK);
  xfrm_aevent_id id{};
  id.sa_id.daddr = kernel_address(state.id.destination, state.v6);
  id.sa_id.spi = htonl(state.id.spi);
  id.sa_id.family = family_of(state);
  id.sa_id.proto = state.id.protocol;
  id.saddr = kernel_address(state.binding.source, state.v6);
  id.reqid = state.binding.reqid;
  message.append(&id, sizeof id);
  const xfrm_lifetime_cur life{use.bytes, use.packets, state.added_at, use.used_at};
  message.attribute(XFRMA_LTIME_VAL, &life, sizeof life);
  const auto low = static_cast<uint32_t>(use.sequence), high = static_cast<uint32_t>(use.sequence >> 32);
  if (state.esn_words) {
    std::vector<uint8_t> value(sizeof(xfrm_replay_state_esn) + *state.esn_words * sizeof(uint32_t));
    xfrm_replay_state_esn esn{};
    esn.bmp_len = *state.esn_words;
    esn.replay_window = state.window;
    (use.outbound ? esn.oseq : esn.seq) = low;
    (use.outbound ? esn.oseq_hi : esn.seq_hi) = high;
    std::memcpy(value.data(), &esn, sizeof esn);
    message.attribute(XFRMA_REPLAY_ESN_VAL, value.data(), value.size());
  } else {
    xfrm_replay_state plain{};
    (use.outbound ? plain.oseq : plain.seq) = low;
    message.attribute(XFRMA_REPLAY_VAL, &plain, sizeof plain);
  }
  return message.take();
}

std::vector<uint8_t> xfrm_expire_message(const XfrmState& state, bool hard) {
  Writer message(XFRM_MSG_EXPIRE, NLM_F_ACK);
  xfrm_user_expire expire{};
  expire.state.id.daddr = kernel_address(state.id.destination, state.v6);
  expire.state.id.spi = htonl(state.id.spi);
  expire.state.id.proto = state.id.protocol;
  expire.state.family = family_of(state);
  expire.hard = hard ? 1 : 0;
  message.append(&expire, sizeof expire);
  return message.take();
}

std::vector<uint8_t> xfrm_dump_states_message() { return Writer(XFRM_MSG_GETSA, NLM_F_DUMP).take(); }

std::vector<uint8_t> xfrm_dump_policies_message() { return Writer(XFRM_MSG_GETPOLICY, NLM_F_DUMP).take(); }

}  // namespace headrace::io
