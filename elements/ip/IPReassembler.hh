#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <headrace/element.hh>
#include <memory>
#include <mutex>
#include <vector>

#include "headrace/headers.hh"

namespace headrace {

/// Puts the fragments of IP packets together (RFC 791, 3.2; RFC 815; RFC 1122, 3.3.2).
///
///     IPReassembler([keyword HIMEM, TIMEOUT, MAX_MTU_ANNO])
///
/// Input: IP packets with a network header. Output 0: packets that are not fragments, unchanged, and reassembled
/// packets, with the bytes before the header of the first fragment and its annotations. Output 1 (optional): incomplete
/// packets that received no fragment for TIMEOUT or were evicted, from the first byte received on; missing bytes are
/// zero. Connect it to ICMPError(..., timeexceeded, reassembly), which answers only packets whose first fragment was
/// received. Without output 1 they are dropped and counted. All workers share the fragments.
///
/// Duplicate fragments are dropped. If fragments overlap, the whole packet is dropped, including fragments that arrive
/// later (RFC 5722). First TCP fragments that end before the TCP flags, and fragments that would overwrite the flags,
/// are also dropped (RFC 1858, RFC 3128).
///
/// HIMEM: maximum number of bytes kept; beyond it, old fragments are evicted until a quarter is free. At most an eighth
/// of all packet buffers is used. Default 256 KiB.
/// TIMEOUT: in seconds; default 30.
/// MAX_MTU_ANNO: a two-byte annotation that gets the length of the longest fragment of a complete packet.
///
/// In a hot swap the fragments are transferred to the new IPReassembler.
///
/// Handlers: `dump` (r) counts and incomplete packets, as text.
class IPReassembler final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  IPReassembler();
  ~IPReassembler() override;

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    if (mtu_annotation_ < 0) return {};
    return {{Anchor::kAnno, mtu_annotation_, 2, false, true}};
  }
  Status initialize(Errors& errors) override;
  void run_timer(Timer& timer) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return kept_.load(std::memory_order_relaxed); }
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
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
    bool worthless = false;           // fragments overlapped: nothing is kept of it but that
    int end = 0;                      // of the data that has arrived, or of all data once the last fragment has
    int longest = 0;                  // of its fragments, with header
    int64_t last_sec = 0;             // when the last fragment arrived, by its timestamp
    int64_t last_steady = 0;          // the same, by the clock
    std::vector<Chunk> chunks;        // by offset, neither overlapping nor adjacent
    std::vector<Fragment> fragments;  // in order of arrival

    bool is_part(const Ip4Header& ip) const;
    bool overlaps(Chunk chunk) const;
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
  /// Counts and drops all fragments of a datagram that others overlap.
  void spoil(Datagram& datagram);
  bool is_full(uint32_t memory, uint32_t kept) const;
  static const uint8_t* data_of(const Fragment& f);
  /// Makes one packet of fragments, which it consumes; null, and counted, when that cannot be.
  Packet* assemble(Datagram& datagram);
  using Condition = std::function<bool(const Datagram&)>;
  /// Gives up the datagrams for which `condition` holds.
  void reap(const Condition& condition, Reason reason, Emitter& emit);
  /// Gives up old datagrams, and others if there are not enough, until a quarter of the room is free.
  void make_room(int64_t now, Emitter& emit);
  std::string dump();

  uint32_t high_memory_ = 256 * 1024;
  uint32_t most_kept_ = 0;
  uint32_t timeout_ = 30;
  int mtu_annotation_ = -1;
  uint64_t seed_;
  std::array<Bucket, kBuckets> buckets_;
  std::atomic<uint32_t> memory_{0};
  std::atomic<uint32_t> kept_{0};  // fragments
  std::atomic<int64_t> next_reap_{0};
  ThreadCounters counts_{kCounts};
  Timer timer_{this};
};

HEADRACE_ELEMENT(IPReassembler)

}  // namespace headrace
