/// \file
/// Ports before simulated devices, against the text of the specifications.

#include "control/openflow/switch/ports.hh"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "support/test_router.hh"

namespace headrace::openflow {
namespace {

using testing::TestRouter;

constexpr Time kPortSecond = 1'000'000'000;

struct FakeDevice final : HasDevice {
  std::optional<DeviceState> state;
  DeviceCounters counters;

  explicit FakeDevice(const std::string& name, uint8_t address = 1) {
    state.emplace();
    state->name = name;
    state->address = EtherAddress({0x02, 0, 0, 0, 0, address});
  }
  std::optional<DeviceState> device_state() const override { return state; }
  DeviceCounters device_counters() const override { return counters; }
};

struct Published {
  uint32_t port, word;
  bool alive;
  bool operator==(const Published&) const = default;
};
void PrintTo(const Published& p, std::ostream* out) { *out << p.port << ' ' << p.word << ' ' << p.alive; }

struct SwitchPortsTest : ::testing::Test {
  TestRouter workers{"Idle -> Discard;"};
  FakeDevice one{"eth1", 1}, two{"eth2", 2}, host{"tap0", 9};
  std::vector<Published> published;
  PortCounters counters;
  SwitchPorts ports{0x0000'0123'4567'89ab, counters, [this](uint32_t port, uint32_t word, bool alive) {
                      published.push_back({port, word, alive});
                    }};

  void SetUp() override {
    const std::vector<PortStatus> added = bind(0);
    ASSERT_EQ(added.size(), 4u);
    for (const PortStatus& status : added) EXPECT_EQ(status.reason, PortReason::kAdd);
    published.clear();
  }
  /// Ports 1 and 2, 3 without a device, and LOCAL.
  std::vector<PortStatus> bind(Time now) {
    return ports.bind({{&one, &one}, {&two, &two}, {}}, SwitchPorts::Ends{&host, &host}, now);
  }
  Port port(uint32_t number) const {
    for (const Port& p : ports.descriptions())
      if (p.number == number) return p;
    ADD_FAILURE() << "no port " << number;
    return {};
  }
  PortMod mod(uint32_t number, uint64_t config, uint64_t mask) const {
    PortMod m;
    m.port = number;
    m.address = port(number).address;
    m.config = config;
    m.mask = mask;
    return m;
  }
  ErrorCode change(const PortMod& m, Version version = Version::k1_3, size_t statuses = 1) {
    std::vector<PortStatus> changes;
    const ErrorCode error = ports.port_mod(m, version, changes);
    EXPECT_EQ(changes.size(), error == ErrorCode::kNone ? statuses : 0);
    for (const PortStatus& status : changes) {
      EXPECT_EQ(status.reason, PortReason::kModify);
      EXPECT_EQ(status.port, port(m.port));
    }
    return error;
  }
  PortStats statistics(uint32_t number, Time now = 0) const {
    std::vector<PortStats> all;
    PortStatsRequest request;
    request.port = number;
    EXPECT_EQ(ports.statistics(request, now, all), ErrorCode::kNone);
    return all.size() == 1 ? all[0] : PortStats();
  }
};

TEST_F(SwitchPortsTest, DescribesDevices) {
  one.state->name = "a-name-of-sixteen";
  one.state->speed = 10'000;
  one.state->most_speed = 40'000;
  one.state->current = link_mode::k10G | link_mode::kFiber;
  one.state->supported = link_mode::k10G | link_mode::k40G | link_mode::kFiber | link_mode::kAutonegotiation;
  ASSERT_EQ(ports.refresh().size(), 1u);
  const Port p = port(1);
  EXPECT_EQ(p.name, "a-name-of-sixte");
  EXPECT_EQ(p.address, (std::array<uint8_t, 6>{0x02, 0, 0, 0, 0, 1}));
  EXPECT_EQ(p.state, port_state::kLive);
  EXPECT_EQ(p.config, 0u);
  EXPECT_EQ(p.current_speed, 10'000'000u);
  EXPECT_EQ(p.max_speed, 40'000'000u);
  // OFPPF_10GB_FD | OFPPF_FIBER in both versions; 1.0 has no 40 Gb/s.
  EXPECT_EQ(flags_to_wire(port_feature_flags(), Version::k1_3, p.current), 1u << 6 | 1u << 12);
  EXPECT_EQ(flags_to_wire(port_feature_flags(), Version::k1_0, p.current), 1u << 6 | 1u << 8);
  EXPECT_EQ(flags_to_wire(port_feature_flags(), Version::k1_3, p.supported), 1u << 6 | 1u << 7 | 1u << 12 | 1u << 13);
  EXPECT_EQ(flags_to_wire(port_feature_flags(), Version::k1_0, p.supported), 1u << 6 | 1u << 8 | 1u << 9);
}

TEST(OpenFlowPortFeatures, HaveTheBitsOfDevices) {
  const std::tuple<const char*, uint32_t> bits[] = {
      {"OFPPF_10MB_HD", link_mode::k10Half},   {"OFPPF_10MB_FD", link_mode::k10Full},
      {"OFPPF_100MB_HD", link_mode::k100Half}, {"OFPPF_100MB_FD", link_mode::k100Full},
      {"OFPPF_1GB_HD", link_mode::k1000Half},  {"OFPPF_1GB_FD", link_mode::k1000Full},
      {"OFPPF_10GB_FD", link_mode::k10G},      {"OFPPF_40GB_FD", link_mode::k40G},
      {"OFPPF_100GB_FD", link_mode::k100G},    {"OFPPF_1TB_FD", link_mode::k1T},
      {"OFPPF_OTHER", link_mode::kOtherSpeed}, {"OFPPF_COPPER", link_mode::kCopper},
      {"OFPPF_FIBER", link_mode::kFiber},      {"OFPPF_AUTONEG", link_mode::kAutonegotiation},
      {"OFPPF_PAUSE", link_mode::kPause},      {"OFPPF_PAUSE_ASYM", link_mode::kAsymmetricPause},
  };
  ASSERT_EQ(std::size(bits), port_feature_flags().size());
  for (size_t i = 0; i < std::size(bits); ++i) {
    EXPECT_STREQ(port_feature_flags()[i].name_1_3, std::get<0>(bits[i]));
    EXPECT_EQ(port_feature_flags()[i].number_1_3, std::get<1>(bits[i])) << std::get<0>(bits[i]);
  }
}

/// Every port has an address, which port-mods must repeat.
TEST_F(SwitchPortsTest, DescribesPortsWithoutDevices) {
  EXPECT_EQ(port(3).name, "port3");
  EXPECT_EQ(port(3).state, port_state::kLive);
  EXPECT_EQ(port(3).address[0], 0x02);
  EXPECT_EQ(port(3).address[5], 3);
  SwitchPorts other(7, counters, [](uint32_t, uint32_t, bool) {});
  (void)other.bind({{}, {}}, SwitchPorts::Ends(), 0);
  const std::vector<Port> all = other.descriptions();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_NE(all[0].address, all[1].address);
  EXPECT_EQ(all[2].number, port::kLocal);
  EXPECT_EQ(all[2].name, "local");
  EXPECT_EQ(all[2].address, (std::array<uint8_t, 6>{0, 0, 0, 0, 0, 7}));
}

TEST_F(SwitchPortsTest, FollowsDevices) {
  EXPECT_TRUE(ports.refresh().empty());
  one.state->carrier = false;
  std::vector<PortStatus> changes = ports.refresh();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].reason, PortReason::kModify);
  EXPECT_EQ(changes[0].port.number, 1u);
  EXPECT_EQ(changes[0].port.state, port_state::kLinkDown);
  EXPECT_EQ(changes[0].port.config, 0u);
  EXPECT_EQ(published, (std::vector<Published>{{1, port_word::kNoFlood, false}}));
  EXPECT_FALSE(ports.floods(1));
  one.state->carrier = true;
  EXPECT_EQ(ports.refresh().size(), 1u);
  EXPECT_TRUE(ports.floods(1));
  // A device that is deleted keeps its name and address.
  host.state.reset();
  ASSERT_EQ(ports.refresh().size(), 1u);
  EXPECT_EQ(port(port::kLocal).name, "tap0");
  EXPECT_EQ(port(port::kLocal).address[5], 9);
  EXPECT_EQ(port(port::kLocal).state, port_state::kLinkDown);
  // Another address is a change, and the one that port-mods need.
  two.state->address = EtherAddress({0x02, 0, 0, 0, 0, 22});
  ASSERT_EQ(ports.refresh().size(), 1u);
  EXPECT_EQ(port(2).address[5], 22);
}

/// Put down by the host: PORT_DOWN is set, and no controller can clear it.
TEST_F(SwitchPortsTest, ShowsThatTheHostHasPutADeviceDown) {
  one.state->enabled = one.state->carrier = false;
  ASSERT_EQ(ports.refresh().size(), 1u);
  EXPECT_EQ(port(1).config, port_config::kPortDown);
  EXPECT_EQ(port(1).state, port_state::kLinkDown);
  EXPECT_EQ(ports.word(1) & port_word::kNoForward, port_word::kNoForward);
  EXPECT_EQ(change(mod(1, 0, port_config::kPortDown)), ErrorCode::kPortModEperm);
  EXPECT_EQ(change(mod(1, port_config::kNoForward, port_config::kNoForward)), ErrorCode::kNone);
  one.state->enabled = one.state->carrier = true;
  ASSERT_EQ(ports.refresh().size(), 1u);
  EXPECT_EQ(port(1).config, port_config::kNoForward);
}

TEST_F(SwitchPortsTest, TwoDevicesAreOnePort) {
  one.counters.rx_packets = two.counters.rx_packets = 100;
  (void)ports.bind({{&one, &two}}, std::nullopt, 0);
  one.counters.rx_errors = 1;
  two.counters.tx_errors = 2;
  EXPECT_EQ(statistics(1).rx_errors, 1u);
  EXPECT_EQ(statistics(1).tx_errors, 2u);
  EXPECT_EQ(port(1).name, "eth1");
  two.state->carrier = false;
  ASSERT_EQ(ports.refresh().size(), 1u);
  EXPECT_EQ(port(1).state, port_state::kLinkDown);
}

TEST_F(SwitchPortsTest, ChecksPortMods) {
  const Port before = port(1);
  PortMod m = mod(1, port_config::kNoForward, port_config::kNoForward);
  m.address[5] ^= 1;
  EXPECT_EQ(change(m), ErrorCode::kPortModBadHwAddr);
  for (const uint32_t number : {0u, 4u, port::kAny, port::kController, port::kAll, port::kInPort}) {
    m.port = number;
    std::vector<PortStatus> changes;
    EXPECT_EQ(ports.port_mod(m, Version::k1_3, changes), ErrorCode::kPortModBadPort) << number;
  }
  // Bits that a version does not have: 1.3 has no NO_FLOOD.
  EXPECT_EQ(change(mod(1, 0, 2)), ErrorCode::kPortModBadConfig);
  EXPECT_EQ(change(mod(1, 0, port_config::kNoFlood10)), ErrorCode::kPortModBadConfig);
  EXPECT_EQ(change(mod(1, 0, uint64_t{128} << 32), Version::k1_0), ErrorCode::kPortModBadConfig);
  m = mod(1, 0, 0);
  m.advertise = link_mode::k10Half;
  EXPECT_EQ(change(m), ErrorCode::kPortModBadAdvertise);
  EXPECT_EQ(port(1), before);
  EXPECT_TRUE(published.empty());
  // A bit outside the mask is not looked at, and what changes nothing is no change.
  EXPECT_EQ(change(mod(1, ~uint64_t{0}, 0), Version::k1_3, 0), ErrorCode::kNone);
  EXPECT_EQ(change(mod(1, 0, port_config::kPortDown), Version::k1_3, 0), ErrorCode::kNone);
}

TEST_F(SwitchPortsTest, PutsPortsDown) {
  EXPECT_EQ(change(mod(2, port_config::kPortDown, port_config::kPortDown)), ErrorCode::kNone);
  // The link is there, but the port must not count as live (ONF TS-023, section 6.5).
  EXPECT_EQ(port(2).config, port_config::kPortDown);
  EXPECT_EQ(port(2).state, 0u);
  EXPECT_EQ(ports.word(2),
            port_word::kNoReceive | port_word::kNoReceiveStp | port_word::kNoForward | port_word::kNoFlood);
  EXPECT_EQ(published, (std::vector<Published>{{2, ports.word(2), false}}));
  EXPECT_EQ(change(mod(2, 0, port_config::kPortDown)), ErrorCode::kNone);
  EXPECT_EQ(ports.word(2), 0u);
  EXPECT_EQ(published.back(), (Published{2, 0, true}));
  EXPECT_EQ(change(mod(port::kLocal, port_config::kPortDown, port_config::kPortDown)), ErrorCode::kNone);
  EXPECT_EQ(ports.word(port::kLocal) & port_word::kNoForward, port_word::kNoForward);
  EXPECT_EQ(ports.word(4), port_word::kClosed);
}

/// In 1.0 NO_RECV does not stop the spanning tree's frames, NO_RECV_STP does; in 1.3 NO_RECV stops all.
TEST_F(SwitchPortsTest, KeepsTheSpanningTreeApartIn10) {
  const uint64_t stp = port_config::kNoReceiveStp10;
  EXPECT_EQ(change(mod(1, port_config::kNoReceive, port_config::kNoReceive), Version::k1_0), ErrorCode::kNone);
  EXPECT_EQ(ports.word(1), port_word::kNoReceive);
  EXPECT_EQ(change(mod(1, stp, stp | port_config::kNoReceive), Version::k1_0), ErrorCode::kNone);
  EXPECT_EQ(ports.word(1), port_word::kNoReceiveStp);
  EXPECT_EQ(change(mod(1, port_config::kNoReceive, port_config::kNoReceive)), ErrorCode::kNone);
  EXPECT_EQ(ports.word(1), port_word::kNoReceive | port_word::kNoReceiveStp);
  EXPECT_EQ(change(mod(1, 0, port_config::kNoReceive)), ErrorCode::kNone);
  EXPECT_EQ(ports.word(1), 0u);
}

TEST_F(SwitchPortsTest, TellsWorkersTheBits) {
  EXPECT_EQ(change(mod(1, port_config::kNoPacketIn, port_config::kNoPacketIn)), ErrorCode::kNone);
  EXPECT_EQ(ports.word(1), port_word::kNoPacketIn);
  EXPECT_EQ(change(mod(1, port_config::kNoForward, port_config::kNoPacketIn | port_config::kNoForward)),
            ErrorCode::kNone);
  EXPECT_EQ(ports.word(1), port_word::kNoForward);
  const uint64_t quiet = port_config::kNoFlood10 | port_config::kNoStp10;
  EXPECT_EQ(change(mod(2, quiet, quiet), Version::k1_0), ErrorCode::kNone);
  EXPECT_FALSE(ports.floods(2));
  EXPECT_EQ(flags_to_wire(port_config_flags(), Version::k1_0, port(2).config), 16u | 2u);
  EXPECT_EQ(flags_to_wire(port_config_flags(), Version::k1_3, port(2).config), 0u);
  EXPECT_TRUE(ports.floods(1));
}

TEST_F(SwitchPortsTest, CountsWhatWorkersAndDevicesCount) {
  counters.mine().received(1, 1000, 10);
  counters.mine().received(1, 60, 1);
  counters.mine().sent(1, 500, 5);
  counters.mine().not_received(1, 2);
  counters.mine().not_sent(1, 3);
  counters.mine().received(0, 700, 7);
  one.counters = {.rx_packets = 99,
                  .rx_dropped = 4,
                  .rx_errors = 6,
                  .rx_frame_errors = 1,
                  .rx_overruns = 2,
                  .rx_crc_errors = 3,
                  .tx_dropped = 10,
                  .tx_errors = 20,
                  .collisions = 30};
  const PortStats s = statistics(1, 5 * kPortSecond + 3);
  EXPECT_EQ(std::tuple(s.port, s.rx_packets, s.rx_bytes, s.tx_packets, s.tx_bytes),
            std::tuple(1u, 11u, 1060u, 5u, 500u));
  EXPECT_EQ(std::tuple(s.rx_dropped, s.tx_dropped, s.rx_errors, s.tx_errors), std::tuple(6u, 13u, 6u, 20u));
  EXPECT_EQ(std::tuple(s.rx_frame_errors, s.rx_overruns, s.rx_crc_errors, s.collisions), std::tuple(1u, 2u, 3u, 30u));
  EXPECT_EQ(std::tuple(s.duration_s, s.duration_ns), std::tuple(5u, 3u));
  EXPECT_EQ(statistics(port::kLocal).rx_bytes, 700u);
  EXPECT_EQ(statistics(2).rx_packets, 0u);
  std::vector<PortStats> all;
  EXPECT_EQ(ports.statistics({}, 0, all), ErrorCode::kNone);
  EXPECT_EQ(all.size(), 4u);
  PortStatsRequest unknown;
  unknown.port = 77;
  EXPECT_EQ(ports.statistics(unknown, 0, all), ErrorCode::kRequestBadPort);
  // A device whose counters were reset goes on from there.
  one.counters = {.rx_errors = 1};
  EXPECT_EQ(statistics(1).rx_errors, 1u);
}

/// A configuration takes over: numbers that stay keep configuration and counters.
TEST_F(SwitchPortsTest, OutlivesAConfiguration) {
  EXPECT_EQ(change(mod(1, port_config::kNoForward, port_config::kNoForward)), ErrorCode::kNone);
  counters.mine().received(1, 100, 1);
  counters.mine().received(2, 200, 2);
  two.counters.rx_errors = 5;
  ports.unbind();
  FakeDevice next("eth2", 2);
  next.counters.rx_errors = 50;
  published.clear();
  // Port 2 has another element before the same device; 3 is gone, and so is LOCAL; then 3 is back.
  std::vector<PortStatus> changes = ports.bind({{&one, &one}, {&next, nullptr}}, std::nullopt, 10 * kPortSecond);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(std::tuple(changes[0].reason, changes[0].port.number), std::tuple(PortReason::kDelete, 3u));
  EXPECT_EQ(std::tuple(changes[1].reason, changes[1].port.number), std::tuple(PortReason::kDelete, port::kLocal));
  EXPECT_EQ(published, (std::vector<Published>{{3, port_word::kClosed, false},
                                               {port::kLocal, port_word::kClosed, false},
                                               {1, port_word::kNoForward, true},
                                               {2, 0, true}}));
  EXPECT_EQ(ports.word(3), port_word::kClosed);
  EXPECT_EQ(statistics(1).rx_bytes, 100u);
  next.counters.rx_errors += 1;
  EXPECT_EQ(statistics(2).rx_errors, 5 + 1u);
  EXPECT_EQ(statistics(2, 11 * kPortSecond).duration_s, 11u);

  counters.mine().received(2, 1, 1);
  changes = ports.bind({{&one, &one}}, std::nullopt, 20 * kPortSecond);
  ASSERT_EQ(changes.size(), 1u);
  changes = bind(30 * kPortSecond);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].reason, PortReason::kAdd);
  // A new port counts from zero.
  EXPECT_EQ(statistics(2, 31 * kPortSecond).rx_packets, 0u);
  EXPECT_EQ(statistics(2, 31 * kPortSecond).rx_errors, 0u);
  EXPECT_EQ(statistics(2, 31 * kPortSecond).duration_s, 1u);
  EXPECT_EQ(port(1).config, port_config::kNoForward);
}

}  // namespace
}  // namespace headrace::openflow
