#include "src/io/memory/traffic.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "headrace/flow_hash.hh"

namespace headrace {
namespace {

uint32_t ip(uint32_t a, uint32_t b, uint32_t c, uint32_t d) { return a << 24 | b << 16 | c << 8 | d; }

// The verification suite of Microsoft's "RSS hashing" specification.
TEST(Toeplitz, MatchesTheSpecificationForIp4) {
  EXPECT_EQ(toeplitz_ip4(ip(66, 9, 149, 187), ip(161, 142, 100, 80), 2794, 1766), 0x51ccc178u);
  EXPECT_EQ(toeplitz_ip4(ip(66, 9, 149, 187), ip(161, 142, 100, 80)), 0x323e8fc2u);
  EXPECT_EQ(toeplitz_ip4(ip(199, 92, 111, 2), ip(65, 69, 140, 83), 14230, 4739), 0xc626b0eau);
  EXPECT_EQ(toeplitz_ip4(ip(199, 92, 111, 2), ip(65, 69, 140, 83)), 0xd718262au);
  EXPECT_EQ(toeplitz_ip4(ip(24, 19, 198, 95), ip(12, 22, 207, 184), 12898, 38024), 0x5c2b394au);
  EXPECT_EQ(toeplitz_ip4(ip(38, 27, 205, 30), ip(209, 142, 163, 6), 48228, 2217), 0xafc7327fu);
  EXPECT_EQ(toeplitz_ip4(ip(153, 39, 163, 191), ip(202, 188, 127, 2), 44251, 1303), 0x10e828a2u);
}

TEST(Toeplitz, MatchesTheSpecificationForIp6) {
  const uint8_t lower[16] = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0, 1};
  const uint8_t upper[16] = {0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0, 7};
  EXPECT_EQ(toeplitz_ip6(upper, lower, 2794, 1766), 0x40207d3du);
}

uint32_t sum_of(const uint8_t* p, int n) {
  uint32_t sum = 0;
  for (int i = 0; i < n; i += 2) sum += static_cast<uint32_t>(p[i] << 8 | p[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

/// The frame that a source makes of a record.
std::vector<uint8_t> frame_of(const TrafficShare& share, const TrafficRecord& r) {
  std::vector<uint8_t> f(std::max<size_t>(r.length, 64));
  std::copy(share.header, share.header + 64, f.begin());
  const auto put = [&](size_t at, uint16_t v) {
    f[at] = static_cast<uint8_t>(v >> 8);
    f[at + 1] = static_cast<uint8_t>(v);
  };
  put(16, static_cast<uint16_t>(r.length - 14));
  put(38, static_cast<uint16_t>(r.length - 34));
  std::memcpy(&f[24], &r.checksum, 2);
  std::memcpy(&f[30], &r.dst, 4);
  std::memcpy(&f[34], &r.src_port, 2);
  return f;
}

TEST(Traffic, FramesHaveRightChecksumsAndHashes) {
  Errors errors;
  for (const auto kind : {TrafficSpec::Kind::kUniform, TrafficSpec::Kind::kImix, TrafficSpec::Kind::kZipf}) {
    TrafficSpec spec;
    spec.kind = kind;
    spec.flows = 5000;
    for (const TrafficShare& share : make_traffic(spec, 3, errors)) {
      for (size_t i = 0; i < std::min<size_t>(share.records.size(), 3000); ++i) {
        const std::vector<uint8_t> f = frame_of(share, share.records[i]);
        ASSERT_EQ(sum_of(&f[14], 20), 0xffffu);
        ASSERT_EQ(toeplitz_frame(f.data(), share.records[i].length), share.records[i].hash);
      }
    }
  }
  EXPECT_EQ(errors.str(), "");
}

TEST(Traffic, Ip6FramesGoToAddressesOfThePrefixes) {
  TrafficSpec spec;
  spec.flows = 6000;
  for (const char* text : {"2001:db8::/32", "2a00:1234::/29", "::/1", "fd00::1/128"})
    ASSERT_TRUE(parse(text, spec.prefixes.emplace_back()));
  Errors errors;
  for (const auto kind : {TrafficSpec::Kind::kUniform, TrafficSpec::Kind::kImix, TrafficSpec::Kind::kZipf}) {
    spec.kind = kind;
    std::vector<int> hits(spec.prefixes.size());
    std::set<Ip6Address> destinations;
    for (const TrafficShare& share : make_traffic(spec, 3, errors)) {
      EXPECT_TRUE(share.records.empty());
      for (const TrafficRecord6& r : share.records6) {
        std::vector<uint8_t> f(share.header, share.header + 64);
        std::copy(r.dst, r.dst + 16, &f[38]);
        std::memcpy(&f[54], &r.src_port, 2);
        ASSERT_EQ(toeplitz_frame(f.data(), 64), r.hash);
        ASSERT_GE(r.length, kShortestIp6);
        const Ip6Address destination = Ip6Address::from_bytes(r.dst);
        destinations.insert(destination);
        for (size_t i = 0; i < hits.size(); ++i) hits[i] += spec.prefixes[i].contains(destination);
      }
    }
    for (const int n : hits) EXPECT_GT(n, 500);
    EXPECT_GT(destinations.size(), 3000u) << "the bits behind a prefix are random";
  }
  EXPECT_EQ(errors.str(), "");
}

TEST(Traffic, EachWorkerGetsOnlyItsFlows) {
  TrafficSpec spec;
  spec.flows = 30000;
  Errors errors;
  const auto shares = make_traffic(spec, 3, errors);
  size_t all = 0;
  for (int w = 0; w < 3; ++w) {
    all += shares[w].records.size();
    EXPECT_NEAR(static_cast<double>(shares[w].records.size()), 10000, 500);
    for (const TrafficRecord& r : shares[w].records) ASSERT_EQ(rss_worker(r.hash, 3), w);
  }
  EXPECT_EQ(all, 30000u);
}

TEST(Traffic, TheSeedDecidesTheTraffic) {
  TrafficSpec spec;
  spec.flows = 100;
  Errors errors;
  const auto destinations = [&] {
    std::vector<uint32_t> d;
    const std::vector<TrafficShare> shares = make_traffic(spec, 1, errors);
    for (const TrafficRecord& r : shares[0].records) d.push_back(r.dst);
    return d;
  };
  const auto first = destinations();
  EXPECT_EQ(first, destinations());
  spec.seed = 2;
  EXPECT_NE(first, destinations());
}

TEST(Traffic, UniformDestinationsAreUnicast) {
  TrafficSpec spec;
  spec.flows = 50000;
  Errors errors;
  std::map<uint32_t, int> tops;
  const std::vector<TrafficShare> shares = make_traffic(spec, 1, errors);
  for (const TrafficRecord& r : shares[0].records) {
    const uint32_t top = __builtin_bswap32(r.dst) >> 24;
    ASSERT_TRUE(top >= 1 && top <= 223 && top != 127) << top;
    ++tops[top];
  }
  EXPECT_EQ(tops.size(), 222u);
}

TEST(Traffic, ImixIsSevenFourOne) {
  TrafficSpec spec;
  spec.kind = TrafficSpec::Kind::kImix;
  spec.flows = 12000;
  Errors errors;
  std::map<int, int> lengths;
  const std::vector<TrafficShare> shares = make_traffic(spec, 1, errors);
  for (const TrafficRecord& r : shares[0].records) ++lengths[r.length];
  EXPECT_EQ(lengths, (std::map<int, int>{{60, 7000}, {566, 4000}, {1514, 1000}}));
}

TEST(Traffic, ZipfFavorsTheFirstFlows) {
  TrafficSpec spec;
  spec.kind = TrafficSpec::Kind::kZipf;
  spec.flows = 1000;
  Errors errors;
  std::map<uint32_t, int> counts;
  const std::vector<TrafficShare> shares = make_traffic(spec, 1, errors);
  for (const TrafficRecord& r : shares[0].records) ++counts[r.dst];
  int most = 0;
  for (const auto& [dst, n] : counts) most = std::max(most, n);
  // The first of 1000 flows has 1/H(1000) = 13.4 % of the packets.
  EXPECT_NEAR(static_cast<double>(most) / static_cast<double>(shares[0].records.size()), 0.1336, 0.005);
}

TEST(Traffic, AMissingCaptureIsAnError) {
  TrafficSpec spec;
  spec.kind = TrafficSpec::Kind::kReplay;
  spec.file = "/nonexistent/x.pcap";
  Errors errors;
  make_traffic(spec, 1, errors);
  EXPECT_NE(errors.str().find("/nonexistent/x.pcap"), std::string::npos) << errors.str();
}

}  // namespace
}  // namespace headrace
