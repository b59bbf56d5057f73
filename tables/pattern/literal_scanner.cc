#include "tables/pattern/literal_scanner.hh"

#include <fmt/format.h>
#include <hs/hs.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <tuple>

namespace headrace {

namespace {

/// Behind a payload, so that what the library forgets is no part of it.
constexpr uint32_t kPadding = 64;

bool is_plain(unsigned char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

/// The bytes as a regular expression. The library's interface for plain literals ends them at a zero byte in 5.4.9;
/// what it makes of these is the same.
std::string expression_of(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(byte)) {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", byte);
    }
  }
  return text;
}

/// Without letters both cases are one, and equal patterns are found as such.
bool either_case(const Pattern& pattern) {
  return pattern.nocase && std::any_of(pattern.bytes.begin(), pattern.bytes.end(),
                                       [](char c) { return is_letter(static_cast<unsigned char>(c)); });
}

}  // namespace

void LiteralScanner::FreeDatabase::operator()(hs_database* database) const { hs_free_database(database); }
void LiteralScanner::FreeScratch::operator()(hs_scratch* scratch) const { hs_free_scratch(scratch); }

LiteralScanner::LiteralScanner() = default;
LiteralScanner::~LiteralScanner() = default;

Status LiteralScanner::build(const PatternSet& set, Errors& errors) {
  const auto began = std::chrono::steady_clock::now();
  database_.reset();
  spaces_.reset();
  filter_ = LiteralFilter();
  padded_ = false;
  begins_.clear();
  numbers_.resize(set.size());
  if (set.empty()) return {};

  const auto key = [&](uint32_t number) {
    return std::tuple(either_case(set[number]), std::string_view(set[number].bytes));
  };
  std::iota(numbers_.begin(), numbers_.end(), 0u);
  std::stable_sort(numbers_.begin(), numbers_.end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  std::vector<std::string> texts;
  std::vector<unsigned> flags, ids;
  for (uint32_t i = 0; i < numbers_.size(); ++i) {
    if (i != 0 && key(numbers_[i]) == key(numbers_[i - 1])) continue;
    begins_.push_back(i);
    ids.push_back(static_cast<unsigned>(ids.size()));
    texts.push_back(expression_of(set[numbers_[i]].bytes));
    flags.push_back(HS_FLAG_DOTALL | (either_case(set[numbers_[i]]) ? HS_FLAG_CASELESS : 0));
  }
  begins_.push_back(static_cast<uint32_t>(numbers_.size()));
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());

  hs_database_t* database = nullptr;
  hs_compile_error_t* fault = nullptr;
  if (hs_compile_multi(pointers.data(), flags.data(), ids.data(), static_cast<unsigned>(pointers.size()), HS_MODE_BLOCK,
                       nullptr, &database, &fault) != HS_SUCCESS) {
    const std::string text = fault->message;
    const int expression = fault->expression;
    hs_free_compile_error(fault);
    if (expression < 0) return errors.error("Vectorscan: {}", text);
    const uint32_t number = numbers_[begins_[static_cast<size_t>(expression)]];
    return errors.error("Vectorscan: pattern {} ({}): {}", number, unparse_pattern(set[number]), text);
  }
  database_.reset(database);
  hs_database_size(database, &database_bytes_);

  auto spaces = std::make_unique<PerThread<Space>>();
  for (int thread = 0; thread < spaces->size(); ++thread) {
    hs_scratch_t* made = nullptr;
    const hs_error_t result =
        thread == 0 ? hs_alloc_scratch(database, &made) : hs_clone_scratch((*spaces)[0].scratch.get(), &made);
    if (result != HS_SUCCESS)
      return errors.error("Vectorscan: no memory for the scratch of {} threads", spaces->size());
    (*spaces)[thread].scratch.reset(made);
  }
  hs_scratch_size((*spaces)[0].scratch.get(), &scratch_bytes_);
  spaces_ = std::move(spaces);
  filter_.build(set);
  if (forgets_tails(set)) {
    for (int thread = 0; thread < spaces_->size(); ++thread) {
      (*spaces_)[thread].padded = std::make_unique<uint8_t[]>(kLargestPayload + kPadding);
    }
    padded_ = true;
  }
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return {};
}

bool LiteralScanner::excluded(const PayloadBytes& bytes) const {
  constexpr int kMemory = 32;
  constexpr uint32_t kRest = 64;
  // Filter and search are often the first that read a payload, and faster than memory.
  constexpr uint32_t kLine = 64, kMost = 2048;
  for (uint32_t at = kLine; at < bytes.length && at < kMost; at += kLine) __builtin_prefetch(bytes.data + at);
  if (!filter_.useful() || bytes.length > kLargestPayload) return false;
  Space& space = spaces_->local();
  if (space.passing > 0 && ++space.turn % kRest != 0) return false;
  const bool excluded = filter_.excludes(bytes);
  space.passing = std::clamp(space.passing + (excluded ? -1 : 1), -kMemory, kMemory);
  return excluded;
}

/// Vectorscan up to 5.4.12 looks for a first byte that any match needs with vectors of 64 bytes where the processor has
/// AVX-512, and forgets most of the bytes behind the last whole vector. Which databases do that cannot be asked, so
/// some patterns are put at the end of payloads of one byte; for all bytes, since a byte that a match needs hides the
/// fault.
bool LiteralScanner::forgets_tails(const PatternSet& set) const {
  constexpr size_t kPatternsTried = 32;
  constexpr size_t kVector = 64;
  std::vector<uint8_t> space(2 * kVector + kLongestPattern + 3 * kVector);
  uint8_t* const aligned = space.data() + (kVector - reinterpret_cast<uintptr_t>(space.data()) % kVector) % kVector;
  for (size_t i = 0; i < std::min(kPatternsTried, set.size()); ++i) {
    const std::string& bytes = set[i * set.size() / std::min(kPatternsTried, set.size())].bytes;
    for (const size_t tail : {1, 8, 24}) {
      const size_t length = (bytes.size() / kVector + 2) * kVector + tail;
      for (int filler = 0; filler < 256; ++filler) {
        std::fill_n(aligned, length, static_cast<uint8_t>(filler));
        std::copy(bytes.begin(), bytes.end(), aligned + length - bytes.size());
        bool found = false;
        const auto report = [](void* context, uint32_t, uint32_t) {
          *static_cast<bool*>(context) = true;
          return false;
        };
        (void)run({aligned, static_cast<uint32_t>(length)}, report, &found);
        if (!found) return true;
      }
    }
  }
  return false;
}

struct LiteralScanner::Run {
  const LiteralScanner& scanner;
  Report report;
  void* context;
  uint32_t length;
  bool stopped = false;
};

int LiteralScanner::on_report(unsigned id, unsigned long long, unsigned long long to, unsigned, void* context) {
  Run& run = *static_cast<Run*>(context);
  if (to > run.length) return 1;
  for (uint32_t i = run.scanner.begins_[id]; i < run.scanner.begins_[id + 1]; ++i) {
    if (!run.report(run.context, run.scanner.numbers_[i], static_cast<uint32_t>(to))) {
      run.stopped = true;
      return 1;
    }
  }
  return 0;
}

bool LiteralScanner::run(const PayloadBytes& bytes, Report report, void* context) const {
  if (!database_ || bytes.length == 0) return true;
  if (bytes.length > kLargestPayload) return false;
  Space& space = spaces_->local();
  const uint8_t* data = bytes.data;
  uint32_t length = bytes.length;
  if (padded_) {
    std::memcpy(space.padded.get(), bytes.data, bytes.length);
    data = space.padded.get();
    length += kPadding;
  }
  Run run{*this, report, context, bytes.length};
  const hs_error_t result =
      hs_scan(database_.get(), reinterpret_cast<const char*>(data), length, 0, space.scratch.get(), on_report, &run);
  return !run.stopped && (result == HS_SUCCESS || result == HS_SCAN_TERMINATED);
}

std::string LiteralScanner::description() const {
  return fmt::format("Vectorscan {}: {:.1f} MB and {} KB a thread, built in {:.2f} s{}", hs_version(),
                     static_cast<double>(database_bytes_) / 1e6, scratch_bytes_ / 1024, seconds_,
                     padded_ ? ", scans padded copies" : "");
}

}  // namespace headrace
