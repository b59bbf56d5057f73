#include "tables/sa/replay_window.hh"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace headrace {
namespace {

using Verdict = ReplayWindow::Verdict;

/// The definition: a set of numbers.
class NaiveWindow {
 public:
  NaiveWindow(uint32_t size, uint64_t first) : size_(size), first_(first), last_(first) {}

  Verdict verdict(uint64_t sequence) const {
    if (sequence > last_) return Verdict::kFresh;
    if (last_ - sequence >= size_) return Verdict::kTooOld;
    return sequence <= first_ || seen_.contains(sequence) ? Verdict::kReplayed : Verdict::kFresh;
  }
  bool update(uint64_t sequence) {
    if (verdict(sequence) != Verdict::kFresh) return false;
    seen_.insert(sequence);
    last_ = std::max(last_, sequence);
    while (last_ - *seen_.begin() > 2 * ReplayWindow::kLargest) seen_.erase(seen_.begin());
    return true;
  }
  uint64_t last() const { return last_; }
  void set_size(uint32_t size) { size_ = size; }

 private:
  uint32_t size_;
  uint64_t first_, last_;
  std::set<uint64_t> seen_;
};

struct Start {
  uint32_t size;
  bool extended;
  uint64_t last;
};

class ReplayWindows : public ::testing::TestWithParam<Start> {};

TEST_P(ReplayWindows, AnswerAsASetOfNumbersDoes) {
  const Start start = GetParam();
  std::mt19937_64 random(start.size + start.last);
  ReplayWindow window(start.size, start.extended, start.last);
  NaiveWindow naive(start.size, start.last);
  const uint64_t end = start.extended ? ~uint64_t{0} : 0xffffffffu;
  uint64_t fresh = 0, replayed = 0, too_old = 0;
  for (int i = 0; i < 40000; ++i) {
    const uint64_t last = naive.last();
    ASSERT_EQ(window.last(), last);
    uint64_t sequence = last;
    switch (random() % 16) {
      case 0:  // a jump that leaves the ring behind
        if (random() % 20 == 0) sequence += random() % 100000;
        break;
      case 1:
        if (start.extended && random() % 400 == 0) sequence += random() % 0xf0000000u;
        break;
      case 2:
      case 3:
        sequence += random() % (2 * start.size);
        break;
      case 4:
        sequence -= std::min<uint64_t>(sequence, start.size - 2 + random() % 5);
        break;
      default:
        sequence += random() % 8;
        sequence -= std::min<uint64_t>(sequence, random() % (start.size + start.size / 2));
    }
    if (sequence > end || (last > end / 2 && sequence < end / 2)) break;
    // What A2.1 cannot know: the low half of a number that is too old reads as one that lies ahead.
    const Verdict expected = naive.verdict(sequence);
    const ReplayWindow::Answer answer = window.check(static_cast<uint32_t>(sequence));
    if (!start.extended || expected != Verdict::kTooOld) {
      ASSERT_EQ(answer.verdict, expected) << sequence << " after " << last;
      ASSERT_EQ(answer.sequence_high, sequence >> 32);
    }
    fresh += expected == Verdict::kFresh;
    replayed += expected == Verdict::kReplayed;
    too_old += expected == Verdict::kTooOld;
    if (random() % 8 == 0) continue;  // the ICV was wrong
    ASSERT_EQ(window.update(sequence), naive.update(sequence));
  }
  if (start.last < end - 100000) {
    EXPECT_GT(fresh, 1000u);
    EXPECT_GT(replayed, 1000u);
    EXPECT_GT(too_old, 500u);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ReplayWindows,
                         ::testing::Values(Start{64, false, 0}, Start{65, false, 0}, Start{1000, false, 0},
                                           Start{4096, false, 0}, Start{64, false, 0xfffff000u},
                                           Start{4096, false, 0xffff0000u}, Start{64, true, 0}, Start{100, true, 0},
                                           Start{4096, true, 0}, Start{64, true, 0xfffffff0u},
                                           Start{128, true, 0x1ffffff00u}, Start{4096, true, 0xfffff000u},
                                           Start{4096, true, 0x5fffffc00u}, Start{64, true, ~uint64_t{0} - 5000},
                                           Start{4096, true, ~uint64_t{0} - 20000}));

TEST(ReplayWindow, FirstNumberIsOne) {
  ReplayWindow window(64);
  EXPECT_EQ(window.check(0).verdict, Verdict::kReplayed);
  EXPECT_EQ(window.check(1).verdict, Verdict::kFresh);
  EXPECT_TRUE(window.update(1));
  EXPECT_FALSE(window.update(1));
  EXPECT_EQ(window.check(2).verdict, Verdict::kFresh);
}

TEST(ReplayWindow, UpdateChecksAgain) {
  // Two copies of a packet are checked before either of them is known to be authentic.
  ReplayWindow window(64);
  EXPECT_EQ(window.check(10).verdict, Verdict::kFresh);
  EXPECT_EQ(window.check(10).verdict, Verdict::kFresh);
  EXPECT_TRUE(window.update(10));
  EXPECT_FALSE(window.update(10));
  // And the window may have moved on.
  EXPECT_EQ(window.check(11).verdict, Verdict::kFresh);
  EXPECT_TRUE(window.update(1000));
  EXPECT_FALSE(window.update(11));
  EXPECT_EQ(window.check(1000 - 63).verdict, Verdict::kFresh);
  EXPECT_EQ(window.check(1000 - 64).verdict, Verdict::kTooOld);
}

TEST(ReplayWindow, LowHalfWraps) {
  ReplayWindow window(64, true, 0xfffffffe);
  EXPECT_EQ(window.check(0xffffffff).sequence_high, 0u);
  EXPECT_EQ(window.check(0).sequence_high, 1u);
  EXPECT_TRUE(window.update(0x100000000));
  EXPECT_EQ(window.check(0xffffffff).verdict, Verdict::kFresh);
  EXPECT_EQ(window.check(0xffffffff).sequence_high, 0u);
  EXPECT_EQ(window.check(0).verdict, Verdict::kReplayed);
  EXPECT_TRUE(window.update(0xffffffff));
  EXPECT_FALSE(window.update(0xffffffff));
}

TEST(ReplayWindow, NothingBeforeTheFirstNumberAndAfterTheLast) {
  const ReplayWindow at_begin(64, true, 5);
  EXPECT_EQ(at_begin.check(0xfffffff0).verdict, Verdict::kTooOld);
  const ReplayWindow at_end(64, true, ~uint64_t{0});
  EXPECT_EQ(at_end.check(7).verdict, Verdict::kTooOld);
  EXPECT_EQ(at_end.check(0xffffffff).verdict, Verdict::kReplayed);
}

TEST(ReplayWindow, JumpsOfAnySizeForgetTheRing) {
  for (const uint64_t jump : {64u, 4096u, 8127u, 8128u, 8191u, 8192u, 8193u, 100000u, 0xf0000000u}) {
    ReplayWindow window(4096);
    for (uint64_t i = 1; i < 300; ++i) EXPECT_TRUE(window.update(i));
    EXPECT_TRUE(window.update(299 + jump));
    for (uint64_t back = 1; back < 4096; ++back) {
      if (back > 298 + jump) break;
      const Verdict expected = 299 + jump - back < 300 ? Verdict::kReplayed : Verdict::kFresh;
      ASSERT_EQ(window.check(static_cast<uint32_t>(299 + jump - back)).verdict, expected) << jump << " " << back;
    }
  }
}

TEST(ReplayWindow, SizeMayChange) {
  ReplayWindow window(64);
  for (uint64_t i = 1; i <= 5000; ++i) {
    if (i % 3 == 0) continue;
    EXPECT_TRUE(window.update(i));
  }
  EXPECT_EQ(window.check(3000).verdict, Verdict::kTooOld);
  window.set_size(4096);
  EXPECT_EQ(window.check(3000).verdict, Verdict::kFresh);
  EXPECT_EQ(window.check(3001).verdict, Verdict::kReplayed);
  EXPECT_TRUE(window.update(3000));
  window.set_size(64);
  EXPECT_EQ(window.check(3003).verdict, Verdict::kTooOld);
  window.set_size(1);
  EXPECT_EQ(window.size(), ReplayWindow::kSmallest);
  window.set_size(1u << 20);
  EXPECT_EQ(window.size(), ReplayWindow::kLargest);
}

}  // namespace
}  // namespace headrace
