#include "elements/ip/FlowClassifier.hh"

#include <headrace/element.hh>
#include <headrace/scratch.hh>

#include "elements/ip/flow_rules.hh"
#include "tables/acl/acl_batch.hh"

namespace headrace {

namespace {

using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Words4 = uint32_t __attribute__((vector_size(16)));

template <typename Word>
Word load_word(const uint8_t* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// The first four words of the key of what most packets are: TCP or UDP over IPv4, whole, without options. False: another
/// one, or invalid. As parse_ip() makes them.
[[gnu::always_inline]] inline bool read_usual_packet(const Packet& p, uint32_t* key) {
  constexpr uint64_t kVersionAndLength = 0xff, kFragment = uint64_t{0xff1f} << 48;
  constexpr uint64_t kProtocols = uint64_t{1} << ip_protocol::kTcp | uint64_t{1} << ip_protocol::kUdp;
  if (!p.has_network_header()) return false;
  if (p.network_length() < 24) return false;
  const uint8_t* const h = p.network_header();
  const auto first = load_word<uint64_t>(h);
  const uint32_t protocol = h[9];
  const uint32_t total = __builtin_bswap16(static_cast<uint16_t>(first >> 16));
  // From the byte in front of the protocol to the ports, in the order of a key; of the last word, only the protocol.
  static_assert(key_word::kIp4Src == 0 && key_word::kIp4Dst == 1 && key_word::kPorts == 2 && key_word::kTypes == 3);
  const auto bytes = load_word<Bytes16>(h + 8);
  const Bytes16 zero{};
  const auto words = reinterpret_cast<Words4>(__builtin_shufflevector(bytes, zero, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13,
                                                                      12, 16, 1, 16, 16)) |
                     Words4{0, 0, 0, 0x08000000 | static_cast<uint32_t>(first >> 8 & 0xff)};
  std::memcpy(key, &words, sizeof words);
  // One branch for all that must hold.
  const uint64_t unusual = ((first & (kVersionAndLength | kFragment)) ^ 0x45) | (total < 24 ? 1 : 0) |
                           (protocol > 63 ? 1 : 0) | (~(kProtocols >> (protocol & 63)) & 1);
  return unusual == 0;
}

/// What a packet in memory is matched by. False: it has no header that FIELDS needs.
bool read_packet(const Packet& p, uint32_t words, PacketKey& key) {
  key = PacketKey{};
  if (words == 4) {
    if (!p.has_network_header() || p.network_length() < 20) return false;
    PacketBytes bytes;
    bytes.data = p.network_header();
    const int32_t end = p.network_length();
    bytes.length = static_cast<uint32_t>(end);
    key = parse_ip(bytes, 0, end);
    return true;
  }
  if (!p.has_mac_header()) return false;
  const int32_t end = static_cast<int32_t>(p.end_data() - p.mac_header());
  if (end < 14) return false;
  PacketBytes bytes;
  bytes.data = p.mac_header();
  bytes.length = static_cast<uint32_t>(end);
  PacketKeyContext context;
  context.in_port = p.anno()[anno_offset::kPaint];
  key = parse_frame(bytes, end, context);
  return true;
}

/// The same into an array of keys.
[[gnu::noinline]] bool read_other_packet(const Packet& p, uint32_t words, uint32_t* words_of_key) {
  PacketKey key;
  const bool read = read_packet(p, words, key);
  std::memcpy(words_of_key, key.w, words * sizeof(uint32_t));
  return read;
}

}  // namespace

Status FlowClassifier::configure(Args& args, Owner& owner) {
  const Status status = owner.configure(args);
  words = owner.words();
  return status;
}

void FlowClassifier::add_handlers(Handlers& handlers, Owner& owner, Element& element) {
  owner.add_handlers(handlers, element);
}

auto FlowClassifier::note(const Owner& owner) const { return owner.note(); }

void FlowClassifier::refresh(const Owner& owner) {
  renew(table, owner.view());
  renew(words, owner.words());
}

void FlowClassifier::mirror(Mirror& mirror, const Owner& owner) {
  table = owner.mirror(mirror);
  words = owner.words();
}

void FlowClassifier::shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events, Result* results) const {
  uint32_t keys[Batch::kCapacity * key_word::kCount];
  Scratch<AclMatch, Batch::kCapacity> matches;
  bool absent[Batch::kCapacity];
  bool unusual = false;
  for (int i = 0; i < n; ++i) {
    const Packet& p = *packets[i];
    uint32_t* const key = keys + static_cast<uint32_t>(i) * words;
    results[i].length = p.length();
    absent[i] = false;
    if (words == 4 && read_usual_packet(p, key)) [[likely]]
      continue;
    absent[i] = !read_other_packet(p, words, key);
    unusual |= absent[i];
  }
  acl_find_batch(table, keys, matches.data(), static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    const AclMatch& match = matches[i];
    results[i].number = match.number;
    nexts[i] = static_cast<Next>(match.data);
    unusual |= static_cast<bool>((match.number == AclMatch::kNone ? 1 : 0) | (match.data == kDropPort ? 1 : 0));
  }
  if (!unusual) return;
  for (int i = 0; i < n; ++i) {
    if (absent[i]) {
      ++events[kNoHeader];
      results[i] = {AclMatch::kNone, 0};
    } else if (results[i].number == AclMatch::kNone) {
      ++events[kNoRule];
    } else if (matches[i].data == kDropPort) {
      ++events[kDropped];
    } else {
      continue;
    }
    nexts[i] = kDrop;
  }
}

Next FlowClassifier::escape(Packet*& p, Emitter& emit, Owner& owner) const {
  FlowClassifier now = *this;
  now.refresh(owner);
  Next next = kDrop;
  uint64_t events[kCounters.kCount] = {};
  Result result;
  now.shade_batch(&p, 1, &next, events, &result);
  now.release(&p, Results<Result>(&result), 1, owner);
  for (int i = 0; i < kCounters.kCount; ++i)
    if (events[i] != 0) static_cast<ShaderElementBase&>(emit.element()).count_event(i);
  return next;
}

void FlowClassifier::release(Packet* const*, Results<Result> results, int n, Owner& owner) const {
  owner.count(results, n);
}

HEADRACE_ELEMENT(FlowClassifier)

}  // namespace headrace
