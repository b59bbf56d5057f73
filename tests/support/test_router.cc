#include "support/test_router.hh"

#include <cctype>
#include <optional>

#include "runtime/shipped_compounds.hh"
#include "support/carrier.hh"

namespace headrace::testing {

HEADRACE_ELEMENT(Capture)

TestRouter::TestRouter(std::string_view text, int threads, bool profile)
    : TestRouter(text, RouterOptions{.profile = profile, .offload = {}}, threads) {}

TestRouter::TestRouter(std::string_view text, RouterOptions options, int threads)
    : runtime_(Runtime::Options{.threads = threads, .cpus = {}, .control_thread = false}) {
  clock::set_warp(clock::Warp::kSimulation);
  clock::set_simulated_now(Timestamp::from_sec(1000000000), Timestamp::from_sec(1000));
  lang::Configuration configuration;
  lang::Options language;
  add_shipped_compounds(language);
  if (!lang::parse(text, "config", language, configuration, errors_)) return;
  std::optional<CarrierDevices> devices;
  const Carrier carrier = test_carrier();
  if (carrier == Carrier::kCompiled) {
    options.compile.mode = CompileOptions::Mode::kWait;
    options.compile.shortest = 1;
    options.compile.smallest_batch = 1;
  } else if (carrier != Carrier::kCpu && options.offload.backend == "auto") {
    options.offload.backend = carrier == Carrier::kCuda ? "cuda" : "reference";
    options.offload.mode = OffloadOptions::Mode::kDevice;
    options.offload.deadline_ms = 20000;  // a test machine may be slow
    devices.emplace(carrier);
  }
  router_ = Router::create(configuration, runtime_, errors_, options);
  if (router_ && options.compile.mode == CompileOptions::Mode::kWait) expect_compiled(*router_);
  if (router_ && devices)
    for (const auto& element : router_->elements()) expect_carried(*element);
}

TestRouter::~TestRouter() {
  if (router_) note_compiled(*router_);
  router_.reset();
  clock::set_warp(clock::Warp::kNone);
}

std::string TestRouter::read(const std::string& handler) {
  const size_t space = handler.find(' ');
  Element* element = nullptr;
  Errors errors;
  std::string value;
  const Handler* h = router_->find_handler(handler.substr(0, space), nullptr, element, errors);
  if (h) (void)router_->call_read(*h, space == std::string::npos ? "" : handler.substr(space + 1), value, errors);
  EXPECT_EQ(errors.str(), "") << "reading " << handler;
  return value;
}

bool TestRouter::write(const std::string& handler, const std::string& value) {
  Element* element = nullptr;
  const Handler* h = router_->find_handler(handler, nullptr, element, errors_);
  return h && router_->call_write(*h, value, errors_).ok();
}

void TestRouter::push(const std::string& element, std::string_view bytes, int port) {
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  ASSERT_NE(p, nullptr);
  push(element, p, port);
}

void TestRouter::push(const std::string& element, Packet* p, int port) {
  Element* e = router_->find(element);
  ASSERT_NE(e, nullptr) << element;
  Batch batch(p);
  if (!router_->engine() && !router_->cpu_chains()) {
    e->push(port, batch);
    return;
  }
  // By way of whatever stands before the element.
  for (const Router::Connection& c : router_->connections()) {
    if (c.to != e || c.to_port != port) continue;
    c.from->output(c.from_port).push(batch);
    router_->drain();
    return;
  }
  e->push(port, batch);
  router_->drain();
}

Capture::~Capture() {
  for (const Seen& s : seen_) s.packet->kill();
}

void Capture::push(int port, Batch& batch) {
  for (Packet* p : batch) seen_.push_back({port, p});
}

std::string Capture::bytes(size_t i) const {
  const Packet& p = *seen_.at(i).packet;
  return {reinterpret_cast<const char*>(p.data()), p.length()};
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  int high = -1;
  for (const char c : hex) {
    if (!std::isxdigit(static_cast<unsigned char>(c))) continue;
    const int digit = std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : std::tolower(c) - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      bytes += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const unsigned char c : bytes) {
    hex += "0123456789abcdef"[c >> 4];
    hex += "0123456789abcdef"[c & 15];
  }
  return hex;
}

}  // namespace headrace::testing
