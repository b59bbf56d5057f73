#pragma once
/// \file
/// Synthetic and recorded traffic, held in memory and divided among workers as a network card's receive-side scaling
/// does.

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/addresses.hh"
#include "headrace/error.hh"
#include "src/io/memory/traffic_header.hh"

namespace headrace {

/// What a source makes.
struct TrafficSpec {
  enum class Kind { kUniform, kImix, kZipf, kReplay };
  Kind kind = Kind::kUniform;
  std::string file;      // kReplay: a pcap or pcapng file
  uint32_t length = 64;  // bytes of a frame without its check sequence; not for kImix and kReplay
  uint32_t flows = 1 << 20;
  double skew = 1.0;  // kZipf: exponent
  uint64_t seed = 1;
  uint8_t ttl = 64;
  /// Frames that would be shorter have this length; not for kReplay. IPv6 frames have at least kShortestIp6.
  uint32_t shortest = 0;
  /// Not empty: frames are IPv6, each to a random address of a random one of these.
  std::vector<Ip6Prefix> prefixes;
  /// Not empty: each frame is inside one of these, a random one or, for kZipf, one with probability 1/rank^skew, where the
  /// first one has rank 1. `flows` frames are drawn.
  std::vector<KeyMatch> rules;
  double miss = 0;       // share of frames that are outside of all rules but those of everything
  uint8_t protocol = 0;  // of IP frames: TCP or UDP; 0: UDP, or what a rule leaves open at random
  uint32_t payload = 0;  // bytes that frames inside rules have room for behind the headers
};

/// Bytes of Ethernet, IPv6 and UDP headers: no IPv6 frame is shorter.
inline constexpr uint32_t kShortestIp6 = 62;

/// One frame to be made. The header is a template in which these change.
struct TrafficRecord {
  uint32_t dst;       // network order
  uint16_t checksum;  // network order
  uint16_t src_port;  // network order
  uint32_t hash;
  uint16_t length;
};

/// The same for IPv6.
struct TrafficRecord6 {
  uint8_t dst[16];
  uint32_t hash;
  uint16_t src_port;  // network order
  uint16_t length;
};

/// The frames of one worker, to be sent in this order, again and again.
struct TrafficShare {
  std::vector<TrafficRecord> records;
  std::vector<TrafficRecord6> records6;
  /// Frames inside rules, and those with TCP.
  std::vector<NarrowHeader> narrow;
  std::vector<WideHeader> wide;
  /// kReplay: frames as recorded.
  struct Frame {
    std::vector<uint8_t> bytes;
    uint32_t hash;
  };
  std::vector<Frame> frames;
  /// The first 64 bytes of every synthetic frame: Ethernet, IPv4 from 198.18.1.1 (RFC 2544) or IPv6 from 2001:2::1 (RFC
  /// 5180), UDP to port 53.
  alignas(64) uint8_t header[64];

  /// Only one of them has any.
  size_t size() const { return records.size() + records6.size() + narrow.size() + wide.size() + frames.size(); }
};

/// The shares of all workers, the same for the same `spec` whatever else runs. A worker may get nothing when there are
/// fewer flows than workers. Reports an unreadable file, and `miss` where all is inside the rules.
std::vector<TrafficShare> make_traffic(const TrafficSpec& spec, int workers, Errors& errors);

/// Reads the rules of a file that may be in any format that read_flow_rules() knows. Lines that cannot be read, and rules in
/// which no frame can be drawn, are named in warnings and left out. False, with an error, if none is left.
bool read_traffic_rules(const std::string& path, TrafficSpec& spec, Errors& errors);

/// Which frames of a share belong to one flow.
struct TrafficFlows {
  std::vector<uint32_t> of_frame;  // the numbers of their flows, from 0
  uint32_t count = 0;
};
/// Not for kReplay.
TrafficFlows find_flows(const TrafficSpec& spec, const TrafficShare& share);

/// Gives the frame that `record` makes of `header` another length.
void set_length(TrafficRecord& record, const uint8_t* header, uint16_t length);

/// Frame sizes of the simple Internet mix, 7 : 4 : 1 of 64, 570 and 1518 bytes with check sequence, here without it.
inline constexpr uint16_t kImixLengths[12] = {60, 566, 60, 60, 566, 60, 1514, 60, 566, 60, 566, 60};

}  // namespace headrace
