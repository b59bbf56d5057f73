#include "base/device_addresses.hh"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstddef>
#include <cstdlib>

#include "headrace/args.hh"

namespace headrace {
namespace {

/// From now on, the kernel ends this process when it opens a netlink socket, which asks for interfaces.
void forbid_netlink() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof program[0], program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    std::_Exit(2);
}

template <typename T>
void read_all_as(NameScope& scope) {
  for (const char* word : {"1.0.0.0/8", "1.2.3.4", "0", "17", "1.2.3", "10.0.0.0/255.0.0.0", "1.0.0.0/77", "::1",
                           "2001:db8::/32", "00:01:02:03:04:05", "300.1.1.1"}) {
    T value;
    (void)parse_argument(word, value, ArgContext(&scope));
  }
}

class DeviceAddresses : public ::testing::Test {
 protected:
  struct NoNames : NameScope {
  } scope_;
};

TEST_F(DeviceAddresses, NumbersAreNotLookedUpAsInterfaces) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        forbid_netlink();
        read_all_as<IpAddress>(scope_);
        read_all_as<IpPrefix>(scope_);
        read_all_as<Ip6Address>(scope_);
        read_all_as<Ip6Prefix>(scope_);
        read_all_as<EtherAddress>(scope_);
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(DeviceAddresses, ASnapshotAsksOnce) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        const auto now = find_device_prefix("lo");
        const DeviceSnapshot snapshot;
        const auto first = find_device_prefix("lo");
        forbid_netlink();
        std::_Exit(first == now && find_device_prefix("lo") == now && !find_device_prefix("no-such-device") ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// Without one, an address that was set since the last look is found.
TEST_F(DeviceAddresses, WithoutASnapshotEveryCallAsks) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        { const DeviceSnapshot snapshot; }
        forbid_netlink();
        (void)find_device_prefix("lo");
        std::_Exit(0);
      },
      ::testing::KilledBySignal(SIGSYS), "");
}

}  // namespace
}  // namespace headrace
