/// \file
/// Interfaces as the kernel tells of them, in a network namespace of the test's own.

#include "src/io/linux/link_watch.hh"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>

#include "support/net_namespace.hh"

namespace headrace::io {
namespace {

using testing::in_namespace;
using testing::kNamespaceNeeds;
using testing::run_ip;

/// A watch without a runtime.
struct Watched {
  Errors errors;
  bool ended = false;
  std::shared_ptr<LinkWatch> watch = LinkWatch::at(
      [this](int, std::function<void()> ready) {
        if (!ready) ended = true;
      },
      errors);

  /// Handles messages until `done`. Returns how long that took after `command` was begun; a second at most.
  template <typename Done>
  std::chrono::milliseconds after(const std::string& command, const Done& done) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(run_ip(command)) << command;
    std::chrono::milliseconds took{0};
    while (!done() && took.count() < 1000) {
      pollfd p{watch->fd(), POLLIN, 0};
      if (poll(&p, 1, 100) == 1) watch->run();
      took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    }
    return took;
  }
};

TEST(LinkWatch, SeesAnInterfaceComeChangeAndGo) {
  if (!in_namespace([] {
        Watched w;
        ASSERT_TRUE(w.watch) << w.errors.str();
        EXPECT_TRUE(w.watch->find("lo")->enabled);
        EXPECT_EQ(w.watch->find("lo")->address, std::nullopt);
        int changes = 0, announced = 0;
        const DeviceChangeListener listener([&] { ++announced; });
        const auto link = w.watch->subscribe("hr0", [&] { ++changes; });
        EXPECT_EQ(link->state(), std::nullopt);
        EXPECT_EQ(link->counters(), std::nullopt);

        (void)w.after("link add hr0 address 02:00:00:00:00:07 mtu 1400 type veth peer name hr1",
                      [&] { return link->state().has_value(); });
        ASSERT_TRUE(link->state());
        EXPECT_GT(changes, 0);
        EXPECT_EQ(announced, changes);
        DeviceState state = *link->state();
        EXPECT_EQ(state.name, "hr0");
        EXPECT_EQ(state.address, EtherAddress({2, 0, 0, 0, 0, 7}));
        EXPECT_EQ(state.mtu, 1400);
        EXPECT_FALSE(state.enabled);
        EXPECT_FALSE(state.carrier);

        (void)w.after("link set hr0 up", [&] { return link->state()->enabled; });
        EXPECT_FALSE(link->state()->carrier);
        (void)w.after("link set hr1 up", [&] { return link->state()->carrier; });
        EXPECT_TRUE(link->state()->carrier);
        // As a veth's driver says.
        EXPECT_EQ(link->state()->speed, 10'000u);
        EXPECT_EQ(link->state()->most_speed, 10'000u);
        EXPECT_EQ(link->state()->current, link_mode::k10G | link_mode::kCopper);

        // What fast failover needs, the run of ip(8) included; on a busy machine not each time.
        int fast = 0;
        for (int i = 0; i < 5; ++i) {
          fast += w.after("link set hr1 down", [&] { return !link->state()->carrier; }).count() < 50 ? 1 : 0;
          EXPECT_FALSE(link->state()->carrier);
          fast += w.after("link set hr1 up", [&] { return link->state()->carrier; }).count() < 50 ? 1 : 0;
          EXPECT_TRUE(link->state()->carrier);
        }
        EXPECT_GE(fast, 5);

        (void)w.after("link set hr0 mtu 1300 address 02:00:00:00:00:08", [&] {
          return link->state()->mtu == 1300 && link->state()->address == EtherAddress({2, 0, 0, 0, 0, 8});
        });
        EXPECT_EQ(link->state()->mtu, 1300);
        EXPECT_EQ(link->state()->address, EtherAddress({2, 0, 0, 0, 0, 8}));
        EXPECT_TRUE(link->counters());

        const int before = changes;
        (void)w.after("link set hr0 down name hr9", [&] { return !link->state(); });
        EXPECT_EQ(link->state(), std::nullopt);
        EXPECT_GT(changes, before);
        EXPECT_EQ(w.watch->find("hr9")->mtu, 1300);
        (void)w.after("link set hr9 name hr0", [&] { return link->state().has_value(); });
        EXPECT_TRUE(link->state());
        (void)w.after("link del hr1", [&] { return !link->state(); });
        EXPECT_EQ(link->state(), std::nullopt);
        EXPECT_EQ(w.watch->resynchronizations(), 0u);
      }))
    GTEST_SKIP() << kNamespaceNeeds;
}

/// A port of a bridge has messages of its own; that it leaves the bridge does not mean that it is gone.
TEST(LinkWatch, TellsABridgePortFromAnInterface) {
  if (!in_namespace([] {
        ASSERT_TRUE(run_ip("link add hr0 type veth peer name hr1"));
        Watched w;
        ASSERT_TRUE(w.watch) << w.errors.str();
        ASSERT_TRUE(run_ip("link add br0 type bridge"));
        ASSERT_TRUE(run_ip("link set hr0 master br0"));
        (void)w.after("link set hr0 nomaster mtu 1300", [&] { return w.watch->find("hr0")->mtu == 1300; });
        (void)w.after("link add last type veth peer name last2", [&] { return w.watch->find("last").has_value(); });
        ASSERT_TRUE(w.watch->find("last"));
        EXPECT_TRUE(w.watch->find("hr0"));
        EXPECT_TRUE(w.watch->find("br0"));
      }))
    GTEST_SKIP() << kNamespaceNeeds;
}

/// More messages than the socket holds: what was lost is read again, also that something is gone.
TEST(LinkWatch, RecoversFromLostMessages) {
  if (!in_namespace([] {
        ASSERT_TRUE(run_ip("link add gone type veth peer name gone2"));
        Watched w;
        ASSERT_TRUE(w.watch) << w.errors.str();
        int gone = 0;
        const auto link = w.watch->subscribe("gone", [&] { ++gone; });
        const int least = 1;
        ASSERT_EQ(setsockopt(w.watch->fd(), SOL_SOCKET, SO_RCVBUF, &least, sizeof least), 0);
        for (int i = 0; i < 6; ++i)
          ASSERT_TRUE(run_ip("link add hr" + std::to_string(i) + " type veth peer name p" + std::to_string(i)));
        ASSERT_TRUE(run_ip("link del gone"));
        (void)w.after("link set hr5 up", [&] {
          const std::optional<DeviceState> last = w.watch->find("hr5");
          return last && last->enabled;
        });
        EXPECT_GT(w.watch->resynchronizations(), 0u);
        for (int i = 0; i < 6; ++i) EXPECT_TRUE(w.watch->find("hr" + std::to_string(i))) << i;
        EXPECT_EQ(link->state(), std::nullopt);
        EXPECT_EQ(gone, 1);
        // And it goes on.
        (void)w.after("link set hr5 down", [&] { return !w.watch->find("hr5")->enabled; });
        EXPECT_FALSE(w.watch->find("hr5")->enabled);
      }))
    GTEST_SKIP() << kNamespaceNeeds;
}

TEST(LinkWatch, IsOneForTheProcess) {
  Watched one;
  ASSERT_TRUE(one.watch) << one.errors.str();
  {
    Watched two;
    EXPECT_EQ(one.watch, two.watch);
  }
  EXPECT_FALSE(one.ended);
  one.watch.reset();
  EXPECT_TRUE(one.ended);
}

}  // namespace
}  // namespace headrace::io
