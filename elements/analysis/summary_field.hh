#pragma once
/// \file
/// The fields of IP summary dumps: how each is taken from a packet, written, read and put into a packet.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/addresses.hh"
#include "headrace/args.hh"
#include "headrace/ip_protocol.hh"
#include "headrace/packet.hh"

namespace headrace::summary {

inline constexpr int kMajorVersion = 1;
inline constexpr int kMinorVersion = 3;

using ip_protocol::kIcmp, ip_protocol::kTcp, ip_protocol::kUdp, ip_protocol::kDccp, ip_protocol::kUdpLite;

/// A field's value on its way between packet and text.
struct Value {
  uint64_t n = 0;
  std::string bytes;
};

/// How a value stands in a binary dump, integers in network byte order.
enum class Form {
  kByte,
  kShort,
  kWord,
  kLong,
  kMicroTime,  // seconds and microseconds, a word each; in Value::n nanoseconds
  kNanoTime,   // seconds and nanoseconds
  kEthernet,   // six bytes
  kDigest,     // sixteen bytes
  kOptions,    // a byte with the length, then that many bytes
  kTextOnly,
};

/// A packet whose fields are asked for.
class View {
 public:
  struct Options {
    /// Say so when data and the extra-length annotation fall short of the IP length.
    bool careful_truncation = true;
    /// Count the extra-length annotation.
    bool extra_length = true;
    /// Where the first complaint about a bad header goes, as a line "!bad ..."; may be null.
    std::string* complaint = nullptr;
  };
  View(const Packet& p, const Options& options);

  const Packet& packet() const { return p_; }
  /// Looks for the IP header and those in it, once.
  void find_headers();

  /// Null when there is none, or it is bad.
  const uint8_t* ip() const { return ip_; }
  const uint8_t* tcp() const { return tcp_; }
  const uint8_t* udp() const { return udp_; }
  const uint8_t* icmp() const { return icmp_; }
  int ip_header_length() const { return (ip_[0] & 15) * 4; }
  int ip_length() const { return ip_[2] << 8 | ip_[3]; }
  bool first_fragment() const { return ((ip_[6] & 0x1f) | ip_[7]) == 0; }
  bool is_fragment() const { return ((ip_[6] & 0x3f) | ip_[7]) != 0; }
  /// Lengths without the bytes behind the end of the IP packet.
  int length() const { return static_cast<int>(p_.length()) - padding_; }
  int network_length() const { return p_.network_length() - padding_; }
  int transport_length() const { return p_.transport_length() - padding_; }
  /// What the extra-length annotation adds to the IP length (or to the length, without an IP header).
  uint32_t extra_length() const { return options_.extra_length ? extra_ : 0; }
  /// Where the payload begins, from data(), and its length by the IP header.
  void payload(int& offset, uint32_t& length) const;

  /// For extract(): notes that the header of a protocol (0: IP; -1: Ethernet; -2: TCP or UDP) is too short for a field
  /// that ends at `length`. Always returns false.
  bool missing(int protocol, int length) const;

 private:
  void complain(const std::string& text) const;

  const Packet& p_;
  const Options options_;
  bool searched_ = false;
  const uint8_t* ip_ = nullptr;
  const uint8_t* tcp_ = nullptr;
  const uint8_t* udp_ = nullptr;
  const uint8_t* icmp_ = nullptr;
  int padding_ = 0;
  uint32_t extra_ = 0;
};

/// Addresses and ports of packets that do not say their own, in host order.
struct FlowId {
  uint32_t src = 0, dst = 0;
  uint16_t sport = 0, dport = 0;
};

/// A packet that is put together from fields.
class Builder {
 public:
  Builder(int default_protocol, const FlowId* default_flow, int minor_version, NameScope* names);

  // What the fields' functions use.
  bool make_ip(int protocol = 0);
  bool make_transport();
  uint8_t* data() { return reinterpret_cast<uint8_t*>(bytes_.data()); }
  uint8_t* ip() { return data() + network_; }
  uint8_t* transport() { return data() + transport_; }
  int length() const { return static_cast<int>(bytes_.size()); }
  int network_length() const { return length() - network_; }
  int transport_length() const { return length() - transport_; }
  int network_offset() const { return network_; }
  int transport_offset() const { return transport_; }
  bool has_ip() const { return is_ip && network_ >= 0 && network_length() >= 20; }
  bool first_fragment() { return ((ip()[6] & 0x1f) | ip()[7]) == 0; }
  bool is_fragment() { return ((ip()[6] & 0x3f) | ip()[7]) != 0; }
  /// Makes the part from the transport header on at least `n` bytes long.
  void need_transport(int n) {
    if (transport_length() < n) bytes_.resize(static_cast<size_t>(transport_ + n));
  }
  /// Moves the transport header behind an IP header of this length; the room in between is zero.
  void set_ip_header_length(int n);
  /// Inserts zero bytes.
  void insert(int offset, int n) { bytes_.insert(static_cast<size_t>(offset), static_cast<size_t>(n), '\0'); }
  void make_ethernet();
  /// Makes room for a payload of `n` bytes at `offset`, where the headers end, and lets the IP length, if it is known,
  /// decide how long options are.
  void account_payload(int& offset, uint32_t n);
  /// Where the headers end.
  int payload_offset();
  void write(int offset, std::string_view bytes);
  NameScope* names() const { return names_; }

  bool is_ip = true;
  bool have_icmp_type = false;
  bool have_icmp_code = false;
  bool have_ip_header_length = false;
  bool have_tcp_header_length = false;
  const int minor_version;
  /// Length that the whole packet is meant to have, data and the extra-length annotation; 0: not known.
  uint32_t wanted_length = 0;

  std::optional<Timestamp> timestamp;
  uint8_t anno[Packet::kAnnoSize] = {};
  template <typename T>
  void set_anno(int offset, T value) {
    __builtin_memcpy(anno + offset, &value, sizeof value);
  }

  /// Sets what no field has set, and makes the packet; null when there is no buffer.
  Packet* finish(bool checksums);

 private:
  void finish_lengths();
  void set_checksums();

  const int default_protocol_;
  const FlowId* default_flow_;
  NameScope* names_;
  std::string bytes_;
  bool ethernet_ = false;
  int network_ = -1;
  int transport_ = -1;
};

struct Field {
  std::string_view name;
  Form form;
  /// Takes the value from a packet; false: it has none. Null: the field cannot be written.
  bool (*extract)(View&, Value&);
  /// Null: a decimal number.
  void (*print)(const View&, const Value&, std::string&);
  /// Fields are put into a packet in this order.
  int order;
  /// Null: a number that the form can hold.
  bool (*parse)(Builder&, std::string_view, Value&);
  /// Null: the field is ignored when read.
  void (*inject)(Builder&, const Value&);
};

enum Order { kAnnotation = 100, kLink = 200, kNetwork = 300, kTransport = 400, kPayload = 500 };

/// Finds a field by one of its names; null when there is none. Blanks stand for underscores, "X" for "ip_X".
const Field* find_field(std::string_view name);

void print_field(const Field& field, const View& view, const Value& value, std::string& text);
bool parse_field(const Field& field, Builder& builder, std::string_view text, Value& value);
/// `ok` false: extract() found nothing.
void write_binary(const Field& field, bool ok, const Value& value, std::string& out);
/// Reads a value at the front of `in` and takes it off; false when `in` is too short.
bool read_binary(const Field& field, std::string_view& in, Value& value);

/// Each file defines some of the fields.
const std::vector<Field>& annotation_fields();
const std::vector<Field>& ip_fields();
const std::vector<Field>& transport_fields();

}  // namespace headrace::summary
