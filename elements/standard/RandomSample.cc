#include "elements/standard/RandomSample.hh"

#include "headrace/value_handlers.hh"

namespace headrace {

namespace {
constexpr Between<double, double> kProbability{0., 1.};
}  // namespace

Status RandomSample::configure(Args& args) {
  double sample = 0, drop = 0;
  bool active = true, positional = false, have_sample = false, have_drop = false;
  args.read_p_status("P", sample, kProbability, positional).read_status("SAMPLE", sample, kProbability, have_sample);
  args.read_status("DROP", drop, kProbability, have_drop).read("ACTIVE", active);
  if (!args.complete()) return Status::failed();
  if (have_sample && have_drop) return args.errors().error("give at most one of SAMPLE and DROP");
  if (!positional && !have_sample && !have_drop)
    return args.errors().error("give the sampling probability by P, SAMPLE or DROP");
  probability_ = have_drop ? 1 - drop : sample;
  active_ = active;
  count_reasons({"not sampled"});
  return {};
}

Packet* RandomSample::act(Packet* p, Emitter& emit) {
  // A share of 2^32 possible draws.
  if (!active_ || static_cast<double>(random_.next()) < probability_ * 0x1p32) return p;
  drops_.add(0, 1);
  emit(1, p);
  return nullptr;
}

std::string RandomSample::configuration() const { return fmt::format("SAMPLE {}, ACTIVE {}", probability_, active_); }

void RandomSample::add_handlers(Handlers& handlers) {
  handlers.read("sampling_prob", [this] { return fmt::format("{}", probability_); });
  handlers.read("drop_prob", [this] { return fmt::format("{}", 1 - probability_); });
  write_value(handlers, "sampling_prob", probability_, kProbability, {});
  write_value(handlers, "drop_prob", probability_, kProbability, [this] { probability_ = 1 - probability_; });
  handlers.value("active", active_);
  handlers.read("drops", [this] { return std::to_string(drops_.sum(0)); });
}

}  // namespace headrace
