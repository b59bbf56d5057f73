#pragma once
/// \file
/// A router whose devices hold their jobs back until the test lets them go, and packets that say where in their flow they
/// are.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "offload_fixture.hh"
#include "packets.hh"
#include "test_shaders.hh"

namespace headrace::testing {

class OffloadQueue : public ::testing::Test {
 protected:
  using Mode = OffloadOptions::Mode;
  void SetUp() override { in_use_before_ = PacketPool::instance().in_use(); }
  void TearDown() override {
    router_.reset();
    EXPECT_EQ(PacketPool::instance().in_use(), in_use_before_) << "packets were lost or freed twice";
    for (int d = 0; devices_ && d < count_; ++d) {
      EXPECT_EQ((*devices_)[d].reused, 0) << "a place was used again before its job was done";
      EXPECT_EQ((*devices_)[d].unhealthy_reads, 0) << "a result was used that is not there";
    }
  }

  static OffloadOptions options(Mode mode, int job = 4, int jobs = 4) {
    OffloadOptions o;
    o.mode = mode;
    o.backend = "reference";
    o.job = job;
    o.jobs = jobs;
    o.deadline_ms = 60000;
    return o;
  }
  void make(const std::string& text, const OffloadOptions& options, int devices = 1, int workers = 1) {
    count_ = devices;
    devices_.reset();
    devices_ = std::make_unique<TestDevices>(devices);
    router_ = std::make_unique<TestRouter>(text, RouterOptions{.profile = false, .offload = options}, workers);
    ASSERT_TRUE(router_->ok()) << router_->errors();
    ASSERT_NE(router_->router().engine(), nullptr) << router_->errors();
    // A single worker has a lane to each device, so that it need not stop for one.
    for (int d = devices - 1; workers == 1 && devices > 1 && d >= 0; --d)
      router_->write("offload_tuning", fmt::format("device={}", d));
  }
  TestRouter& r() { return *router_; }
  DeviceControls& device(int d = 0) { return (*devices_)[d]; }
  uint64_t count(offload::Event e) { return event(*router_, e); }

  /// Sends `n` packets of `flow` with `length` bytes, each with its number.
  void send(uint32_t flow, int n, const std::string& element = "first", uint32_t length = 64) {
    std::vector<Packet*> packets;
    for (int i = 0; i < n; ++i)
      packets.push_back(marked(udp_frame(0x0a000000 + flow, 1, 64, length), flow, next_[flow]++));
    inject(*router_, element, packets);
  }
  const Capture& capture() { return dynamic_cast<const Capture&>(*router_->router().find("cap")); }
  const std::vector<Capture::Seen>& seen() { return capture().seen(); }
  /// All that was sent has come, the packets of each flow in order.
  void expect_all_in_order() {
    std::map<uint32_t, uint32_t> came;
    for (const Capture::Seen& s : seen()) {
      const uint32_t flow = s.packet->anno_u32(kFlowAnno);
      EXPECT_EQ(s.packet->anno_u32(kNumberAnno), came[flow]) << "of flow " << flow;
      ++came[flow];
    }
    EXPECT_EQ(came, next_);
  }
  bool failed(int d) { return is(d, "failed"); }
  bool hung(int d) { return is(d, "hung"); }
  bool is(int d, const char* state) {
    return r().router().engine()->describe().find(fmt::format("device {}: {}", d, state)) != std::string::npos;
  }
  offload::JobQueue& queue() { return r().router().engine()->queue(0); }
  /// The packets of `flow` that came.
  size_t came(uint32_t flow) {
    return static_cast<size_t>(std::count_if(seen().begin(), seen().end(), [flow](const Capture::Seen& s) {
      return s.packet->anno_u32(kFlowAnno) == flow;
    }));
  }

  /// As the handler does, but without bringing the tables up to date, for which held jobs would be waited.
  void set_mode(const char* mode) { ASSERT_TRUE(r().router().engine()->set_mode(mode)); }

  static constexpr const char* kChain = "Idle -> first :: Strip(14) -> n :: Counter -> Paint(3) -> cap :: Capture;";

  int count_ = 0;
  std::unique_ptr<TestDevices> devices_;
  std::unique_ptr<TestRouter> router_;
  std::map<uint32_t, uint32_t> next_;
  uint32_t in_use_before_ = 0;
};

}  // namespace headrace::testing
