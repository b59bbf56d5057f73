/// Fuzzes pattern matching: for any patterns and payload, the CPU and all engines find what a naive search finds.
/// Patterns also come through their text form.
///
/// An input: a byte with the number of patterns (low 5 bits) and whether to take only four different bytes (bit 7); for
/// each pattern a byte with its length (low 6 bits, plus one) and whether both cases match (bit 7), and its bytes; the
/// rest is the payload.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "unit/tables/pattern_naive.hh"

namespace {

using namespace headrace;

void require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::string bytes(std::size_t count, bool few) {
    std::string text;
    while (text.size() < count && size_ != 0) text += few ? "aAb\xff"[byte() & 3] : static_cast<char>(byte());
    return text;
  }
  bool empty() const { return size_ == 0; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 8192) return 0;
  Input input(data, size);
  const uint8_t head = input.byte();
  const bool few = (head & 0x80) != 0;
  PatternSet set;
  Errors errors;
  for (int i = 0; i < (head & 31) && !input.empty(); ++i) {
    const uint8_t shape = input.byte();
    Pattern pattern{input.bytes((shape & 63) + 1u, few), (shape & 0x80) != 0};
    if (pattern.bytes.empty()) continue;
    Pattern again;
    require(parse_pattern(unparse_pattern(pattern), again).empty() && again == pattern,
            "text: " + unparse_pattern(pattern));
    require(set.add(pattern, errors).ok(), errors.str());
  }
  const std::string payload = input.bytes(8192, few);
  if (set.empty()) {
    // As the text of a pattern.
    Pattern pattern, again;
    if (parse_pattern(payload, pattern).empty())
      require(parse_pattern(unparse_pattern(pattern), again).empty() && again == pattern, payload);
    return 0;
  }
  const AllEngines engines(std::move(set));
  const std::string wrong = engines.compare(payload);
  require(wrong.empty(), wrong);
  return 0;
}
