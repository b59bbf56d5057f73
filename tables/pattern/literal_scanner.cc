#include "tables/pattern/literal_scanner.hh"

#include <fmt/format.h>
#include <hs/hs.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <tuple>

namespace headrace {

namespace {

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
  scratch_.reset();
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

  auto scratch = std::make_unique<PerThread<Scratch>>();
  for (int thread = 0; thread < scratch->size(); ++thread) {
    hs_scratch_t* made = nullptr;
    const hs_error_t result =
        thread == 0 ? hs_alloc_scratch(database, &made) : hs_clone_scratch((*scratch)[0].get(), &made);
    if (result != HS_SUCCESS)
      return errors.error("Vectorscan: no memory for the scratch of {} threads", scratch->size());
    (*scratch)[thread].reset(made);
  }
  hs_scratch_size((*scratch)[0].get(), &scratch_bytes_);
  scratch_ = std::move(scratch);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return {};
}

struct LiteralScanner::Run {
  const LiteralScanner& scanner;
  Report report;
  void* context;
};

int LiteralScanner::on_report(unsigned id, unsigned long long, unsigned long long to, unsigned, void* context) {
  const Run& run = *static_cast<const Run*>(context);
  for (uint32_t i = run.scanner.begins_[id]; i < run.scanner.begins_[id + 1]; ++i) {
    if (!run.report(run.context, run.scanner.numbers_[i], static_cast<uint32_t>(to))) return 1;
  }
  return 0;
}

bool LiteralScanner::run(const PayloadBytes& bytes, Report report, void* context) const {
  if (!database_ || bytes.length == 0) return true;
  Run run{*this, report, context};
  return hs_scan(database_.get(), reinterpret_cast<const char*>(bytes.data), bytes.length, 0, scratch_->local().get(),
                 on_report, &run) == HS_SUCCESS;
}

std::string LiteralScanner::description() const {
  return fmt::format("Vectorscan {}: {:.1f} MB and {} KB a thread, built in {:.2f} s", hs_version(),
                     static_cast<double>(database_bytes_) / 1e6, scratch_bytes_ / 1024, seconds_);
}

}  // namespace headrace
