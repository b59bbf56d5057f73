/// \file
/// Which device an element finds behind a port, and who hears that devices have changed.

#include <gtest/gtest.h>

#include "headrace/device_state.hh"
#include "headrace/element.hh"
#include "headrace/router.hh"
#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// A device port, with the device that its argument names; without one the device is gone.
class DeviceStub final : public Element, public HasDevice {
 public:
  static constexpr Ports kPorts{"-/-"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr Flow kFlow{"x/y"};
  Status configure(Args& args) override { return args.read_p("NAME", name_).complete(); }
  void push(int, Batch& batch) override { batch.kill(); }
  std::optional<DeviceState> device_state() const override {
    DeviceState state;
    state.name = name_;
    return name_.empty() ? std::nullopt : std::optional(state);
  }
  DeviceCounters device_counters() const override { return {}; }

 private:
  std::string name_;
};
HEADRACE_ELEMENT(DeviceStub)

struct DeviceSearch : ::testing::Test {
  std::unique_ptr<TestRouter> router;

  void configure(const std::string& text) {
    router = std::make_unique<TestRouter>(text);
    ASSERT_TRUE(router->ok()) << router->errors();
  }
  const Element& element(const std::string& name) { return *router->router().find(name); }
  const HasDevice* device(const std::string& name) {
    return dynamic_cast<const HasDevice*>(router->router().find(name));
  }
};

TEST_F(DeviceSearch, FindsDevicesThroughOtherElements) {
  configure(
      "a :: DeviceStub(eth0) -> Counter -> Paint(1) -> [0] s :: EtherSwitch;"
      "b :: DeviceStub(eth1) -> Queue -> Unqueue -> [1] s;"
      "s [0] -> Counter -> Queue -> Unqueue -> c :: DeviceStub(eth0); s [1] -> d :: DeviceStub(eth1);");
  EXPECT_EQ(device_upstream(element("s"), 0), device("a"));
  EXPECT_EQ(device_upstream(element("s"), 1), device("b"));
  EXPECT_EQ(device_downstream(element("s"), 0), device("c"));
  EXPECT_EQ(device_downstream(element("s"), 1), device("d"));
}

TEST_F(DeviceSearch, FindsNoneWhereThereIsNoneOrAreSeveral) {
  configure(
      "Idle -> [0] s :: EtherSwitch; a :: DeviceStub(eth1) -> [1] s; b :: DeviceStub(eth2) -> [1] s;"
      "s [0] -> Discard; s [1] -> t :: Tee; t [0] -> c :: DeviceStub(eth0); t [1] -> d :: DeviceStub(eth0);");
  EXPECT_EQ(device_upstream(element("s"), 0), nullptr);
  EXPECT_EQ(device_upstream(element("s"), 1), nullptr);
  EXPECT_EQ(device_downstream(element("s"), 0), nullptr);
  // Two elements, but one device.
  EXPECT_NE(device_downstream(element("s"), 1), nullptr);
}

/// A cable from one port to another of the same element leads to no device, not to those of its other ports.
TEST_F(DeviceSearch, DoesNotSearchThroughTheElementItself) {
  configure(
      "a :: DeviceStub(eth0) -> [0] s :: EtherSwitch; s [0] -> b :: DeviceStub(eth0); s [1] -> Counter -> [1] s;");
  EXPECT_EQ(device_upstream(element("s"), 0), device("a"));
  EXPECT_EQ(device_upstream(element("s"), 1), nullptr);
  EXPECT_EQ(device_downstream(element("s"), 1), nullptr);
}

TEST_F(DeviceSearch, TellsDevicesThatAreGoneApart) {
  configure(
      "a :: DeviceStub -> [0] s :: EtherSwitch; b :: DeviceStub -> [0] s; c :: DeviceStub -> [1] s;"
      "s [0] -> Discard; s [1] -> Discard;");
  EXPECT_EQ(device_upstream(element("s"), 0), nullptr);
  EXPECT_EQ(device_upstream(element("s"), 1), device("c"));
}

TEST(DeviceChangeListener, HearsWhileItLives) {
  int one = 0, two = 0;
  announce_device_change();
  const DeviceChangeListener first([&] { ++one; });
  {
    const DeviceChangeListener second([&] { ++two; });
    announce_device_change();
  }
  announce_device_change();
  EXPECT_EQ(one, 2);
  EXPECT_EQ(two, 1);
}

}  // namespace
}  // namespace headrace::testing
