#include "elements/devices/FromDevice.hh"

#include "support/element_test.hh"

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
