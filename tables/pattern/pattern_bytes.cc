#include "tables/pattern/pattern_bytes.hh"

namespace headrace {

PatternBytes::PatternBytes(const PatternSet& set) : begins_(set.size()) {
  size_t words = 0;
  for (const Pattern& pattern : set) words += (pattern.bytes.size() + 3) / 4;
  words_ = DeviceArray<PatternWord>(words);
  uint32_t next = 0;
  for (size_t number = 0; number < set.size(); ++number) {
    const Pattern& pattern = set[number];
    begins_[number] = next;
    for (size_t i = 0; i < pattern.bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(pattern.bytes[i]);
      const bool either = pattern.nocase && is_letter(byte);
      PatternWord& word = words_[next + i / 4];
      word.bytes |= uint32_t{either ? fold_case(byte) : byte} << (8 * (i % 4));
      if (either) word.either_case |= uint32_t{0x20} << (8 * (i % 4));
    }
    next += static_cast<uint32_t>((pattern.bytes.size() + 3) / 4);
  }
}

}  // namespace headrace
