#pragma once
/// \file
/// The search for patterns on the CPU.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "headrace/error.hh"
#include "headrace/worker.hh"
#include "tables/pattern/literal_filter.hh"
#include "tables/pattern/match_view.hh"
#include "tables/pattern/pattern_set.hh"

struct hs_database;
struct hs_scratch;

namespace headrace {

/// Longer payloads are not scanned but cut.
inline constexpr uint32_t kLargestPayload = 65535;

/// A set of patterns as a database of Vectorscan (or Hyperscan), and scratch memory for each thread that thread_id()
/// knows. Scans may run on all threads at once.
class LiteralScanner {
 public:
  LiteralScanner();
  ~LiteralScanner();
  LiteralScanner(const LiteralScanner&) = delete;
  LiteralScanner& operator=(const LiteralScanner&) = delete;

  /// Errors: the library's.
  Status build(const PatternSet& set, Errors& errors);

  /// Calls `on_match(pattern, end)` for each match, in the order of their ends. It may return false to end the scan;
  /// scan() is then false, as it is for payloads above
  /// kLargestPayload. Not for recursion: `on_match` must not scan.
  template <typename F>
  bool scan(const PayloadBytes& bytes, F&& on_match) const {
    if (bytes.length <= kShortPayload ? filter_.excludes(bytes) : excluded(bytes)) return true;
    const auto call = [](void* context, uint32_t pattern, uint32_t end) {
      auto& function = *static_cast<std::remove_reference_t<F>*>(context);
      if constexpr (std::is_void_v<decltype(function(pattern, end))>) {
        function(pattern, end);
        return true;
      } else {
        return function(pattern, end);
      }
    };
    return run(bytes, call, const_cast<void*>(static_cast<const void*>(&on_match)));
  }

  size_t database_bytes() const { return database_bytes_; }
  size_t scratch_bytes() const { return scratch_bytes_; }  ///< of one thread
  double build_seconds() const { return seconds_; }
  /// "Vectorscan: 5.4.9 ..., 434 KB and 30 KB a thread, built in 0.23 s"
  std::string description() const;

 private:
  using Report = bool (*)(void* context, uint32_t pattern, uint32_t end);
  struct FreeDatabase {
    void operator()(hs_database* database) const;
  };
  struct FreeScratch {
    void operator()(hs_scratch* scratch) const;
  };
  using Scratch = std::unique_ptr<hs_scratch, FreeScratch>;
  struct Run;
  /// What a thread needs for a scan.
  struct Space {
    Scratch scratch;
    std::unique_ptr<uint8_t[]> padded;
    // Of long payloads that the filter has looked at: more passed lately (above 0) or more were excluded.
    int passing = 0;
    uint32_t turn = 0;
  };

  /// Of these the filter takes a fraction of what the call of the search takes.
  static constexpr uint32_t kShortPayload = 64;
  /// True if the filter tells that nothing will be found in a longer one. It is not asked of each where most pass.
  bool excluded(const PayloadBytes& bytes) const;
  bool forgets_tails(const PatternSet& set) const;
  bool run(const PayloadBytes& bytes, Report report, void* context) const;
  static int on_report(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void* context);

  std::unique_ptr<hs_database, FreeDatabase> database_;
  LiteralFilter filter_;
  std::unique_ptr<PerThread<Space>> spaces_;
  bool padded_ = false;  // payloads are scanned with a tail behind them, see forgets_tails()
  // Equal patterns are one expression of the library; its numbers are [begins_[id], begins_[id + 1]) of numbers_.
  std::vector<uint32_t> begins_, numbers_;
  size_t database_bytes_ = 0;
  size_t scratch_bytes_ = 0;
  double seconds_ = 0;
};

}  // namespace headrace
