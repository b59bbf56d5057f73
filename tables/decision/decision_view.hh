#pragma once
/// \file
/// The part of a decision program that shaders use: a trivially copyable view, and the match itself. Read by the host
/// compiler and by NVRTC.

#include <headrace/shader_types.hh>

namespace headrace {

/// Where the words that a step tests lie. A program over whole frames (Classifier) uses only kFrame, one over IP
/// packets (IPFilter) the other three; both count from zero, so a view holds three lengths and no kind.
namespace decision_section {
inline constexpr uint32_t kFrame = 0;      // from the first byte of the packet's data
inline constexpr uint32_t kMac = 0;        // from the first byte of the MAC header
inline constexpr uint32_t kNetwork = 1;    // from the first byte of the IP header
inline constexpr uint32_t kTransport = 2;  // from the first byte behind the IP header
inline constexpr uint32_t kCount = 3;
}  // namespace decision_section

/// One test: `(word & mask) == value`, and where to go. Words, masks and values are as they lie in memory, unswapped.
/// Targets: a step's index, or kFirstOutput - n for output n, or kNowhere to drop.
struct DecisionStep {
  uint32_t mask;
  uint32_t value;
  int32_t yes;
  int32_t no;
  int32_t on_short;     // the target when the packet ends before the tested bytes do
  uint16_t offset;      // of the word, bytes from the section's begin; any alignment
  uint8_t section;      // decision_section
  uint8_t needed;       // how many bytes of the word the mask reaches, 1 to 4
  uint32_t first_case;  // further values tested under the same mask, ordered; case_count 0: none
  uint32_t case_count;
};
static_assert(sizeof(DecisionStep) == 32, "two steps share a cache line");

/// One of several values that a step compares with.
struct DecisionCase {
  uint32_t value;
  int32_t target;
};

/// A decision program for shaders: pointers into the owner's image and a few scalars. Matching takes no locks and
/// writes nothing, so that one view serves any number of threads as long as its DecisionProgram, or its copy on a
/// device, lives.
struct DecisionView {
  static constexpr int kDrop = -1;             ///< match(): no rule wants the packet.
  static constexpr int32_t kNowhere = -1;      ///< Target: drop.
  static constexpr int32_t kFirstOutput = -2;  ///< Target: output 0; output n is kFirstOutput - n.
  static constexpr uint32_t kLinear = 4;       ///< Up to this many cases are compared one after the other.

  const DecisionStep* steps;
  const DecisionCase* cases;
  int32_t entry;  ///< The first step, or a final target.
  /// Bytes a packet needs in each section so that no test can run past its end.
  uint32_t enough[decision_section::kCount];

  bool operator==(const DecisionView&) const = default;

  /// The output for a packet, or kDrop. `Words` gives the packet's bytes:
  ///
  ///     uint32_t length(uint32_t section) const;                 // bytes from the section's begin to the packet's end
  ///     uint32_t load(uint32_t section, uint32_t offset) const;  // four bytes, unswapped; all lie within length()
  ///     uint8_t byte(uint32_t section, uint32_t offset) const;   // one byte within length()
  ///
  /// A section that a packet lacks has length 0. A test whose bytes are not all there takes the step's on_short target.
  template <class Words>
  HEADRACE_SHADER int match(const Words& words) const {
    int32_t at = entry;
    if (words.length(0) >= enough[0] && words.length(1) >= enough[1] && words.length(2) >= enough[2]) {
      while (at >= 0) {
        const DecisionStep& step = steps[at];
        at = follow(step, words.load(step.section, step.offset));
      }
    } else {
      while (at >= 0) at = follow_checked(steps[at], words);
    }
    return kFirstOutput - at;
  }

 private:
  HEADRACE_SHADER int32_t follow(const DecisionStep& step, uint32_t word) const {
    word &= step.mask;
    if (word == step.value) return step.yes;
    if (step.case_count == 0) return step.no;
    return choose(step, word);
  }

  HEADRACE_SHADER int32_t choose(const DecisionStep& step, uint32_t word) const {
    const DecisionCase* first = cases + step.first_case;
    uint32_t count = step.case_count;
    // Halves the range until few are left; what remains holds the value if any does.
    while (count > kLinear) {
      const uint32_t half = count / 2;
      first += first[half].value <= word ? half : 0;
      count -= half;
    }
    for (uint32_t i = 0; i < count; ++i) {
      if (first[i].value == word) return first[i].target;
    }
    return step.no;
  }

  template <class Words>
  HEADRACE_SHADER int32_t follow_checked(const DecisionStep& step, const Words& words) const {
    const uint32_t length = words.length(step.section);
    const uint32_t offset = step.offset;
    if (offset + 4 <= length) return follow(step, words.load(step.section, offset));
    if (offset + step.needed > length) return step.on_short;
    uint32_t word = 0;
    for (uint32_t i = 0; i < step.needed; ++i) {
      word |= static_cast<uint32_t>(words.byte(step.section, offset + i)) << (8 * i);
    }
    return follow(step, word);
  }
};

}  // namespace headrace
