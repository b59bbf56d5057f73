#pragma once
/// \file
/// Runs configurations inside a test, in simulated time.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"

namespace headrace::testing {

/// A router made from text. With errors, `ok()` is false and `errors()` has the lines.
class TestRouter {
 public:
  explicit TestRouter(std::string_view text, int threads = 1, bool profile = false);
  /// Chains run on test_carrier(), unless `options` name a backend.
  TestRouter(std::string_view text, RouterOptions options, int threads = 1);
  ~TestRouter();

  bool ok() const { return router_ != nullptr; }
  std::string errors() const { return errors_.str(); }
  Router& router() { return *router_; }
  /// Runs (again) until something stops the router. Time is simulated, so waiting costs nothing.
  void run() {
    if (ran_) router_->adjust_run_count(1 - router_->run_count());
    ran_ = true;
    runtime_.run(router_);
  }
  /// "element.handler", with parameters behind a blank. Fails the test when there is none.
  std::string read(const std::string& handler);
  /// False, with errors() extended, when the write failed.
  bool write(const std::string& handler, const std::string& value = "");
  /// Pushes a packet with these bytes to an input of `element`, as a source would.
  void push(const std::string& element, std::string_view bytes, int port = 0);
  /// Pushes a packet that the caller made.
  void push(const std::string& element, Packet* p, int port = 0);

 private:
  Errors errors_;
  Runtime runtime_;
  std::unique_ptr<Router> router_;
  bool ran_ = false;
};

/// Keeps the packets pushed to it: `Capture` in a configuration, looked up by the name it has there.
class Capture final : public Element {
 public:
  static constexpr Ports kPorts{"-/0"};
  static constexpr Processing kProcessing{"h/h"};
  struct Seen {
    int port;
    Packet* packet;
  };
  ~Capture() override;
  void push(int port, Batch& batch) override;
  /// Tests look at all of a packet.
  std::vector<RegionInfo> annotations() const override { return declared(Read{anno::any}); }
  const std::vector<Seen>& seen() const { return seen_; }
  /// The bytes of packet `i`.
  std::string bytes(size_t i) const;

 private:
  std::vector<Seen> seen_;
};

/// "45 00 0014" to bytes.
std::string from_hex(std::string_view hex);
std::string to_hex(std::string_view bytes);

}  // namespace headrace::testing
