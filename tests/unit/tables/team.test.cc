/// \file
/// Teams of lanes on the host.

#include "headrace/team.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <utility>
#include <vector>

namespace headrace {
namespace {

TEST(Team, NthBit) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t bits = i % 3 == 0 ? random() : i % 3 == 1 ? random() & random() & random() : random() | random();
    uint32_t n = 0;
    for (uint32_t at = 0; at < 64; ++at) {
      if ((bits >> at & 1) == 0) continue;
      EXPECT_EQ(at, detail::nth_bit(bits, n++)) << bits;
    }
  }
  EXPECT_EQ(63u, detail::nth_bit(uint64_t{1} << 63, 0));
  EXPECT_EQ(63u, detail::nth_bit(~uint64_t{0}, 63));
}

TEST(Team, BitsOfAllLanes) {
  const HostTeam<5> team;
  const auto values = team.map([](uint32_t lane) { return 3u << lane; });
  EXPECT_EQ(0b100001u, team.parity(values));
  EXPECT_EQ(3u << 4, team.last(values));
}

template <uint32_t Size>
void check_share() {
  const HostTeam<Size> team;
  std::mt19937_64 random(Size);
  auto masks = team.map([&](uint32_t lane) { return lane % 5 == 3 ? 0 : random() & random(); });
  std::vector<std::pair<uint32_t, uint32_t>> wanted, seen;
  for (uint32_t lane = 0; lane < Size; ++lane) {
    for (uint32_t bit = 0; bit < 64; ++bit)
      if ((masks.of[lane] >> bit & 1) != 0) wanted.emplace_back(lane, bit);
  }
  std::array<size_t, Size> work{};
  size_t rounds = 0;
  team.share(
      masks,
      [&](uint32_t lane, uint32_t owner, uint32_t bit) {
        ++work[lane];
        seen.emplace_back(owner, bit);
      },
      [&] {
        ++rounds;
        return true;
      });
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(wanted, seen);
  EXPECT_EQ((wanted.size() + Size - 1) / Size, rounds);
  const auto [least, most] = std::minmax_element(work.begin(), work.end());
  EXPECT_LE(*most - *least, 1u);

  seen.clear();
  rounds = 0;
  team.share(
      masks, [&](uint32_t, uint32_t owner, uint32_t bit) { seen.emplace_back(owner, bit); },
      [&] { return ++rounds < 2; });
  EXPECT_EQ(std::min<size_t>(2 * Size, wanted.size()), seen.size());
}

TEST(Team, SharesBitsEvenly) {
  check_share<1>();
  check_share<2>();
  check_share<7>();
  check_share<32>();
}

TEST(Team, SharesNothing) {
  const HostTeam<4> team;
  team.share(
      team.map([](uint32_t) { return uint64_t{0}; }), [](uint32_t, uint32_t, uint32_t) { FAIL(); },
      []() -> bool {
        ADD_FAILURE();
        return true;
      });
}

}  // namespace
}  // namespace headrace
