#include "elements/ip/IPFragmenter.hh"

#include <algorithm>
#include <atomic>

#include "headrace/chatter.hh"
#include "headrace/checksum.hh"

namespace headrace {

struct IPFragmenterOwner {
  bool verbose = false;
  std::atomic<int> told = 0;
  /// For packets that get a new identification; any value does that is not repeated soon.
  std::atomic<uint16_t> next_id = static_cast<uint16_t>(clock::now().ns >> 10);
};

namespace {

constexpr int kMaxReports = 5;

/// Copies the options that every fragment carries, and fills up the last word. Stops at an option whose length makes no
/// sense. Returns how many bytes there are.
int copy_options(const Ip4Header& ip, uint8_t* out) {
  const uint8_t* in = ip.bytes() + 20;
  const uint8_t* end = ip.bytes() + ip.header_length();
  int n = 0;
  while (in < end && *in != ip_option::kEnd) {
    if (*in == ip_option::kNop) {
      ++in;
      continue;
    }
    if (end - in < 2 || in[1] < 2 || in[1] > end - in) break;
    if (*in & ip_option::kCopied) {
      std::memcpy(out + n, in, in[1]);
      n += in[1];
    }
    in += in[1];
  }
  while (n % 4) out[n++] = ip_option::kEnd;
  return n;
}

/// What is the same in all fragments of a packet.
struct Cut {
  const Packet& packet;
  const Ip4Header& ip;
  uint16_t id;
  uint16_t fragment;  // flags but DF, and offset, of the packet
  int data_length;
  uint32_t headroom;
};

/// The fragment with `length` bytes of data from `offset` on. `header` is what it begins with; `front` bytes that lie
/// before it in the packet come along.
Packet* make_fragment(const Cut& cut, const uint8_t* header, int header_length, int front, int offset, int length) {
  Packet* q = Packet::make(static_cast<uint32_t>(front + header_length + length), cut.headroom);
  if (!q) return nullptr;
  q->copy_annotations(cut.packet);
  q->set_network_header(front, header_length);
  std::memcpy(q->network_header(), header, static_cast<size_t>(header_length));
  std::memcpy(q->transport_header(), cut.ip.bytes() + cut.ip.header_length() + offset, static_cast<size_t>(length));

  auto& ip = *reinterpret_cast<Ip4Header*>(q->network_header());
  const bool last = offset + length >= cut.data_length && !(cut.fragment & ip4::kMoreFragments);
  ip.version_ihl = static_cast<uint8_t>(0x40 | header_length >> 2);
  ip.total_length = static_cast<uint16_t>(header_length + length);
  ip.id = cut.id;
  ip.fragment = static_cast<uint16_t>((cut.fragment | (last ? 0 : ip4::kMoreFragments)) + (offset >> 3));
  set_ip_checksum(ip);
  return q;
}

}  // namespace

Status IPFragmenter::configure(Args& args, IPFragmenterOwner& owner) {
  headroom = Packet::kDefaultHeadroom;
  if (!args.read_mp("MTU", mtu)
           .read_p("HONOR_DF", honor_df)
           .read_p("VERBOSE", owner.verbose)
           .read("HEADROOM", headroom, Between{0, 4096})
           .complete())
    return Status::failed();
  if (mtu < 8) return args.errors().error("MTU must be at least 8");
  return {};
}

void IPFragmenter::add_handlers(Handlers& handlers, IPFragmenterOwner&, ShaderElementBase& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kMustNot)); });
  handlers.read("fragments", [&element] { return std::to_string(element.counter(kFragments)); });
}

Next IPFragmenter::escape(Packet*& p, Emitter& emit, IPFragmenterOwner& owner) const {
  auto& element = static_cast<ShaderElementBase&>(emit.element());
  Ip4Header* ip = ip4_header(*p);
  const int header_length = ip ? ip->header_length() : 0;
  const int data_length = ip ? ip->total_length - header_length : 0;
  // Beyond 65535 the offset field would overflow.
  if (!ip || data_length < 0 || header_length + data_length > p->network_length() ||
      (ip->fragment & ip4::kOffsetMask) * 8 + data_length > 65535) {
    element.count_event(kBadHeader);
    return kDrop;
  }
  if (ip->total_length <= mtu) {
    // Only what a link added behind the packet makes it look too large.
    p->take(static_cast<uint32_t>(p->network_length() - ip->total_length));
    return 0;
  }

  const bool dont_fragment = ip->fragment & ip4::kDontFragment;
  const int first_length = (static_cast<int>(mtu) - header_length) & ~7;
  if ((dont_fragment && honor_df) || first_length < 8) {
    if (owner.verbose || owner.told.fetch_add(1, std::memory_order_relaxed) < kMaxReports)
      chatter("IPFragmenter({}) DF {} {} len={}", mtu, IpAddress(ip->src), IpAddress(ip->dst), p->length());
    element.count_event(kMustNot);
    return 1;
  }

  const uint16_t id = dont_fragment ? owner.next_id.fetch_add(1, std::memory_order_relaxed) : uint16_t{ip->id};
  const Cut cut{*p, *ip, id, static_cast<uint16_t>(ip->fragment & ~ip4::kDontFragment), data_length, headroom};
  const int front = std::max(p->network_header_offset(), 0);
  Packet* const first = make_fragment(cut, ip->bytes(), header_length, front, 0, first_length);
  Packet* last = first;
  if (first) {
    std::memcpy(first->data(), p->data(), static_cast<size_t>(front));
    if (front > 0 && p->has_mac_header() && p->mac_header_offset() >= 0) first->set_mac_header(p->mac_header_offset());
    first->set_next(nullptr, 0);
  }

  uint8_t header[60];
  std::memcpy(header, ip, 20);
  const int next_header_length = 20 + copy_options(*ip, header + 20);
  const int room = static_cast<int>(mtu) - next_header_length;
  // All but the last end at a multiple of 8 bytes (RFC 791).
  for (int offset = first_length, length; last && offset < data_length; offset += length) {
    length = data_length - offset <= room ? data_length - offset : room & ~7;
    Packet* const q = make_fragment(cut, header, next_header_length, 0, offset, length);
    if (q) {
      q->set_next(nullptr, 0);
      last->set_next(q, 0);
    }
    last = q;
  }
  // Nobody can do anything with a part of the fragments.
  const bool all = last != nullptr;
  for (Packet *q = first, *next; q; q = next) {
    next = q->next();
    if (all) {
      element.count_event(kFragments);
      emit(0, q);
    } else {
      q->kill();
    }
  }
  if (!all) {
    element.count_event(kNoBuffer);
    return kDrop;
  }
  p->kill();
  return kConsumed;
}

HEADRACE_ELEMENT(IPFragmenter)

}  // namespace headrace
