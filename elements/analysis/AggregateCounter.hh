#pragma once
#include <atomic>
#include <headrace/element.hh>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/single_writer.hh"

namespace headrace {

/// Counts packets or bytes for each value of the aggregate annotation.
///
///     AggregateCounter([keyword BYTES, IP_BYTES, MULTIPACKET, EXTRA_LENGTH, AGGREGATE_STOP, AGGREGATE_FREEZE,
///                      AGGREGATE_CALL, COUNT_STOP, COUNT_FREEZE, COUNT_CALL, BANNER, CAPACITY])
///
/// Packets pass unchanged. With a second output and push connections, packets that were not counted leave there. A
/// frozen AggregateCounter counts only for aggregates that it has seen. The second input (optional) is always frozen.
/// Each worker counts for itself; handlers show sums.
///
/// BYTES true: counts bytes, not packets. Default false.
/// IP_BYTES true: bytes before the network header do not count. Default false.
/// MULTIPACKET true: a packet counts for as many more as its extra packets annotation says. Default true.
/// EXTRA_LENGTH true: bytes include the extra length annotation. Default true.
/// AGGREGATE_STOP, AGGREGATE_FREEZE: when there are N aggregates and another comes, stops the router, or freezes.
/// AGGREGATE_CALL: "N HANDLER [VALUE]"; writes VALUE to HANDLER then. Only one of these three may be given.
/// COUNT_STOP, COUNT_FREEZE, COUNT_CALL: the same when the total count reaches N. Each makes all workers share a total.
/// BANNER: text at the beginning of files.
/// CAPACITY: aggregates that fit; more are not counted. Default 1048576. Memory is used as aggregates come: up to 8
/// bytes for each, and 8 for each in every worker.
///
/// Handlers: `write_file`, `write_text_file`, `write_ip_file`, `write_pdf_file` (w) write aggregates and counts to a
/// file (`-`: standard output), as binary numbers, as text, with aggregates as IP addresses, or with the share of each
/// in the total; `write_ascii_file` is `write_text_file`. `freeze`, `active` (rw); `stop` (w) stops counting and the
/// router; `counts_pdf`, `reaggregate_counts` (w) count how many aggregates have each count; `clear` (w); `banner`,
/// `aggregate_call`, `count_call` (rw); `nagg`, `count` (r) aggregates, and the total.
class AggregateCounter final : public Element {
 public:
  static constexpr Ports kPorts{"1-2/1-2"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  std::vector<RegionInfo> annotations() const override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;

 private:
  /// A handler that is called once, at a number.
  class Limit {
   public:
    Status read(const std::string& text, const char* keyword, Errors& errors);
    void set(uint64_t at, std::string call);
    Status bind(Element& element, Errors& errors);
    bool armed() const { return armed_.load(std::memory_order_relaxed); }
    bool reached(uint64_t n) const { return armed() && n >= at_; }
    /// The first caller calls the handler.
    void call();
    std::string unparse() const;

   private:
    uint64_t at_ = 0;
    HandlerCall call_;
    std::atomic<bool> armed_ = false;
  };
  enum class Format { kBinary, kText, kIp, kPdf };
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };
  /// Zeroed memory, which takes up space only where it is written.
  template <typename T>
  using Cells = std::unique_ptr<T[], FreeMemory>;
  using Sums = std::vector<std::pair<uint32_t, uint64_t>>;

  static Status read_limit(Limit& limit, const char* what, std::optional<uint64_t> stop, std::optional<uint64_t> freeze,
                           const std::string& call, const std::string& name, Errors& errors);
  /// True if the packet was counted.
  bool count(const Packet& p, bool frozen, Emitter* emit);
  uint64_t amount_of(const Packet& p) const;
  /// The place of an aggregate, or -1: it is new and `insert` is false, or there is no room.
  int64_t find(uint32_t aggregate, bool insert);
  void add(int64_t place, uint64_t amount);
  /// While no worker runs.
  void clear();
  void reaggregate();
  Sums sums() const;
  uint64_t total() const;
  Status write(const std::string& file, Format format, Errors& errors) const;
  void add_limit_handlers(Handlers& handlers, const char* name, Limit& limit);

  bool bytes_ = false;
  bool ip_bytes_ = false;
  bool multipacket_ = true;
  bool extra_length_ = true;
  std::string banner_;
  uint32_t capacity_ = 1 << 20;
  std::atomic<bool> frozen_ = false;
  std::atomic<bool> active_ = true;
  Limit aggregates_limit_, count_limit_;

  uint32_t mask_ = 0;
  Cells<std::atomic<uint64_t>> keys_;  // the aggregate + 1; 0: free. Linear probing
  PerThread<Cells<std::atomic<uint64_t>>> counts_;
  std::atomic<uint32_t> aggregates_ = 0;
  std::atomic<uint64_t> shared_total_ = 0;  // kept while there is a limit to it
};

HEADRACE_ELEMENT(AggregateCounter)

}  // namespace headrace
