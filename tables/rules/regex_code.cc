#include "tables/rules/regex_code.hh"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace headrace::rules {

namespace {

/// What a thread needs to match.
struct Matcher {
  static constexpr size_t kStackStart = size_t{64} << 10, kStackMost = size_t{512} << 10;

  Matcher()
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(kStackStart, kStackMost, nullptr)) {
    if (!context) return;
    pcre2_set_match_limit(context, RegexCode::kMatchLimit);
    pcre2_set_depth_limit(context, RegexCode::kDepthLimit);
    if (stack) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Matcher() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

}  // namespace

std::shared_ptr<const RegexCode> RegexCode::compile(std::string_view pattern, uint32_t options, std::string& error) {
  int number = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* const code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                         options | PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C, &number, &at, nullptr);
  if (!code) {
    PCRE2_UCHAR text[256];
    pcre2_get_error_message(number, text, sizeof text);
    error = reinterpret_cast<const char*>(text);
    error += " (at byte " + std::to_string(at) + ")";
    return nullptr;
  }
  return std::shared_ptr<const RegexCode>(new RegexCode(code));
}

// Where there is no just-in-time compiler, the interpreter does it.
void RegexCode::translate() const { pcre2_jit_compile(code_, PCRE2_JIT_COMPLETE); }

RegexCode::~RegexCode() { pcre2_code_free(code_); }

RegexCode::Outcome RegexCode::find(std::string_view subject, uint32_t from, Found& found) const {
  thread_local Matcher matcher;
  if (!matcher.data || !matcher.context) return Outcome::kLimit;
  const int result = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), from, 0,
                                 matcher.data, matcher.context);
  if (result == PCRE2_ERROR_NOMATCH) return Outcome::kNoMatch;
  if (result < 0) return Outcome::kLimit;
  const PCRE2_SIZE* const at = pcre2_get_ovector_pointer(matcher.data);
  // \K may put the beginning behind the end.
  found.begin = static_cast<uint32_t>(at[0] < at[1] ? at[0] : at[1]);
  found.end = static_cast<uint32_t>(at[1]);
  return Outcome::kMatch;
}

}  // namespace headrace::rules
