#pragma once
/// \file
/// Changes of an Ethernet frame's header fields, with checksums repaired, for both processors. Includes no standard
/// header.
///
/// Changes are made in the words of a PacketKey first, so that later tables match what the frame has become; write()
/// then brings all of them to the frame, and loads all that it needs before it stores anything, as a shader must.
///
/// Checksums of IPv4, TCP, UDP, ICMP and ICMPv6 are updated by what has changed (RFC 1624, equation 3), so a wrong one
/// stays wrong. A UDP checksum of 0, which means none, stays 0, and none becomes 0 (RFC 768). In later fragments, and in
/// packets that end before it, there is none.

#include "tables/openflow/frame_layout_view.hh"
#include "tables/openflow/program_view.hh"

namespace headrace::openflow {

/// What 16-bit words that have changed add to the complement of a checksum.
class ChecksumDelta {
 public:
  HEADRACE_SHADER void half(uint32_t before, uint32_t after) { sum_ += (~before & 0xffff) + after; }
  HEADRACE_SHADER void word(uint32_t before, uint32_t after) {
    half(before >> 16, after >> 16);
    half(before & 0xffff, after & 0xffff);
  }
  HEADRACE_SHADER void add(const ChecksumDelta& other) { sum_ += other.sum_; }
  /// \param checksum the one before, 16 bits
  HEADRACE_SHADER uint32_t repaired(uint32_t checksum) const {
    uint32_t sum = (~checksum & 0xffff) + sum_;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
  }
  HEADRACE_SHADER bool empty() const { return sum_ == 0; }

 private:
  uint32_t sum_ = 0;
};

/// Changes of one frame that are still to be written.
///
/// \tparam kPossible the fields that may be set, so that a device need not have code for others
///
/// `Frame` has the interface of `Bytes` in frame_layout_view.hh, and `set_byte`, `set_half`, `set_word`; and
/// `bool move(n)`: byte -n becomes the first one, while offsets stay what they are. False if there is no room. And
/// `bool complete()`: all that was loaded was there.
template <FieldSet kPossible = kAllFields>
class FrameEdits {
 public:
  /// Tags that can be pushed before write().
  static constexpr uint32_t kMostTags = 2;

  FrameEdits() = default;

  /// Finds the headers of the frame, once.
  template <typename Frame>
  HEADRACE_SHADER void locate(const Frame& frame, int32_t end) {
    if (located_) return;
    located_ = true;
    at_ = locate_headers(frame, end);
    settable_ = settable_fields<kPossible>(frame, at_);
  }
  HEADRACE_SHADER const FrameLayout& layout() const { return at_; }
  HEADRACE_SHADER bool any() const {
    return (fields_ & ~fields_of(oxm_field::kTunnelId)) != 0 || ttl_ >= 0 || mpls_ttl_ >= 0 || pushed_ != 0 ||
           popped_ != 0 || tag_changed_;
  }

  /// Sets a field of the key and notes it; does nothing if the frame has no such field. After locate().
  HEADRACE_SHADER void set_field(const SetField& set, PacketKey& key) {
    const bool of_tag = set.field == oxm_field::kVlanVid || set.field == oxm_field::kVlanPcp;
    if (of_tag ? !has_tag(key) : (settable_ >> (set.field & 63) & 1) == 0) return;
    set.apply(key.w);
    if (of_tag) {
      key.w[key_word::kVlan] |= kPresent;
      tag_changed_ = tag_changed_ || pushed_ == 0;
    } else {
      fields_ |= FieldSet{1} << set.field;
    }
  }
  /// Sets a port of TCP or UDP, whichever there is. After locate().
  HEADRACE_SHADER void set_port(bool destination, uint32_t port, PacketKey& key) {
    using namespace oxm_field;
    const FieldSet field = settable_ & (destination ? fields_of(kTcpDst, kUdpDst) : fields_of(kTcpSrc, kUdpSrc));
    if (field == 0) return;
    fields_ |= field;
    uint32_t& word = key.w[key_word::kPorts];
    word = destination ? (word & 0xffff0000) | port : (word & 0xffff) | port << 16;
  }
  /// 1.0: gives the outer tag a VLAN or a priority; without a tag adds one. False: too many tags. After locate().
  HEADRACE_SHADER bool set_tag(uint32_t value, uint32_t mask, PacketKey& key) {
    if (!has_tag(key)) {
      if (!push_vlan(0x8100, key)) return false;
    }
    uint32_t& word = key.w[key_word::kVlan];
    word = (word & ~(mask << 16)) | (value & mask) << 16;
    tag_changed_ = tag_changed_ || pushed_ == 0;
    return true;
  }
  HEADRACE_SHADER void set_ttl(uint32_t ttl) {
    if (at_.version != 0) ttl_ = static_cast<int32_t>(ttl);
  }
  /// False: the TTL is not valid, or would not be any more.
  template <typename Frame>
  HEADRACE_SHADER bool decrement_ttl(const Frame& frame) {
    if (at_.version == 0) return true;
    if (ttl_ < 0) ttl_ = static_cast<int32_t>(frame.byte(ttl_at()));
    if (ttl_ <= 1) return false;
    --ttl_;
    return true;
  }
  HEADRACE_SHADER void set_mpls_ttl(uint32_t ttl) {
    if (at_.mpls()) mpls_ttl_ = static_cast<int32_t>(ttl);
  }

  /// Adds a tag with the VLAN and priority of the outer one, or with zeros. False: too many before write().
  HEADRACE_SHADER bool push_vlan(uint32_t type, PacketKey& key) {
    if (at_.end < 14) return true;
    if (pushed_ == kMostTags) return false;
    const uint32_t tci = key.w[key_word::kVlan] >> 16;
    if (pushed_ == 0) {
      under_ = tci;
      lower_ = type << 16;
    } else {
      lower_ = (lower_ & 0xffff0000) | tci;
      upper_ = type << 16;
    }
    ++pushed_;
    key.w[key_word::kVlan] |= kPresent;
    return true;
  }
  /// Removes the outer tag. After locate().
  template <typename Frame>
  HEADRACE_SHADER void pop_vlan(const Frame& frame, PacketKey& key) {
    if (!has_tag(key)) return;
    uint32_t tci = 0;
    if (pushed_ == 2) {
      tci = lower_ & 0xffff;
    } else if (pushed_ == 1) {
      tci = under_;
    } else {
      ++popped_;
      tag_changed_ = false;
      const int32_t at = 12 + static_cast<int32_t>(popped_) * 4;
      if (at + 6 <= at_.end && is_vlan_type(frame.half(at))) tci = (frame.half(at + 2) & 0xefff) | 0x1000;
    }
    if (pushed_ != 0) --pushed_;
    key.w[key_word::kVlan] = (key.w[key_word::kVlan] & 0xffff) | tci << 16;
  }

  /// Brings the changes to the frame. `key` is the one that they were made in. False: no room in front, or the frame is not
  /// complete(), and nothing has changed. The frame's end stays where it is.
  template <typename Frame>
  HEADRACE_SHADER bool write(Frame& frame, const PacketKey& key) {
    using namespace oxm_field;
    const auto has = [this](FieldSet set) { return (fields_ & kPossible & set) != 0; };
    const uint32_t* const w = key.w;
    const int32_t net = at_.network, l4 = at_.transport;
    ChecksumDelta ip, pseudo, body;

    // The network header.
    uint32_t first = 0, ttl_half = 0, ip_checksum = 0;
    const bool new_class = has(fields_of(kIpDscp, kIpEcn)), new_ttl = ttl_ >= 0 || has(fields_of(kIpProto));
    const bool new_src = has(fields_of(kIp4Src, kIp6Src)), new_dst = has(fields_of(kIp4Dst, kIp6Dst));
    const bool new_first = new_class || has(fields_of(kIp6Label));
    int32_t protocol_at = 0;
    if (at_.version == 4) {
      ip_checksum = frame.half(net + 10);
      if (new_first) {
        const uint32_t before = frame.half(net);
        first = (before & 0xff00) | (w[key_word::kTypes] & 0xff);
        ip.half(before, first);
      }
      if (new_ttl) {
        const uint32_t before = frame.half(net + 8);
        ttl_half = ttl_ >= 0 ? static_cast<uint32_t>(ttl_) << 8 | (before & 0xff) : before;
        if (has(fields_of(kIpProto))) {
          const uint32_t protocol = w[key_word::kTypes] >> 8 & 0xff;
          ttl_half = (ttl_half & 0xff00) | protocol;
          pseudo.half(before & 0xff, protocol);
        }
        ip.half(before, ttl_half);
      }
      if (new_src) ip.word(frame.word(net + 12), w[key_word::kIp4Src]);
      if (new_dst) ip.word(frame.word(net + 16), w[key_word::kIp4Dst]);
      if (new_src) pseudo.word(frame.word(net + 12), w[key_word::kIp4Src]);
      if (new_dst) pseudo.word(frame.word(net + 16), w[key_word::kIp4Dst]);
    } else if (at_.version == 6) {
      first = 6u << 28 | (w[key_word::kTypes] & 0xff) << 20 | w[key_word::kLabel] >> 12;
      if (has(fields_of(kIpProto))) {
        protocol_at = protocol_byte_of_ip6(frame);
        pseudo.half(frame.byte(protocol_at), w[key_word::kTypes] >> 8 & 0xff);
      }
      for (int32_t i = 0; i < 4; ++i) {
        if (new_src) pseudo.word(frame.word(net + 8 + i * 4), w[key_word::kIp6Src + static_cast<uint32_t>(i)]);
        if (new_dst) pseudo.word(frame.word(net + 24 + i * 4), w[key_word::kIp6Dst + static_cast<uint32_t>(i)]);
      }
    }

    // What it carries.
    const bool new_ports = has(kPortFields), new_icmp = has(kIcmpFields);
    const bool new_target = has(fields_of(kNdTarget));
    uint32_t icmp = 0;
    NeighborOptions options;
    if (new_ports) body.word(frame.word(l4), w[key_word::kPorts]);
    if (new_icmp) {
      const uint32_t ports = w[key_word::kPorts];
      icmp = (ports >> 8 & 0xff00) | (ports & 0xff);
      body.half(frame.half(l4), icmp);
    }
    if (new_target)
      for (int32_t i = 0; i < 4; ++i)
        body.word(frame.word(l4 + 8 + i * 4), w[key_word::kNdTarget + static_cast<uint32_t>(i)]);
    if (has(fields_of(kNdSll, kNdTll))) {
      options = find_neighbor_options(frame, at_);
      if (has(fields_of(kNdSll)))
        for (int32_t i = 0; i < 3; ++i) body.half(frame.half(options.source + 2 + i * 2), sha_half(w, i));
      if (has(fields_of(kNdTll)))
        for (int32_t i = 0; i < 3; ++i) body.half(frame.half(options.target + 2 + i * 2), tha_half(w, i));
    }
    if (at_.has_pseudo_header()) body.add(pseudo);
    const int32_t checksum_at = body.empty() ? 0 : at_.checksum();
    uint32_t checksum = 0;
    if (checksum_at != 0) {
      const uint32_t before = frame.half(checksum_at);
      checksum = body.repaired(before);
      if (at_.protocol == ip_protocol::kUdp) checksum = before == 0 ? 0 : checksum == 0 ? 0xffff : checksum;
    }

    // Labels and tags.
    uint32_t shim = 0, under = 0;
    const bool new_shim = has(kShimFields) || ((kPossible & kShimFields) != 0 && mpls_ttl_ >= 0),
               new_isid = has(fields_of(kPbbIsid));
    if (new_shim || new_isid) {
      const uint32_t before = frame.word(net);
      if (new_isid) {
        shim = (before & 0xff000000) | w[key_word::kLabel] >> 8;
      } else {
        shim = (has(kShimFields) ? w[key_word::kLabel] & 0xffffff00 : before & 0xffffff00) |
               (mpls_ttl_ >= 0 ? static_cast<uint32_t>(mpls_ttl_) : before & 0xff);
      }
    }
    const int32_t under_at = 14 + static_cast<int32_t>(popped_) * 4;
    if (tag_changed_) {
      const uint32_t tci = pushed_ == 0 ? w[key_word::kVlan] >> 16 : under_;
      under = (tci & 0xefff) | (frame.half(under_at) & 0x1000);
    }

    // All is loaded. The front goes first, since a device may find out only then that it lacks these bytes.
    if (!frame.complete()) return false;
    const int32_t start = 4 * (static_cast<int32_t>(popped_) - static_cast<int32_t>(pushed_));
    if (start != 0 && !frame.move(-start)) return false;
    if (start != 0 || has(fields_of(kEthDst, kEthSrc)))
      for (int32_t i = 0; i < 3; ++i) frame.set_word(start + i * 4, w[key_word::kMac + static_cast<uint32_t>(i)]);
    if (pushed_ != 0) {
      const uint32_t tci = w[key_word::kVlan] >> 16 & 0xefff;
      if (pushed_ == 1) {
        frame.set_word(start + 12, (lower_ & 0xffff0000) | tci);
      } else {
        frame.set_word(start + 12, (upper_ & 0xffff0000) | tci);
        frame.set_word(start + 16, lower_ & 0xffffefff);
      }
    }
    if (tag_changed_) frame.set_half(under_at, under);
    if (has(fields_of(kEthType))) frame.set_half(at_.type_at, w[key_word::kTypes] >> 16);
    if (new_shim || new_isid) frame.set_word(net, shim);
    if (at_.version == 4) {
      if (new_first) frame.set_half(net, first);
      if (new_ttl) frame.set_half(net + 8, ttl_half);
      if (!ip.empty()) frame.set_half(net + 10, ip.repaired(ip_checksum));
      if (new_src) frame.set_word(net + 12, w[key_word::kIp4Src]);
      if (new_dst) frame.set_word(net + 16, w[key_word::kIp4Dst]);
    } else if (at_.version == 6) {
      if (new_first) frame.set_word(net, first);
      if (ttl_ >= 0) frame.set_byte(net + 7, static_cast<uint32_t>(ttl_));
      if (protocol_at != 0) frame.set_byte(protocol_at, w[key_word::kTypes] >> 8 & 0xff);
      for (int32_t i = 0; i < 4; ++i) {
        if (new_src) frame.set_word(net + 8 + i * 4, w[key_word::kIp6Src + static_cast<uint32_t>(i)]);
        if (new_dst) frame.set_word(net + 24 + i * 4, w[key_word::kIp6Dst + static_cast<uint32_t>(i)]);
      }
    }
    if (new_ports) frame.set_word(l4, w[key_word::kPorts]);
    if (new_icmp) frame.set_half(l4, icmp);
    if (new_target)
      for (int32_t i = 0; i < 4; ++i) frame.set_word(l4 + 8 + i * 4, w[key_word::kNdTarget + static_cast<uint32_t>(i)]);
    for (int32_t i = 0; i < 3; ++i) {
      if (has(fields_of(kNdSll))) frame.set_half(options.source + 2 + i * 2, sha_half(w, i));
      if (has(fields_of(kNdTll))) frame.set_half(options.target + 2 + i * 2, tha_half(w, i));
    }
    if (checksum_at != 0) frame.set_half(checksum_at, checksum);
    if constexpr ((kPossible & kArpFields) != 0) {
      if (at_.arp) write_arp(frame, w);
    }
    return true;
  }

 private:
  static constexpr uint32_t kPresent = 0x10000000;
  static constexpr FieldSet kPortFields = fields_of(oxm_field::kTcpSrc, oxm_field::kTcpDst, oxm_field::kUdpSrc,
                                                    oxm_field::kUdpDst, oxm_field::kSctpSrc, oxm_field::kSctpDst);
  static constexpr FieldSet kIcmpFields =
      fields_of(oxm_field::kIcmpType, oxm_field::kIcmpCode, oxm_field::kIcmp6Type, oxm_field::kIcmp6Code);
  static constexpr FieldSet kShimFields = fields_of(oxm_field::kMplsLabel, oxm_field::kMplsTc, oxm_field::kMplsBos);

  static constexpr FieldSet kArpFields =
      fields_of(oxm_field::kArpOp, oxm_field::kArpSpa, oxm_field::kArpTpa, oxm_field::kArpSha, oxm_field::kArpTha);

  HEADRACE_SHADER static bool has_tag(const PacketKey& key) { return (key.w[key_word::kVlan] & kPresent) != 0; }
  HEADRACE_SHADER int32_t ttl_at() const { return at_.network + (at_.version == 4 ? 8 : 7); }
  /// The halves of link-layer addresses as a key has them: SLL or SHA, and TLL or THA.
  HEADRACE_SHADER static uint32_t sha_half(const uint32_t* w, int32_t i) {
    return i == 0   ? w[key_word::kLinkLayer] >> 16
           : i == 1 ? w[key_word::kLinkLayer] & 0xffff
                    : w[key_word::kLinkLayer + 1] >> 16;
  }
  HEADRACE_SHADER static uint32_t tha_half(const uint32_t* w, int32_t i) {
    return i == 0   ? w[key_word::kLinkLayer + 1] & 0xffff
           : i == 1 ? w[key_word::kLinkLayer + 2] >> 16
                    : w[key_word::kLinkLayer + 2] & 0xffff;
  }
  template <typename Frame>
  HEADRACE_SHADER void write_arp(Frame& frame, const uint32_t* w) const {
    using namespace oxm_field;
    const int32_t net = at_.network;
    if ((fields_ & fields_of(kArpOp)) != 0) frame.set_half(net + 6, w[key_word::kPorts] >> 16);
    if ((fields_ & fields_of(kArpSpa)) != 0) frame.set_word(net + 14, w[key_word::kIp4Src]);
    if ((fields_ & fields_of(kArpTpa)) != 0) frame.set_word(net + 24, w[key_word::kIp4Dst]);
    for (int32_t i = 0; i < 3; ++i) {
      if ((fields_ & fields_of(kArpSha)) != 0) frame.set_half(net + 8 + i * 2, sha_half(w, i));
      if ((fields_ & fields_of(kArpTha)) != 0) frame.set_half(net + 18 + i * 2, tha_half(w, i));
    }
  }
  /// Where the protocol stands: in the IPv6 header or in its last extension header.
  template <typename Frame>
  HEADRACE_SHADER int32_t protocol_byte_of_ip6(const Frame& frame) const {
    int32_t where = at_.network + 6, at = at_.network + 40;
    bool later_fragment = false;
    while (is_ip6_extension(frame.byte(where)) && !later_fragment && at_.transport_end - at >= 8) {
      const uint32_t kind = frame.byte(where);
      where = at;
      if (kind == ip_protocol::kFragment) {
        later_fragment = (frame.half(at + 2) & 0xfff8) != 0;
        at += 8;
      } else {
        at += kind == ip_protocol::kAuthentication ? static_cast<int32_t>(frame.byte(at + 1) + 2) * 4
                                                   : static_cast<int32_t>(frame.byte(at + 1) + 1) * 8;
      }
    }
    return where;
  }

  FrameLayout at_;
  FieldSet settable_ = 0;
  FieldSet fields_ = 0;  // to be written, but for those of tags
  int32_t ttl_ = -1, mpls_ttl_ = -1;
  // The frame without its first `popped_` tags, behind `pushed_` new ones. The outermost has what the key has.
  uint32_t popped_ = 0, pushed_ = 0;
  uint32_t lower_ = 0, upper_ = 0;  // the first and the second new tag: type and TCI
  uint32_t under_ = 0;              // the TCI of the outermost old tag when the first new one came
  bool tag_changed_ = false;        // that tag's TCI is to be written
  bool located_ = false;
};

}  // namespace headrace::openflow
