// What threads may do where others stand, and threads that do not belong to the runtime.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "headrace/packet_pool.hh"
#include "headrace/rcu.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"
#include "support/hang_guard.hh"

namespace headrace {
namespace {

/// Keeps every worker busy. Its handlers wait for all readers; its tasks do the same where all others stand.
class WaitsForReaders final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  Status configure(Args& args) override { return args.read_mp("TASKS", waits_).complete(); }
  Status initialize(Errors&) override {
    for (int t = 0; t < router().runtime().threads(); ++t) {
      tasks_.push_back(std::make_unique<Task>(this, [this, t](Task& task) {
        if (waits_ && t == 0) {
          router().runtime().quiesce([] { rcu::synchronize(); });
          ++waited_;
        }
        task.fast_reschedule();
        return true;
      }));
      tasks_.back()->initialize(true, t);
    }
    return {};
  }
  void add_handlers(Handlers& handlers) override {
    handlers.write("wait", [this](const std::string&, Errors&) -> Status {
      rcu::synchronize();
      ++waited_;
      return {};
    });
  }
  int waited() const { return waited_.load(); }

 private:
  bool waits_ = false;
  std::atomic<int> waited_{0};
  std::vector<std::unique_ptr<Task>> tasks_;
};
HEADRACE_ELEMENT(WaitsForReaders)

/// Whether a grace period can pass while the thread is in selected().
class WatchesOne final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  WatchesOne() : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}
  ~WatchesOne() override { close(fd_); }
  Status initialize(Errors&) override {
    select(fd_, 1);
    return {};
  }
  void selected(int, int) override {
    uint64_t count;
    if (read(fd_, &count, sizeof count) < 0) return;
    if (rcu::elapsed(rcu::start_grace())) passed_.store(true);
    ++calls_;
  }
  void wake() const {
    const uint64_t one = 1;
    ASSERT_EQ(write(fd_, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  int calls() const { return calls_.load(); }
  bool passed() const { return passed_.load(); }

 private:
  const int fd_;
  std::atomic<int> calls_{0};
  std::atomic<bool> passed_{false};
};
HEADRACE_ELEMENT(WatchesOne)

class Quiescent : public ::testing::Test {
 protected:
  void start(int threads, const std::string& text) {
    clock::set_warp(clock::Warp::kNone);
    runtime_ = std::make_unique<Runtime>(
        Runtime::Options{.threads = threads, .cpus = {}, .control_thread = true, .real_time = {}, .look_only = false});
    lang::Configuration configuration;
    ASSERT_TRUE(lang::parse(text, "config", {}, configuration, errors_).ok()) << errors_.str();
    router_ = Router::create(configuration, *runtime_, errors_);
    ASSERT_TRUE(router_) << errors_.str();
  }
  Status write(const std::string& name, Errors& errors) {
    Element* element = nullptr;
    const Handler* h = router_->find_handler(name, nullptr, element, errors);
    return h ? router_->call_write(*h, "", errors) : Status::failed();
  }

  Errors errors_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Router> router_;
};

TEST_F(Quiescent, AHandlerMayWaitForReaders) {
  const testing::HangGuard guard(60);
  start(3, "w :: WaitsForReaders(false)");
  const auto* w = router_->first<WaitsForReaders>();
  runtime_->run(
      router_,
      [&] {
        EXPECT_TRUE(write("w.wait", errors_).ok());
        return w->waited() < 20;
      },
      1);
  EXPECT_EQ(w->waited(), 20);
}

TEST_F(Quiescent, AnActionOfAWorkerMayWaitForReaders) {
  const testing::HangGuard guard(60);
  start(3, "w :: WaitsForReaders(true)");
  const auto* w = router_->first<WaitsForReaders>();
  runtime_->run(
      router_,
      [&] {
        // The control thread wants the others to stand, too.
        EXPECT_TRUE(write("w.wait", errors_).ok());
        return w->waited() < 50;
      },
      1);
  EXPECT_GE(w->waited(), 50);
}

/// Packets that a descriptor brings are read as all others: tables that they look up must not go away meanwhile.
TEST_F(Quiescent, AWorkerThatADescriptorWokeIsAReader) {
  const testing::HangGuard guard(60);
  start(1, "w :: WatchesOne");
  const auto* w = router_->first<WatchesOne>();
  int woken = 0;
  runtime_->run(
      router_,
      [&] {
        // Again only behind the last one, so that the worker sleeps before each.
        if (w->calls() == woken && woken < 20) {
          ++woken;
          w->wake();
        }
        return w->calls() < 20;
      },
      2);
  EXPECT_EQ(w->calls(), 20);
  EXPECT_FALSE(w->passed());
}

TEST_F(Quiescent, AForeignThreadMayMakePacketsButNotWriteHandlers) {
  start(2, "w :: WaitsForReaders(false)");
  const uint32_t before = PacketPool::instance().in_use();
  Packet* kept = nullptr;
  Errors errors;
  std::thread([&] {
    EXPECT_LT(thread_id(), 0);
    Packet* all[3] = {Packet::make("one", 3), Packet::make("two", 3), nullptr};
    EXPECT_EQ(PacketPool::instance().allocate_bulk(all + 2, 1), 1u);
    all[2]->reset(5, Packet::kDefaultHeadroom);
    EXPECT_EQ(PacketPool::instance().in_use(), before + 3);
    all[0]->kill();
    PacketPool::instance().release_bulk(all + 2, 1);
    kept = all[1];
    EXPECT_FALSE(write("w.wait", errors).ok());
  }).join();
  EXPECT_NE(errors.str().find("does not belong to the router"), std::string::npos) << errors.str();
  EXPECT_EQ(router_->first<WaitsForReaders>()->waited(), 0);
  ASSERT_TRUE(kept);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(kept->data()), kept->length()), "two");
  kept->kill();
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

}  // namespace
}  // namespace headrace
