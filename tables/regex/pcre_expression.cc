#define PCRE2_CODE_UNIT_WIDTH 8
#include "tables/regex/pcre_expression.hh"

#include <fmt/format.h>
#include <pcre2.h>

namespace headrace {

namespace {

constexpr size_t kFirstStack = 32 * 1024, kMostStack = 512 * 1024;
constexpr uint32_t kHeapKib = 4096;

int count_step(pcre2_callout_block*, void* left) {
  uint64_t& steps = *static_cast<uint64_t*>(left);
  if (steps == 0) return PCRE2_ERROR_CALLOUT;
  --steps;
  return 0;
}

/// What a search needs beside the expression. Only places are asked for, so one pair of them is enough.
class Workspace {
 public:
  Workspace()
      : data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        stack_(pcre2_jit_stack_create(kFirstStack, kMostStack, nullptr)) {
    if (!context_) return;
    pcre2_set_callout(context_, count_step, &left_);
    pcre2_set_heap_limit(context_, kHeapKib);
    if (stack_) pcre2_jit_stack_assign(context_, nullptr, stack_);
  }
  ~Workspace() {
    pcre2_jit_stack_free(stack_);
    pcre2_match_context_free(context_);
    pcre2_match_data_free(data_);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  int match(const pcre2_code* code, std::string_view subject, uint32_t from, const PcreLimits& limits) {
    if (!data_ || !context_) return PCRE2_ERROR_NOMEMORY;
    left_ = limits.steps;
    pcre2_set_match_limit(context_, limits.matches);
    pcre2_set_depth_limit(context_, limits.depth);
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), from, 0, data_, context_);
  }
  const PCRE2_SIZE* places() const { return pcre2_get_ovector_pointer(data_); }

 private:
  pcre2_match_data* data_;
  pcre2_match_context* context_;
  pcre2_jit_stack* stack_;
  uint64_t left_ = 0;
};

Workspace& workspace() {
  thread_local Workspace mine;
  return mine;
}

}  // namespace

void PcreExpression::Free::operator()(pcre2_real_code_8* code) const { pcre2_code_free(code); }

std::string PcreExpression::compile(std::string_view text, const Options& options) {
  const RegexFlags& flags = options.flags;
  // A callout before every item counts what a search costs.
  const uint32_t bits = PCRE2_NEVER_UTF | (flags.nocase ? PCRE2_CASELESS : 0) | (flags.dotall ? PCRE2_DOTALL : 0) |
                        (flags.multiline ? PCRE2_MULTILINE : 0) | (flags.extended ? PCRE2_EXTENDED : 0) |
                        (options.anchored ? PCRE2_ANCHORED : 0) | (options.end_only ? PCRE2_DOLLAR_ENDONLY : 0) |
                        (options.ungreedy ? PCRE2_UNGREEDY : 0) | (options.counted ? PCRE2_AUTO_CALLOUT : 0);
  int fault = 0;
  PCRE2_SIZE at = 0;
  code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), bits, &fault, &at, nullptr),
              Free());
  if (!code_) {
    PCRE2_UCHAR message[256];
    pcre2_get_error_message(fault, message, sizeof message);
    return fmt::format("{} (at offset {})", reinterpret_cast<const char*>(message), at);
  }
  uint32_t all_bits = 0;
  pcre2_pattern_info(code_.get(), PCRE2_INFO_ALLOPTIONS, &all_bits);
  anchored_ = (all_bits & PCRE2_ANCHORED) != 0;
  return {};
}

// Where that is not possible the expression is interpreted.
void PcreExpression::translate() { pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE); }

PcreExpression::Result PcreExpression::search(std::string_view subject, uint32_t from, const PcreLimits& limits,
                                              Found& found) const {
  Workspace& space = workspace();
  const int result = space.match(code_.get(), subject, from, limits);
  if (result == PCRE2_ERROR_NOMATCH) return Result::kNo;
  if (result < 0) return Result::kCut;
  // 0: there were groups for which no place was kept.
  const PCRE2_SIZE* const places = space.places();
  // \K may put the beginning behind the end.
  found.begin = static_cast<uint32_t>(places[0] < places[1] ? places[0] : places[1]);
  found.end = static_cast<uint32_t>(places[1]);
  return Result::kYes;
}

}  // namespace headrace
