// Packets of many flows are encrypted, and decrypted behind that, on the CPU and on devices that are late, hang, fail, and
// are replaced together with the configuration: numbers leave in order, no IV leaves twice, nothing is lost.

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "flow_elements.hh"
#include "headrace/real_clock.hh"
#include "offload_fixture.hh"
#include "support/ipsec_test.hh"

namespace headrace::testing {
namespace {

using Mode = OffloadOptions::Mode;

/// What has been seen of associations; it outlives routers.
struct SeenNumbers {
  struct Association {
    uint32_t last = 0;
    std::set<uint64_t> ivs;
  };
  std::mutex lock;
  std::map<uint32_t, Association> associations;  // by SPI
  uint64_t out_of_order = 0, ivs_twice = 0, in_clear = 0;
};
SeenNumbers* g_seen = nullptr;

/// Looks at ESP packets as an observer between two gateways would.
class ESPWatch final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"h/h"};

  void push(int, Batch& batch) override {
    {
      const std::lock_guard guard(g_seen->lock);
      for (const Packet* p : batch) look(p->transport_header());
    }
    output(0).push(batch);
  }

 private:
  static void look(const uint8_t* esp) {
    uint32_t words[2];
    uint64_t iv;
    std::memcpy(words, esp, 8);
    std::memcpy(&iv, esp + 8, 8);
    SeenNumbers::Association& a = g_seen->associations[__builtin_bswap32(words[0])];
    const uint32_t number = __builtin_bswap32(words[1]);
    g_seen->out_of_order += number != a.last + 1;
    a.last = number;
    g_seen->ivs_twice += !a.ivs.insert(iv).second;
    // The inner header of a packet that nobody has encrypted.
    const uint8_t* const inner = esp + 16;
    g_seen->in_clear += inner[0] == 0x45 && inner[9] == 17 && inner[12] == 10 && inner[16] == 1;
  }
};
HEADRACE_ELEMENT(ESPWatch)

class OffloadIPsec : public OffloadTest {
 protected:
  static constexpr int kWorkers = 3, kFlows = 16, kAssociations = 6;

  void SetUp() override {
    OffloadTest::SetUp();
    g_seen = &seen_;
    std::string text, reversed;
    const auto algorithms = [](int i) {
      const std::string sha1 = "auth_algo sha1-hmac auth_key " + key_text(20, i + 40),
                        sha256 = "auth_algo sha256-hmac auth_key " + key_text(32, i + 60);
      const std::string all[] = {"cipher_algo aes-128-ctr cipher_key " + key_text(20, i) + " " + sha1,
                                 "aead_algo aes-128-gcm aead_key " + key_text(20, i),
                                 "cipher_algo aes-256-ctr cipher_key " + key_text(36, i) + " " + sha256,
                                 "aead_algo aes-256-gcm aead_key " + key_text(36, i)};
      return all[i % 4];
    };
    // Numbers are kept for the whole process, so each test has SPIs of its own.
    static uint32_t spi = 52000;
    for (int i = 0; i < kAssociations; ++i, ++spi) {
      std::string lines = tunnel_line("out", spi, algorithms(i)) + tunnel_line("in", spi, algorithms(i));
      for (const char* direction : {"out", "in"})
        lines += fmt::format("sp ipv4 {} esp protect {} pri 1 dst 1.0.0.{}/29\n", direction, spi, 8 * i);
      text += lines;
      reversed.insert(0, lines);
    }
    config_.emplace(text);
    reversed_.emplace(tunnel_line("out", spi++, algorithms(0)) + reversed);
  }
  void TearDown() override {
    g_seen = nullptr;
    OffloadTest::TearDown();
  }

  /// \param reversed with the associations in another order, behind one that the other configuration has not
  std::string text(const std::string& more = "", bool reversed = false) const {
    return fmt::format(
        "db :: IPsecDatabase(CONFIG {}); src :: FlowSource(FLOWS {}, BURST 8, LONGEST 300) -> Strip(14)"
        " -> CheckIPHeader -> policy :: IPsecPolicy(db, out) -> {}encap :: IPsecESPEncap(db) -> IPsecAES(db, true)"
        " -> IPsecAuthHMACSHA1(db, false) -> ESPWatch -> lookup :: IPsecESPLookup(db)"
        " -> IPsecAuthHMACSHA1(db, true) -> IPsecAES(db, false) -> IPsecESPUnencap(db) -> sink :: FlowSink;",
        (reversed ? *reversed_ : *config_).path(), kFlows, more);
  }

  static uint64_t dropped(const Router& router) {
    uint64_t sum = 0;
    for (const Router::Drop& drop : router.drops()) sum += drop.packets;
    return sum;
  }

  /// Runs until `event` has happened so often and packets flowed before and after it, with new configurations if `second`
  /// is not empty; then compares.
  void run(const OffloadOptions& options, offload::Event event, uint64_t least, const std::string& second = "") {
    if (has_controls())
      for (int d = 0; d < devices_->count(); ++d) (*devices_)[d].threads = true;
    LiveRouter r(text(), options, kWorkers, compile(CompileOptions::Mode::kAuto));
    ASSERT_TRUE(r.ok()) << r.errors();
    const int64_t begin = now_ns();
    uint64_t before = 0;  // of routers that have gone
    int swaps = 0;
    const auto count = [&] { return before + (r.engine() ? r.engine()->event(event) : 0); };
    uint64_t received_at_event = 0;
    r.run([&] {
      const uint64_t received = r.router().first<FlowSink>()->received();
      if (received_at_event == 0 && count() >= least && received > 3000) received_at_event = received;
      if (!second.empty() && swaps < 6 && received > 2000 * static_cast<uint64_t>(swaps + 1)) {
        before = count();
        EXPECT_TRUE(r.swap(++swaps % 2 ? text(second, true) : text())) << r.errors();
      }
      const bool enough =
          received_at_event > 0 && received > received_at_event + 3000 && (second.empty() || swaps == 6);
      if (enough) r.router().first<FlowSource>()->set_active(false);
      const bool done = enough && received + dropped(r.router()) == r.router().first<FlowSource>()->sent();
      // To compile for a device takes half a minute beside other tests.
      return !HasFailure() && !done && now_ns() - begin < 120'000'000'000;
    });
    EXPECT_GE(count(), least);
    EXPECT_GT(received_at_event, 0u);
    const FlowSink& sink = *r.router().first<FlowSink>();
    EXPECT_EQ(sink.late(), 0u);
    EXPECT_EQ(sink.damaged(), 0u);
    for (const Router::Drop& drop : r.router().drops())
      ADD_FAILURE() << drop.element << ": " << drop.packets << " " << drop.reason;
    EXPECT_EQ(sink.received(), r.router().first<FlowSource>()->sent());
    const std::lock_guard guard(seen_.lock);
    EXPECT_EQ(seen_.associations.size(), static_cast<size_t>(kAssociations));
    EXPECT_EQ(seen_.out_of_order, 0u);
    EXPECT_EQ(seen_.ivs_twice, 0u);
    EXPECT_EQ(seen_.in_clear, 0u);
  }

  SeenNumbers seen_;
  std::optional<TemporaryFile> config_, reversed_;
};
HEADRACE_OFFLOAD_CARRIERS(OffloadIPsec);

TEST_P(OffloadIPsec, NumbersLeaveInOrderWhileConfigurationsChange) {
  OffloadOptions o = options(Mode::kDevice);
  o.job = 64;
  o.reference.delay_us = 50;
  run(o, offload::kJobs, on_cpu() ? 0 : 10, "n :: Counter -> ");
}

/// More places than a device has blocks: then several of them look for jobs in a place.
TEST_P(OffloadIPsec, NumbersLeaveInOrderFromManyPlaces) {
  OffloadOptions o = options(Mode::kDevice);
  o.job = 8;
  o.jobs = 64;
  run(o, offload::kJobs, on_cpu() ? 0 : 1000);
}

/// A router with one association whose key is looked for in the memory of a device.
class OffloadIPsecKeys : public OffloadTest {
 protected:
  void SetUp() override {
    OffloadTest::SetUp();
    if (IsSkipped()) return;
    if (!has_controls()) GTEST_SKIP() << "needs a device with memory of its own";
    devices(1)[0].keep_freed = true;
    // The cipher's key begins the round keys.
    for (int i = 0; i < 16; ++i) key_ += static_cast<char>(0xa0 + (i * 7 + 77 * 11) % 96);
    config_.emplace(tunnel_line("out", 51999, "aead_algo aes-128-gcm aead_key " + key_text(20, 77)) +
                    protect_all("out", 51999));
    OffloadOptions o = options(Mode::kDevice);
    o.deadline_ms = 1;
    o.job = 1;
    r_ = make(fmt::format("db :: IPsecDatabase(CONFIG {}); Idle -> first :: Strip(0) -> policy :: IPsecPolicy(db, out)"
                          " -> IPsecESPEncap(db) -> IPsecAES(db, true) -> Discard;"
                          " wait :: Script(TYPE PASSIVE, wait 100ms, stop);",
                          config_->path()),
              o);
    ASSERT_TRUE(r_->ok());
  }

  void TearDown() override {
    r_.reset();
    OffloadTest::TearDown();
  }

  int found_in(const std::string& memory) const {
    int n = 0;
    for (size_t at = memory.find(key_); at != std::string::npos; at = memory.find(key_, at + 1)) ++n;
    return n;
  }
  int copies() const {
    const std::string memory = (*devices_)[0].memory();
    EXPECT_FALSE(memory.empty());
    return found_in(memory);
  }
  /// Sends a packet, which uses the current generation of the device's tables.
  void send() {
    const std::string bytes = clear_packet();
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_network_header(0, 20);
    inject(*r_, "policy", {p});
  }
  void add(uint32_t spi) {
    ASSERT_TRUE(r_->write("db.add", tunnel_line("out", spi, "aead_algo aes-128-gcm aead_key " + key_text(20, 78))))
        << r_->errors();
  }

  void wait() {
    ASSERT_TRUE(r_->write("wait.run")) << r_->errors();
    r_->run();
  }

  std::string key_;
  std::optional<TemporaryFile> config_;
  std::unique_ptr<TestRouter> r_;
};
HEADRACE_OFFLOAD_CARRIERS(OffloadIPsecKeys);

/// Of an association that is removed, no copy of a device's tables keeps the keys for more than 20 ms.
TEST_P(OffloadIPsecKeys, LeaveTheDeviceWithTheirAssociation) {
  add(51998);  // for another generation
  EXPECT_GT(copies(), 1);
  ASSERT_TRUE(r_->write("db.remove", "out 51999")) << r_->errors();
  wait();
  EXPECT_EQ(copies(), 0);
}

TEST_P(OffloadIPsecKeys, LeaveTheThirdGenerationBeforeItsMemoryIsFreed) {
  DeviceControls& device = (*devices_)[0];
  device.hold = true;
  send();
  add(51997);
  send();
  const int before = device.allocations;
  add(51996);  // two generations are in use
  EXPECT_GT(device.allocations, before);
  EXPECT_EQ(copies(), 3);
  device.hold = false;
  r_->router().drain();
  ASSERT_TRUE(r_->write("db.remove", "out 51999")) << r_->errors();
  wait();
  EXPECT_EQ(copies(), 0);
  EXPECT_FALSE(device.freed.empty());
  EXPECT_EQ(found_in(device.freed), 0);
}

TEST_P(OffloadIPsecKeys, LeaveAGenerationThatALateJobUsedWhenTheJobHasEnded) {
  DeviceControls& device = (*devices_)[0];
  device.lose = device.submitted.load();
  send();
  ASSERT_TRUE(r_->write("db.remove", "out 51999")) << r_->errors();
  wait();
  EXPECT_EQ(copies(), 1) << "the device may still read it";
  device.found = true;
  // The test's clock does not wait for a device that works now.
  for (int i = 0; i < 1000 && copies() != 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    wait();
  }
  EXPECT_EQ(copies(), 0);
}

TEST_P(OffloadIPsecKeys, LeaveTheDeviceWithTheRouter) {
  r_.reset();
  EXPECT_FALSE((*devices_)[0].freed.empty());
  EXPECT_EQ(found_in((*devices_)[0].freed), 0);
}

TEST_P(OffloadIPsec, ADeviceIsLate) {
  if (!has_controls()) GTEST_SKIP() << "needs a device that is late when told";
  devices(2);
  OffloadOptions o = options(Mode::kDevice);
  o.devices = 2;
  o.job = 64;
  o.deadline_ms = 5;
  o.reference.late_every = 20;
  o.reference.late_ms = 30;
  (*devices_)[0].lose = 3;
  run(o, offload::kLateJobs, 3);
}

TEST_P(OffloadIPsec, ADeviceFailsInTheMiddle) {
  if (!has_controls()) GTEST_SKIP() << "needs a device that fails when told";
  devices(1)[0].fail_from = 40;
  OffloadOptions o = options(Mode::kDevice);
  o.job = 64;
  run(o, offload::kFailedJobs, 1);
}

}  // namespace
}  // namespace headrace::testing
