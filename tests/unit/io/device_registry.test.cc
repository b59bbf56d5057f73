#include "io/linux/device_registry.hh"

#include <gtest/gtest.h>

namespace headrace::io {
namespace {

struct Device {
  Device(int number, int& alive) : number(number), alive(alive) { ++alive; }
  ~Device() { --alive; }
  int number;
  int& alive;
};

class Registry : public ::testing::Test {
 protected:
  std::shared_ptr<Device> open(const char* name, const void* user, bool fits = true) {
    return registry_.open(
        name, user, [fits](const Device&) { return fits; },
        [this](int n) {
          asked_ = n;
          return opens_ ? std::make_shared<Device>(++made_, alive_) : nullptr;
        });
  }
  const int first_ = 0, second_ = 0, third_ = 0;  // configurations
  int made_ = 0, asked_ = -1, alive_ = 0;
  DeviceRegistry<Device> registry_;
  bool opens_ = true;
};

TEST_F(Registry, ASuccessorSharesWhatItsPredecessorHas) {
  auto a0 = open("eth0", &first_), a1 = open("eth0", &first_), b = open("eth1", &first_);
  EXPECT_EQ(asked_, 0);
  EXPECT_EQ(made_, 3);
  auto next_b = open("eth1", &second_), next_a0 = open("eth0", &second_), next_a1 = open("eth0", &second_);
  EXPECT_EQ(made_, 3);
  EXPECT_EQ(next_a0, a0);
  EXPECT_EQ(next_a1, a1);
  EXPECT_EQ(next_b, b);
  auto next_a2 = open("eth0", &second_);
  EXPECT_EQ(next_a2->number, 4);
  EXPECT_EQ(asked_, 2);
}

TEST_F(Registry, TellsWhetherAnyDeviceOfANameIsSo) {
  const auto is_second = [](const Device& d) { return d.number == 2; };
  EXPECT_FALSE(registry_.any("eth0", is_second));
  auto a = open("eth0", &first_), b = open("eth0", &first_);
  EXPECT_TRUE(registry_.any("eth0", is_second));
  EXPECT_FALSE(registry_.any("eth1", is_second));
  b.reset();
  EXPECT_FALSE(registry_.any("eth0", is_second));
}

TEST_F(Registry, OneConfigurationDoesNotShareWithItself) {
  auto a = open("eth0", &first_), b = open("eth0", &first_);
  EXPECT_NE(a, b);
  EXPECT_EQ(asked_, 1);
}

TEST_F(Registry, WhatDoesNotFitIsOpenedAnew) {
  auto a = open("eth0", &first_);
  auto b = open("eth0", &second_, false);
  EXPECT_NE(a, b);
  // The next one follows the last.
  EXPECT_EQ(open("eth0", &third_), b);
}

TEST_F(Registry, ADeviceIsGoneWithItsLastUser) {
  auto a = open("eth0", &first_);
  auto b = open("eth0", &second_);
  a.reset();
  EXPECT_EQ(alive_, 1);
  auto copy = b;
  b.reset();
  EXPECT_EQ(alive_, 1);
  copy.reset();
  EXPECT_EQ(alive_, 0);
  EXPECT_EQ(open("eth0", &first_)->number, 2);
}

TEST_F(Registry, ARefusedConfigurationLeavesNoTrace) {
  auto a = open("eth0", &first_);
  open("eth0", &second_).reset();
  open("eth1", &second_).reset();
  EXPECT_EQ(open("eth0", &first_)->number, 3);  // a second one of the same configuration
  EXPECT_EQ(open("eth0", &second_), a);
  opens_ = false;
  EXPECT_EQ(open("eth2", &second_), nullptr);
}

}  // namespace
}  // namespace headrace::io
