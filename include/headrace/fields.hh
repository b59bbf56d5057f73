#pragma once
/// \file
/// Names for the bytes of packets, and the declarations that a shader makes about them. Read by the host compiler and
/// by NVRTC, so it does not use the standard library.

#include "headrace/ip_protocol.hh"
#include "headrace/shader_types.hh"

namespace headrace {

/// What a field's offset is relative to.
enum class Anchor : uint8_t { kData, kMac, kNetwork, kTransport, kAnno, kMeta };

/// The byte order of an integer in memory.
enum class ByteOrder : uint8_t { kNetwork, kHost };

/// `T` at byte `Offset` from an anchor. Integers are in network order in headers and in host order in annotations,
/// unless `Order` says otherwise; `get` and `set` of a packet view convert.
template <Anchor A, int Offset, typename T,
          ByteOrder Order = A == Anchor::kAnno ? ByteOrder::kHost : ByteOrder::kNetwork>
struct Field {
  using Value = T;
  static constexpr Anchor kAnchor = A;
  static constexpr int kOffset = Offset;
  static constexpr int kSize = sizeof(T);
  static constexpr ByteOrder kOrder = Order;
};

/// `Length` bytes from byte `Offset` on, read or written at offsets known only at run time.
template <Anchor A, int Offset, int Length>
struct Span {
  static constexpr Anchor kAnchor = A;
  static constexpr int kOffset = Offset;
  static constexpr int kSize = Length;
};

/// Six bytes of an Ethernet address.
struct EtherBytes {
  uint8_t b[6];
};

/// A whole Ethernet header: destination, source, type.
struct EtherHeaderBytes {
  uint8_t b[14];
};

/// Bytes without a type.
template <int N>
struct Bytes {
  uint8_t b[N];
};

/// Sixteen bytes of an IPv6 address, network order.
struct Ip6Bytes {
  uint8_t b[16];
};

namespace eth {
inline constexpr Field<Anchor::kMac, 0, EtherHeaderBytes> header{};
inline constexpr Field<Anchor::kMac, 0, EtherBytes> dst{};
inline constexpr Field<Anchor::kMac, 6, EtherBytes> src{};
inline constexpr Field<Anchor::kMac, 12, uint16_t> type{};
inline constexpr uint16_t kTypeIp4 = 0x0800;
inline constexpr uint16_t kTypeArp = 0x0806;
inline constexpr uint16_t kTypeVlan = 0x8100;
inline constexpr uint16_t kTypeIp6 = 0x86dd;
}  // namespace eth

/// IPv4 header (RFC 791).
namespace ip4 {
inline constexpr Field<Anchor::kNetwork, 0, uint8_t> version_ihl{};
inline constexpr Field<Anchor::kNetwork, 1, uint8_t> tos{};
inline constexpr Field<Anchor::kNetwork, 2, uint16_t> total_length{};
inline constexpr Field<Anchor::kNetwork, 4, uint16_t> id{};
inline constexpr Field<Anchor::kNetwork, 6, uint16_t> fragment{};
inline constexpr Field<Anchor::kNetwork, 8, uint8_t> ttl{};
inline constexpr Field<Anchor::kNetwork, 9, uint8_t> protocol{};
inline constexpr Field<Anchor::kNetwork, 10, uint16_t> checksum{};
/// The checksum as it lies in memory. Sums of 16-bit words may be taken so, too (RFC 1071, 2 (B)).
inline constexpr Field<Anchor::kNetwork, 10, uint16_t, ByteOrder::kHost> raw_checksum{};
inline constexpr Field<Anchor::kNetwork, 12, uint32_t> src{};
inline constexpr Field<Anchor::kNetwork, 16, uint32_t> dst{};
/// The fixed header as five words; the whole header with the longest options.
inline constexpr Span<Anchor::kNetwork, 0, 20> fixed_header{};
inline constexpr Span<Anchor::kNetwork, 0, 60> whole_header{};
inline constexpr uint16_t kReserved = 0x8000;
inline constexpr uint16_t kDontFragment = 0x4000;
inline constexpr uint16_t kMoreFragments = 0x2000;
inline constexpr uint16_t kOffsetMask = 0x1fff;
HEADRACE_SHADER bool is_multicast(uint32_t address) { return (address >> 28) == 0xe; }
}  // namespace ip4

/// IPv6 header (RFC 8200).
namespace ip6 {
inline constexpr Field<Anchor::kNetwork, 0, uint32_t> version_class_flow{};
inline constexpr Field<Anchor::kNetwork, 4, uint16_t> payload_length{};
inline constexpr Field<Anchor::kNetwork, 6, uint8_t> next_header{};
inline constexpr Field<Anchor::kNetwork, 7, uint8_t> hop_limit{};
inline constexpr Field<Anchor::kNetwork, 8, Ip6Bytes> src{};
inline constexpr Field<Anchor::kNetwork, 24, Ip6Bytes> dst{};
}  // namespace ip6

/// UDP header (RFC 768).
namespace udp {
inline constexpr Field<Anchor::kTransport, 0, uint16_t> src_port{};
inline constexpr Field<Anchor::kTransport, 2, uint16_t> dst_port{};
inline constexpr Field<Anchor::kTransport, 4, uint16_t> length{};
inline constexpr Field<Anchor::kTransport, 6, uint16_t> checksum{};
}  // namespace udp

/// ICMP header (RFC 792).
namespace icmp {
inline constexpr Field<Anchor::kTransport, 0, uint8_t> type{};
inline constexpr Field<Anchor::kTransport, 1, uint8_t> code{};
inline constexpr Field<Anchor::kTransport, 2, uint16_t> checksum{};
}  // namespace icmp

/// All annotations: name in configurations, field, offset, type and byte order. Offsets and names are Click's, except
/// for PATTERN and RX_HASH. Several share bytes, as in Click; elements that use such annotations must not be combined.
#define HEADRACE_ANNOTATIONS(ANNOTATION)                                                                               \
  ANNOTATION("DST_IP", dst_ip, 0, uint32_t, kNetwork)                     /* where the packet goes next */             \
  ANNOTATION("DST_IP6", dst_ip6, 0, Ip6Bytes, kNetwork)                   /* the same for IPv6 */                      \
  ANNOTATION("PAINT", paint, 16, uint8_t, kHost)                          /* a color */                                \
  ANNOTATION("WIFI_EXTRA", wifi_extra, 16, Bytes<24>, kHost)              /* unused here */                            \
  ANNOTATION("ICMP_PARAMPROB", icmp_param_prob, 17, uint8_t, kHost)       /* where an IP header is wrong: ICMPError */ \
  ANNOTATION("FIX_IP_SRC", fix_ip_src, 19, uint8_t, kHost)                /* FixIPSrc is to set the source address */  \
  ANNOTATION("VLAN", vlan, 20, uint16_t, kHost)                           /* VLAN_TCI */                               \
  ANNOTATION("VLAN_TCI", vlan_tci, 20, uint16_t, kHost)                   /* tag control information of a VLAN */      \
  ANNOTATION("AGGREGATE", aggregate, 20, uint32_t, kHost)                 /* number of a flow: IP summary dumps */     \
  ANNOTATION("FWD_RATE", fwd_rate, 20, uint32_t, kHost)                   /* unused here */                            \
  ANNOTATION("MISC_IP", misc_ip, 20, uint32_t, kHost)                     /* unused here */                            \
  ANNOTATION("ESP_ASSOCIATION", esp_association, 20, uint32_t, kHost)     /* an association of an IPsecDatabase */     \
  ANNOTATION("ESP_SEQUENCE_HIGH", esp_sequence_high, 24, uint32_t, kHost) /* bits 32 to 63 of its number */            \
  ANNOTATION("EXTRA_PACKETS", extra_packets, 24, uint32_t, kHost)     /* packets that this one stands for, besides */  \
  ANNOTATION("REV_RATE", rev_rate, 24, uint32_t, kHost)               /* unused here */                                \
  ANNOTATION("GRID_ROUTE_CB", grid_route_cb, 27, uint8_t, kHost)      /* unused here */                                \
  ANNOTATION("EXTRA_LENGTH", extra_length, 28, uint32_t, kHost)       /* bytes cut off by a capture or by Truncate */  \
  ANNOTATION("IPREASSEMBLER", ip_reassembler, 28, uint32_t, kHost)    /* unused here */                                \
  ANNOTATION("FIRST_TIMESTAMP", first_timestamp, 32, uint64_t, kHost) /* ns: first packet of a flow, or due to send */ \
  ANNOTATION("PACKET_NUMBER", packet_number, 32, uint32_t, kHost)     /* unused here */                                \
  ANNOTATION("IPSEC_SPI", ipsec_spi, 32, uint32_t, kHost)             /* unused here */                                \
  ANNOTATION("SEQUENCE_NUMBER", sequence_number, 36, uint32_t, kHost) /* unused here */                                \
  ANNOTATION("PATTERN", pattern, 40, uint32_t, kHost)                 /* number of the pattern that matched */         \
  ANNOTATION("PERFCTR", perfctr, 40, uint64_t, kHost)                 /* unused here */                                \
  ANNOTATION("IPSEC_SA_DATA_REFERENCE", ipsec_sa_data_reference, 40, uint64_t, kHost) /* unused here */                \
  ANNOTATION("RX_HASH", rx_hash, 44, uint32_t, kHost) /* receive-side-scaling (Toeplitz) hash */

#define HEADRACE_ANNOTATION_FIELD(NAME, field, offset, type, order)             \
  struct field##_field : Field<Anchor::kAnno, offset, type, ByteOrder::order> { \
    static constexpr const char* kName = NAME;                                  \
  };                                                                            \
  inline constexpr field##_field field{};

/// The fields of the annotations. After Click's 48 bytes there are eight for what a shader passes to its own host body.
/// They are in the packet's second cache line and are neither cleared nor copied with a packet, so write them only if
/// the host body runs next.
namespace anno {
HEADRACE_ANNOTATIONS(HEADRACE_ANNOTATION_FIELD)
HEADRACE_ANNOTATION_FIELD("CANDIDATES", candidates, 48, uint64_t, kHost)
/// Any annotation byte, for elements with an argument that gives the offset.
inline constexpr Span<Anchor::kAnno, 0, 48> any{};
}  // namespace anno

/// Offsets of annotations, for host code.
namespace anno_offset {
inline constexpr int kDstIp = anno::dst_ip.kOffset;
inline constexpr int kDstIp6 = anno::dst_ip6.kOffset;
inline constexpr int kPaint = anno::paint.kOffset;
inline constexpr int kIcmpParamProb = anno::icmp_param_prob.kOffset;
inline constexpr int kFixIpSrc = anno::fix_ip_src.kOffset;
inline constexpr int kVlanTci = anno::vlan_tci.kOffset;
inline constexpr int kAggregate = anno::aggregate.kOffset;
inline constexpr int kExtraPackets = anno::extra_packets.kOffset;
inline constexpr int kExtraLength = anno::extra_length.kOffset;
inline constexpr int kFirstTimestamp = anno::first_timestamp.kOffset;
inline constexpr int kCandidates = anno::candidates.kOffset;
inline constexpr int kPattern = anno::pattern.kOffset;
inline constexpr int kRxHash = anno::rx_hash.kOffset;
}  // namespace anno_offset

/// What a packet carries besides bytes; declared as read or written like any other field.
namespace meta {
inline constexpr Field<Anchor::kMeta, 0, uint16_t> data{};    // where the packet begins: pull(), push()
inline constexpr Field<Anchor::kMeta, 1, uint32_t> length{};  // length(), take()
inline constexpr Field<Anchor::kMeta, 2, uint16_t> mac_header{};
inline constexpr Field<Anchor::kMeta, 3, uint16_t> network_header{};  // and the transport header after it
inline constexpr Field<Anchor::kMeta, 4, uint8_t> packet_type{};
}  // namespace meta

/// Declares that a shader reads, writes, or reads and writes a field or span.
template <typename F>
struct Read {
  F field;
  using Where = F;
  static constexpr bool kReads = true, kWrites = false, kSets = false;
};
template <typename F>
Read(F) -> Read<F>;
template <typename F>
struct Write {
  F field;
  using Where = F;
  static constexpr bool kReads = false, kWrites = true, kSets = false;
};
template <typename F>
Write(F) -> Write<F>;
template <typename F>
struct ReadWrite {
  F field;
  using Where = F;
  static constexpr bool kReads = true, kWrites = true, kSets = false;
};
template <typename F>
ReadWrite(F) -> ReadWrite<F>;
/// Declares that a shader writes a field of an annotation in every packet that leaves by output 0, and does not read it.
/// What was there before need not travel to a device.
template <typename F>
struct Set {
  F field;
  using Where = F;
  static constexpr bool kReads = false, kWrites = true, kSets = true;
  static_assert(F::kAnchor == Anchor::kAnno, "only annotations are set");
};
template <typename F>
Set(F) -> Set<F>;

/// One declaration as data, for the framework.
struct RegionInfo {
  Anchor anchor;
  int offset;
  int size;
  bool reads;
  bool writes;
  const char* name = nullptr;  ///< the annotation's name, if the field has one
  bool sets = false;           ///< writes it in every packet that leaves by output 0
  int usual = -1;              ///< bytes, from the beginning on, that packets usually have written; -1: all
};

/// The declarations of one shader.
template <typename... D>
struct Regions {
  static constexpr int kCount = sizeof...(D);

  /// True if a declaration of the wanted kind covers `size` bytes at `offset` from `anchor`.
  static constexpr bool covers([[maybe_unused]] Anchor anchor, [[maybe_unused]] int offset, [[maybe_unused]] int size,
                               [[maybe_unused]] bool write) {
    return (one<D>(anchor, offset, size, write) || ...);
  }
  template <typename F>
  static constexpr bool readable() {
    return covers(F::kAnchor, F::kOffset, F::kSize, false);
  }
  template <typename F>
  static constexpr bool writable() {
    return covers(F::kAnchor, F::kOffset, F::kSize, true);
  }
  /// Calls `f(RegionInfo)` for each declaration.
  template <typename Function>
  static constexpr void each(Function&& f) {
    (f(info<D>()), ...);
  }
  template <typename One>
  static constexpr RegionInfo info() {
    using W = typename One::Where;
    RegionInfo r{W::kAnchor, W::kOffset, W::kSize, One::kReads, One::kWrites};
    r.sets = One::kSets;
    if constexpr (requires { W::kName; }) r.name = W::kName;
    return r;
  }

 private:
  template <typename One>
  static constexpr bool one(Anchor anchor, int offset, int size, bool write) {
    using W = typename One::Where;
    if (W::kAnchor != anchor || !(write ? One::kWrites : One::kReads)) return false;
    if (anchor == Anchor::kMeta) return W::kOffset == offset;
    return offset >= W::kOffset && offset + size <= W::kOffset + W::kSize;
  }
};

/// `static constexpr auto kRegions = regions(ReadWrite{ip4::ttl}, Read{ip4::dst});`
template <typename... D>
constexpr Regions<D...> regions(D...) {
  return {};
}

/// Internet checksum of a header that changed in one 16-bit word (RFC 1624, equation 3). All values in host order.
HEADRACE_SHADER uint16_t checksum_replace16(uint16_t checksum, uint16_t old_word, uint16_t new_word) {
  uint32_t sum = static_cast<uint16_t>(~checksum) + static_cast<uint32_t>(static_cast<uint16_t>(~old_word)) + new_word;
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

/// As above for a changed 32-bit word, such as an address.
HEADRACE_SHADER uint16_t checksum_replace32(uint16_t checksum, uint32_t old_word, uint32_t new_word) {
  checksum = checksum_replace16(checksum, static_cast<uint16_t>(old_word >> 16), static_cast<uint16_t>(new_word >> 16));
  return checksum_replace16(checksum, static_cast<uint16_t>(old_word), static_cast<uint16_t>(new_word));
}

/// Sums `n` bytes at an offset from an anchor as 16-bit words in memory order; an odd last byte is padded with a zero.
HEADRACE_SHADER uint64_t checksum_sum(const auto& p, Anchor anchor, int offset, int n) {
  uint64_t sum = 0;
  int i = 0;
  for (; i + 4 <= n; i += 4) sum += p.load32_raw(anchor, offset + i);
  for (int shift = 0; i < n; ++i, shift += 8) sum += uint64_t{p.load8(anchor, offset + i)} << shift;
  return sum;
}

/// The checksum, in host order, for a sum of words in memory order: 0 if the words include a correct checksum.
HEADRACE_SHADER uint16_t checksum_of_sum(uint64_t sum) {
  sum = (sum >> 32) + (sum & 0xffffffff);
  sum = (sum >> 32) + (sum & 0xffffffff);
  sum = (sum >> 16) + (sum & 0xffff);
  sum = (sum >> 16) + (sum & 0xffff);
  // The bytes of the sum are in the same order as those of the words (RFC 1071, 2 (B)).
  const uint32_t checksum = ~static_cast<uint32_t>(sum) & 0xffff;
  return static_cast<uint16_t>(checksum << 8 | checksum >> 8);
}

/// What a 16-bit value in host order adds to a sum in memory order.
HEADRACE_SHADER uint32_t checksum_word(uint32_t value) { return (value & 0xff) << 8 | (value >> 8 & 0xff); }

}  // namespace headrace
