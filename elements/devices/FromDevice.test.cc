#include "elements/devices/FromDevice.hh"

#include "headrace/device_state.hh"
#include "support/element_test.hh"
#include "support/net_namespace.hh"

namespace headrace::testing {
namespace {

/// What is said of a configuration.
std::string errors_of(const std::string& text) { return TestRouter(text).errors(); }

TEST(FromDevice, NamesWhatIsWrong) {
  EXPECT_NE(errors_of("FromDevice() -> Discard;").find("DEVNAME: required argument missing"), std::string::npos);
  EXPECT_NE(errors_of("FromDevice('') -> Discard;").find("interface not set"), std::string::npos);
  EXPECT_NE(errors_of("FromDevice(lo, METHOD ZERO) -> Discard;").find("bad METHOD: expected AF_XDP"),
            std::string::npos);
  EXPECT_NE(errors_of("FromDevice(lo, SNAPLEN 5) -> Discard;").find("SNAPLEN: out of range"), std::string::npos);
  EXPECT_NE(errors_of("FromDevice(lo, ENCAP PIGEON) -> Discard;").find("bad encapsulation type"), std::string::npos);
  EXPECT_NE(errors_of("FromDevice(no-such-dev) -> Discard;").find("  no-such-dev: no such interface"),
            std::string::npos);
  EXPECT_NE(errors_of("FromDevice(a-name-that-is-too-long) -> Discard;").find("no such interface"), std::string::npos);
  EXPECT_NE(errors_of("FromDevice(lo, BPF_FILTER 'foo bar') -> Discard;").find("  filter: "), std::string::npos);
  // What AF_XDP cannot do.
  for (const char* argument : {"OUTBOUND true", "BPF_FILTER arp", "SNIFFER true"})
    EXPECT_NE(
        errors_of(std::string("FromDevice(lo, METHOD AF_XDP, ") + argument + ") -> Discard;").find("need af_packet"),
        std::string::npos)
        << argument;
}

TEST(FromDevice, MayWaitForAnInterface) {
  TestRouter r("f :: FromDevice(no-such-dev, ALLOW_NONEXISTENT true) -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_NE(r.errors().find("warning: no-such-dev: no such interface"), std::string::npos);
  EXPECT_EQ(r.read("f.method"), "none");
  EXPECT_EQ(r.read("f.drops"), "0");
}

TEST(FromDevice, AndToDeviceSayWhatIsBehindThem) {
  if (!in_namespace([] {
        ASSERT_TRUE(run_ip("link add hr0 address 02:00:00:00:00:07 mtu 1400 up type veth peer name hr1"));
        ASSERT_TRUE(run_ip("link set hr1 up"));
        TestRouter r(
            "f :: FromDevice(hr0, METHOD LINUX) -> [0] s :: EtherSwitch [0] -> Queue -> t :: ToDevice(hr0, METHOD LINUX);"
            "k :: KernelTap(10.9.9.1/24, DEVNAME hr9, ETHER 02:00:00:00:00:09) -> [1] s [1] -> k;"
            "Script(wait 0.1s, write stop, loop)");
        ASSERT_TRUE(r.ok()) << r.errors();
        clock::set_warp(clock::Warp::kNone);
        const Element& s = *r.router().find("s");
        const HasDevice *const in = device_upstream(s, 0), *const out = device_downstream(s, 0);
        ASSERT_TRUE(in != nullptr && out != nullptr && in != out);
        EXPECT_EQ(device_upstream(s, 1), device_downstream(s, 1));
        r.run();  // ends at once: its wait began in simulated time
        r.run();
        EXPECT_EQ(in->device_state(), out->device_state());
        ASSERT_TRUE(in->device_state());
        EXPECT_EQ(in->device_state()->name, "hr0");
        EXPECT_EQ(in->device_state()->address, EtherAddress({2, 0, 0, 0, 0, 7}));
        EXPECT_EQ(in->device_state()->mtu, 1400);
        EXPECT_TRUE(in->device_state()->carrier);
        ASSERT_TRUE(device_upstream(s, 1)->device_state());
        EXPECT_EQ(device_upstream(s, 1)->device_state()->name, "hr9");
        EXPECT_EQ(device_upstream(s, 1)->device_state()->address, EtherAddress({2, 0, 0, 0, 0, 9}));

        r.push("s", from_hex("ffffffffffff 020000000001 9000 0000"), 1);
        // On a busy machine the kernel's word may come after the end of a run.
        const auto run_until = [&r](const auto& changed) {
          for (int i = 0; i < 50 && !changed(); ++i) r.run();
        };
        ASSERT_TRUE(run_ip("link set hr1 down"));
        run_until([&] { return !in->device_state()->carrier; });
        EXPECT_FALSE(in->device_state()->carrier);
        EXPECT_TRUE(in->device_state()->enabled);
        EXPECT_GE(out->device_counters().tx_packets, 1u);
        EXPECT_EQ(in->device_counters().tx_packets, 0u);

        ASSERT_TRUE(run_ip("link del hr0"));
        run_until([&] { return !in->device_state(); });
        EXPECT_EQ(in->device_state(), std::nullopt);
        EXPECT_EQ(out->device_state(), std::nullopt);
      }))
    GTEST_SKIP() << kNamespaceNeeds;
}

TEST(ToDevice, NamesWhatIsWrong) {
  EXPECT_NE(errors_of("Idle -> ToDevice(no-such-dev);").find("  no-such-dev: no such interface"), std::string::npos);
  EXPECT_NE(errors_of("Idle -> ToDevice(lo, METHOD ZERO);").find("bad METHOD: expected AF_XDP"), std::string::npos);
  EXPECT_NE(errors_of("Idle -> ToDevice(lo, BURST 0);").find("BURST: out of range"), std::string::npos);
}

TEST(KernelTap, NamesWhatIsWrong) {
  EXPECT_NE(errors_of("KernelTap() -> Discard;").find("ADDR: required argument missing"), std::string::npos);
  EXPECT_NE(errors_of("KernelTap(10.0.0.1/24, 10.0.1.1) -> Discard;").find("bad GATEWAY"), std::string::npos);
  EXPECT_NE(errors_of("KernelTun(10.0.0.1/24, MTU 20) -> Discard;").find("MTU: out of range"), std::string::npos);
  EXPECT_NE(errors_of("FromHost(x, 10.0.0.1/24, GATEWAY 10.0.1.1) -> Discard;").find("bad GATEWAY"), std::string::npos);
}

TEST(ToHost, WithoutADeviceCountsAndDrops) {
  TestRouter r("Idle -> h :: ToHost;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("h", "packet");
  EXPECT_EQ(r.read("h.drops"), "1");
  EXPECT_EQ(r.read("h.drop_reasons"), "1\tno way to the host\n");
}

}  // namespace
}  // namespace headrace::testing
