#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <headrace/element.hh>
#include <memory>
#include <mutex>
#include <vector>

namespace headrace {

/// Base of elements that put fragments together. It keeps them, by what tells packets apart, and gives up what does not
/// become complete; a subclass knows the headers. Arguments and handlers are those of IPReassembler.
class Reassembler : public SimpleElement {
 public:
  static constexpr Processing kProcessing{"a/ah"};

  Reassembler();
  ~Reassembler() override;

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

 protected:
  /// What fragments of one packet have in common, 0 behind it.
  using Key = std::array<uint8_t, 36>;
  enum class Kind {
    kWhole,     ///< not a fragment
    kFragment,  ///< one that fits
    kBad,       ///< malformed
    kTiny,      ///< a first fragment without all headers that filters look at, or one that would overwrite these
  };
  /// Where a fragment's data lies.
  struct Place {
    Key key{};
    int header = 0;  ///< bytes in front of the data, from the network header on
    int begin = 0;   ///< of the data in the packet's
    int length = 0;
    bool last = false;
  };
  struct Fragment {
    Packet* packet;
    int begin, length, header;

    const uint8_t* data() const { return packet->network_header() + header; }
  };
  /// What there is of a packet.
  struct Part {
    int begin = 0, length = 0;  ///< of its data; length counts gaps, too
    bool whole = false;
    bool has_last = false;
  };

  virtual Kind look(const Packet& p, Place& place) const = 0;
  /// The bytes of the header of what is put together, whose model is the first fragment, or another if there is none.
  virtual int header_length(const Fragment& model, const Part& part) const = 0;
  /// Writes this header.
  virtual void write_header(uint8_t* header, int length, const Fragment& model, const Part& part) const = 0;
  /// The most bytes of a packet, with its header.
  virtual int most_bytes() const = 0;
  /// For `dump`. \param ports the first four bytes of the data, as two numbers
  virtual std::string name_of(const Key& key, const uint16_t (&ports)[2]) const = 0;

 private:
  enum Reason : int;
  enum Count { kSeen, kGood, kFailed, kBad, kCounts };

  /// Offsets in the data of a packet that have arrived.
  struct Chunk {
    int begin, end;
  };
  struct Datagram {
    Key key{};
    bool has_last = false;
    bool worthless = false;           // fragments overlapped: nothing is kept of it but that
    int end = 0;                      // of the data that has arrived, or of all data once the last fragment has
    int longest = 0;                  // of its fragments, with header
    int64_t last_sec = 0;             // when the last fragment arrived, by its timestamp
    int64_t last_steady = 0;          // the same, by the clock
    std::vector<Chunk> chunks;        // by offset, neither overlapping nor adjacent
    std::vector<Fragment> fragments;  // in order of arrival

    bool overlaps(Chunk chunk) const;
    void cover(Chunk chunk);
    void add(const Fragment& fragment, bool last);
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

  Bucket& bucket_of(const Key& key);
  /// Keeps a fragment; the datagram if that completes it. The packet is taken in any case.
  std::unique_ptr<Datagram> keep(Packet* p, const Place& place, int64_t now);
  /// Counts and drops all fragments of a datagram that others overlap.
  void spoil(Datagram& datagram);
  bool is_full(uint32_t memory, uint32_t kept) const;
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

}  // namespace headrace
