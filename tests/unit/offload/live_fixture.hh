#pragma once
/// \file
/// Routers at work, on threads of their own, with flows whose packets are numbered.

#include <memory>
#include <string>

#include "flow_elements.hh"
#include "headrace/real_clock.hh"
#include "offload_fixture.hh"

namespace headrace::testing {

inline int64_t milliseconds() { return now_ns() / 1'000'000; }

class OffloadLive : public OffloadTest {
 protected:
  static constexpr int kWorkers = 3;

  std::unique_ptr<LiveRouter> live(const std::string& text, const OffloadOptions& options) {
    if (has_controls())
      for (int d = 0; d < devices_->count(); ++d) (*devices_)[d].threads = true;
    auto r = std::make_unique<LiveRouter>(text, options, kWorkers, compile(CompileOptions::Mode::kAuto));
    EXPECT_TRUE(r->ok()) << r->errors();
    if (r->ok()) find_ends(*r);
    return r;
  }
  /// Those of the running router, which a swap changes.
  void find_ends(LiveRouter& r) {
    source_ = r.router().first<FlowSource>();
    sink_ = r.router().first<FlowSink>();
  }
  void expect_everything_came() {
    EXPECT_EQ(sink_->missing(), 0u);
    EXPECT_EQ(sink_->late(), 0u);
    EXPECT_EQ(sink_->damaged(), 0u);
    EXPECT_EQ(sink_->stale(), 0u);
    EXPECT_EQ(sink_->received(), source_->sent());
    EXPECT_GT(source_->sent(), 0u);
  }

  FlowSource* source_ = nullptr;
  FlowSink* sink_ = nullptr;
};

/// \param source, routes arguments of FlowSource and of the route table
inline std::string forwarder(const std::string& source, const std::string& routes = "1.0.0.0/8 0") {
  std::string text = R"(
src :: FlowSource({}) -> c :: Classifier(12/0800, -) -> Strip(14) -> check :: CheckIPHeader
  -> rt :: RadixIPLookup({}) ;
sink :: FlowSink;
c[1] -> Discard;
rt[0] -> ttl :: DecIPTTL -> n :: Counter -> tee :: IPGWOptions(10.0.0.1) -> frag :: IPFragmenter(100)
  -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> sink;
rt[1] -> EtherEncap(0x0800, 1:1:1:1:1:1, 3:3:3:3:3:3) -> [1] sink;
rt[2] -> [2] sink;
)";
  text.replace(text.find("{}"), 2, source);
  text.replace(text.find("{}"), 2, routes);
  return text;
}

}  // namespace headrace::testing
