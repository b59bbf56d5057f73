#include "tables/sa/nonce_source.hh"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace headrace {
namespace {

constexpr uint64_t kBlock = NonceCounter::kBlock;

std::atomic<uint64_t> test_clock_ns{0};
uint64_t test_clock() { return test_clock_ns; }

KeyFingerprint key_number(uint32_t i) {
  return {1, 2, 3, static_cast<uint8_t>(i >> 16), static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i)};
}

class NonceSources : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("headrace-nonces-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    test_clock_ns = 1'700'000'000'000'000'000u;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ / "nonces"; }
  std::string content() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  uint64_t bound_in_file() const {
    const std::string text = content();
    return std::stoull(text.substr(text.find("bound ") + 6));
  }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }

  std::filesystem::path folder_;
};

TEST_F(NonceSources, KeysCountOnTheirOwn) {
  NonceSource source(test_clock);
  ASSERT_EQ(source.open(path()), "");
  NonceStream a(source.counter(key_number(1)));
  NonceStream b(source.counter(key_number(2)));
  const uint64_t first = *a.next();
  EXPECT_GE(first, test_clock());
  for (uint64_t i = 1; i < 3 * kBlock; ++i) ASSERT_EQ(*a.next(), first + i);
  EXPECT_EQ(*b.next(), first);
  // Who shares a key gets other numbers.
  NonceStream c(source.counter(key_number(1)));
  EXPECT_EQ(*c.next(), first + 3 * kBlock);
  EXPECT_EQ(*a.next(), first + 4 * kBlock);
}

TEST_F(NonceSources, WorkersGetDisjointBlocks) {
  NonceSource source(test_clock);
  ASSERT_EQ(source.open(path()), "");
  constexpr int kWorkers = 4, kBlocks = 500;
  std::vector<uint64_t> begins[kWorkers];
  std::vector<std::thread> workers;
  for (auto& mine : begins) {
    workers.emplace_back([&] {
      // The counter is asked for in the thread: a hot swap asks while old workers go on.
      const auto counter = source.counter(key_number(7));
      for (int i = 0; i < kBlocks; ++i) {
        NonceBlock block;
        ASSERT_TRUE(counter->refill(block));
        mine.push_back(block.next());
      }
    });
  }
  for (int i = 0; i < 100; ++i) source.extend();
  for (std::thread& worker : workers) worker.join();
  std::vector<uint64_t> all;
  for (const auto& mine : begins) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end());
  for (size_t i = 1; i < all.size(); ++i) ASSERT_GE(all[i] - all[i - 1], kBlock);
}

TEST_F(NonceSources, KeyThatComesBackGoesOnAboveItsNumbers) {
  NonceSource source(test_clock);
  ASSERT_EQ(source.open(path()), "");
  uint64_t highest = 0;
  for (int i = 0; i < 5; ++i) {
    NonceStream stream(source.counter(key_number(1)));
    for (uint64_t n = 0; n < kBlock + 3; ++n) {
      const uint64_t number = *stream.next();
      ASSERT_GT(number, highest);
      highest = number;
    }
    stream = NonceStream();
    // So many keys that the counter is forgotten.
    for (uint32_t key = 0; key < 1000; ++key) (void)source.counter(key_number(1000 + key));
  }
}

TEST_F(NonceSources, RestartWithTheFileDoesNotNeedTheClock) {
  uint64_t highest = 0;
  for (int run = 0; run < 5; ++run) {
    NonceSource source(test_clock);
    ASSERT_EQ(source.open(path()), "");
    for (uint32_t key = 0; key < 3; ++key) {
      NonceStream stream(source.counter(key_number(key)));
      uint64_t mine = 0;
      for (uint64_t n = 0; n < 3 * kBlock; ++n) {
        const uint64_t number = *stream.next();
        ASSERT_GT(number, highest);
        mine = number;
      }
      ASSERT_GT(mine, highest);
    }
    NonceStream stream(source.counter(key_number(0)));
    highest = *stream.next() + kBlock;
    test_clock_ns -= 3'600'000'000'000u;  // an hour back
  }
}

TEST_F(NonceSources, BoundIsOnTheDiskBeforeItsNumbersAreUsed) {
  NonceSource source(test_clock, 8 * kBlock);
  ASSERT_EQ(source.open(path()), "");
  NonceStream stream(source.counter(key_number(1)));
  uint64_t got = 0, stopped = 0;
  for (int i = 0; i < 2000000; ++i) {
    const auto number = stream.next();
    if (number) {
      ++got;
      // A process that is killed now, and what it finds when it starts again.
      if (i % 1000 != 0) continue;
      ASSERT_LT(*number, bound_in_file());
    } else {
      ++stopped;
    }
    if (stopped % 1000 == 999) source.extend();
  }
  EXPECT_GT(got, 1000000u);
  EXPECT_EQ(source.problem(), "");
}

TEST_F(NonceSources, StopsAtTheBoundWhileTheFileCannotBeWritten) {
  NonceSource source(test_clock, 4 * kBlock);
  ASSERT_EQ(source.open(path()), "");
  NonceStream stream(source.counter(key_number(1)));
  const uint64_t first = *stream.next();
  const std::filesystem::path elsewhere = folder_.string() + "-away";
  std::filesystem::rename(folder_, elsewhere);
  uint64_t got = 1;
  for (uint64_t i = 0; i < 10 * kBlock; ++i) {
    if (i % kBlock == 0) source.extend();
    got += stream.next().has_value();
  }
  EXPECT_EQ(got, 4 * kBlock);
  EXPECT_NE(source.problem().find("nonces.new: No such file"), std::string::npos) << source.problem();
  EXPECT_FALSE(stream.next());

  std::filesystem::rename(elsewhere, folder_);
  source.extend();
  EXPECT_EQ(source.problem(), "");
  EXPECT_EQ(*stream.next(), first + 4 * kBlock);
}

TEST_F(NonceSources, ThreadRaisesTheBound) {
  NonceSource source(test_clock, 4 * kBlock);
  ASSERT_EQ(source.open(path()), "");
  NonceStream stream(source.counter(key_number(1)));
  const uint64_t before = bound_in_file();
  while (stream.next()) {
  }
  for (int i = 0; i < 100 && bound_in_file() == before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_GT(bound_in_file(), before);
}

TEST_F(NonceSources, FileHasOneUser) {
  auto first = std::make_unique<NonceSource>(test_clock);
  ASSERT_EQ(first->open(path()), "");
  EXPECT_EQ(first->open(path()), "");
  EXPECT_EQ(first->open(folder_ / ".." / folder_.filename() / "nonces"), "");
  const std::string other = folder_ / "other";
  EXPECT_EQ(first->open(other), other + ": this process uses the nonce file " + path() + " already");
  NonceSource second(test_clock);
  EXPECT_EQ(second.open(path()),
            path() + ": another process (" + std::to_string(::getpid()) + ") uses this nonce file");
  EXPECT_FALSE(second.has_file());
  const auto left = first->counter(key_number(1));
  first.reset();
  NonceBlock block;
  EXPECT_FALSE(left->refill(block));  // the file belongs to the next one
  EXPECT_EQ(second.open(path()), "");
  EXPECT_TRUE(second.has_file());
}

TEST_F(NonceSources, DamagedFileIsRefused) {
  {
    NonceSource source(test_clock);
    ASSERT_EQ(source.open(path()), "");
  }
  const std::string good = content();
  std::vector<std::string> bad = {"", "\n", "headrace nonces 1\nbound 12\n", good + "x", std::string(100000, '1')};
  for (size_t i = 0; i < good.size(); ++i) {
    bad.push_back(good.substr(0, i));
    bad.push_back(good);
    bad.back()[i] = static_cast<char>(bad.back()[i] ^ 1);
  }
  for (const std::string& text : bad) {
    write(text);
    NonceSource source(test_clock);
    const std::string reason = source.open(path());
    ASSERT_NE(reason.find(path() + ": damaged, or no nonce file"), std::string::npos) << text;
    ASSERT_EQ(content(), text);
  }
  write(good);
  NonceSource source(test_clock);
  EXPECT_EQ(source.open(path()), "");
}

TEST_F(NonceSources, FileThatCannotBeMade) {
  NonceSource source(test_clock);
  EXPECT_EQ(source.open("/nonexistent/folder/nonces"), "/nonexistent/folder/nonces.lock: No such file or directory");
  std::filesystem::create_directory(path());
  const std::string reason = source.open(path());
  EXPECT_EQ(reason, path() + ": Is a directory");
  EXPECT_FALSE(source.has_file());
}

TEST_F(NonceSources, WithoutAFileNumbersStayBehindTheClock) {
  NonceSource source(test_clock);
  NonceStream stream(source.counter(key_number(1)));
  EXPECT_FALSE(stream.next());
  const uint64_t start = test_clock_ns;
  test_clock_ns += 2 * kBlock + 5;
  uint64_t got = 0, last = 0;
  while (const auto number = stream.next()) {
    last = *number;
    ++got;
  }
  EXPECT_EQ(got, 2 * kBlock);
  EXPECT_EQ(last, start + got - 1);
  test_clock_ns -= 1'000'000'000u;
  EXPECT_FALSE(stream.next());
  test_clock_ns += 1'000'000'000u + kBlock;
  EXPECT_EQ(*stream.next(), last + 1);
  // A process that starts now.
  const NonceSource later(test_clock);
  EXPECT_GT(test_clock_ns, last);
}

TEST_F(NonceSources, OpeningLiftsCountersThatExist) {
  uint64_t bound = 0;
  {
    NonceSource source(test_clock);
    ASSERT_EQ(source.open(path()), "");
    bound = bound_in_file();
  }
  NonceSource source(test_clock);
  NonceStream stream(source.counter(key_number(1)));
  test_clock_ns += 10 * kBlock;
  EXPECT_LT(*stream.next(), bound);
  ASSERT_EQ(source.open(path()), "");
  for (uint64_t i = 1; i < kBlock; ++i) (void)stream.next();
  EXPECT_GE(*stream.next(), bound);
}

TEST_F(NonceSources, NumbersEnd) {
  NonceSource source([] { return ~uint64_t{0} - 1000; });
  EXPECT_NE(source.open(path()).find("all numbers have been used"), std::string::npos);
}

TEST_F(NonceSources, ClockIsNow) {
  const uint64_t now = NonceSource::wall_clock();
  EXPECT_GT(now, 1'700'000'000'000'000'000u);
  EXPECT_LT(now, 7'000'000'000'000'000'000u);
  EXPECT_EQ(&NonceSource::process(), &NonceSource::process());
}

}  // namespace
}  // namespace headrace
