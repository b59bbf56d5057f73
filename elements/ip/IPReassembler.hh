#pragma once
#include <array>
#include <atomic>
#include <headrace/element.hh>
#include <memory>
#include <mutex>
#include <vector>

#include "headrace/headers.hh"

namespace headrace {

/// Puts the fragments of IP packets together (RFC 791, 3.2; RFC 815; RFC 1122, 3.3.2).
///
///     IPReassembler([keyword HIMEM, MAX_MTU_ANNO])
///
/// Input: IP packets with a network header. Output 0: packets that are no fragments, unchanged, and complete packets,
/// with what lay before the header of the first fragment and its annotations. Where fragments overlap, the later one
/// counts. Output 1 (optional): what has arrived of packets to which nothing was added for 30 seconds, or that had to
/// make room; bytes that have not arrived are zero. Without it that is dropped and counted. All workers share the
/// fragments.
///
/// HIMEM: bytes of fragments that are kept; beyond them old ones go until a quarter is free. Default 256 KiB.
/// MAX_MTU_ANNO: a two-byte annotation that gets the length of the longest fragment of a complete packet.
///
/// Handlers: `dump` (r) counts and what is waiting, as text.
class IPReassembler final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  IPReassembler();
  ~IPReassembler() override;

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  enum Reason : int;
  enum Count { kSeen, kGood, kFailed, kBad, kCounts };

  /// Offsets in the data of a packet that have arrived.
  struct Chunk {
    int begin, end;
  };
  struct Fragment {
    Packet* packet;
    int begin, length;
  };
  struct Datagram {
    IpAddress src, dst;
    uint16_t id;
    uint8_t protocol;
    bool has_last = false;
    int end = 0;                      // of the data that has arrived, or of all data once the last fragment has
    int longest = 0;                  // of its fragments, with header
    int64_t last_sec = 0;             // when the last fragment arrived
    std::vector<Chunk> chunks;        // by offset, neither overlapping nor adjacent
    std::vector<Fragment> fragments;  // in order of arrival

    bool is_part(const Ip4Header& ip) const;
    void cover(Chunk chunk);
    bool complete() const;
    const Fragment* first() const;
    uint32_t memory() const;
  };
  using Datagrams = std::vector<std::unique_ptr<Datagram>>;
  struct alignas(64) Bucket {
    std::mutex mutex;
    Datagrams datagrams;
  };
  static constexpr size_t kBuckets = 256;

  Bucket& bucket_of(const Ip4Header& ip);
  /// Keeps a fragment; the datagram if that completes it. The packet is taken in any case.
  std::unique_ptr<Datagram> keep(Packet* p, const Ip4Header& ip, Chunk chunk, int64_t now);
  static const uint8_t* data_of(const Fragment& f);
  /// Makes one packet of fragments, which it consumes; null, and counted, when that cannot be.
  Packet* assemble(Datagram& datagram);
  /// Gives up datagrams that have been quiet for longer than `quiet` seconds, until only `memory` bytes are kept.
  void reap(int64_t now, int64_t quiet, uint32_t memory, Reason reason, Emitter& emit);
  std::string dump();

  uint32_t high_memory_ = 256 * 1024;
  int mtu_annotation_ = -1;
  const uint32_t seed_;
  std::array<Bucket, kBuckets> buckets_;
  std::atomic<uint32_t> memory_{0};
  std::atomic<int64_t> next_reap_{0};
  ThreadCounters counts_{kCounts};
};

HEADRACE_ELEMENT(IPReassembler)

}  // namespace headrace
