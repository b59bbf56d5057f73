#include "elements/control/Offload.hh"

#include <headrace/args.hh>
#include <headrace/balancer.hh>

namespace headrace {

Status Offload::configure(Args& args) {
  std::string mode, run, balancer;
  double fraction = 0;
  int job = 0;
  Interval max_wait, p99;
  bool has_mode = false, has_fraction = false, has_job = false, has_wait = false, has_run = false, has_p99 = false,
       has_balancer = false;
  if (!args.read_status("MODE", mode, has_mode)
           .read_status("FRACTION", fraction, has_fraction)
           .read_status("JOB", job, has_job)
           .read_status("MAXWAIT", max_wait, has_wait)
           .read_status("RUN", run, has_run)
           .read_status("P99", p99, has_p99)
           .read_status("BALANCER", balancer, has_balancer)
           .complete())
    return Status::failed();
  Status status;
  if (has_mode) {
    OffloadOptions parsed;
    parsed.fraction = 0.5;
    if (parsed.set_mode(mode)) {
      mode_ = parsed.mode;
      fraction_ = parsed.fraction;
    } else {
      status &= args.errors().error("MODE: expected auto, cpu, device or fixed, got '{}'", mode);
    }
  }
  if (has_fraction) {
    if (fraction < 0 || fraction > 1) status &= args.errors().error("FRACTION: expected a number from 0 to 1");
    fraction_ = fraction;
  }
  if (has_job) {
    if (job < 1 || job > 65536) status &= args.errors().error("JOB: expected 1 to 65536 packets");
    job_ = job;
  }
  if (has_wait) {
    if (max_wait.ns < 0 || max_wait.ns > 1'000'000'000)
      status &= args.errors().error("MAXWAIT: expected at most a second");
    max_wait_us_ = static_cast<int>(max_wait.ns / 1000);
  }
  if (has_run) {
    OffloadOptions parsed;
    if (!parsed.set_run(run)) status &= args.errors().error("RUN: expected auto, resident or stream, got '{}'", run);
    run_ = parsed.run;
  }
  if (has_p99) p99_us_ = static_cast<double>(p99.ns) * 1e-3;
  if (has_balancer) {
    if (std::string why; !make_balancer(balancer, why)) status &= args.errors().error("BALANCER: {}", why);
    balancer_ = balancer;
  }
  adjust(in_effect());
  return status;
}

Status Offload::initialize(Errors& errors) {
  if (!output(0).element()->info().shader)
    return errors.error("no chain behind it: '{}' is not a shader", output(0).element()->declaration());
  return {};
}

void Offload::add_handlers(Handlers& handlers) {
  handlers.read("mode", [this] { return in_effect().mode_text(); });
  handlers.write("mode", [this](const std::string& value, Errors& errors) -> Status {
    OffloadOptions wanted = in_effect();
    if (!wanted.set_mode(value)) return errors.error("expected auto, cpu, device or fixed=FRACTION");
    const bool device = wanted.mode == OffloadOptions::Mode::kDevice || wanted.mode == OffloadOptions::Mode::kFixed;
    if (device && !attached()) return errors.error("no device is open: the router was started for the CPU");
    in_effect() = wanted;
    return {};
  });
}

void Offload::adjust(OffloadOptions& options) const {
  if (mode_) options.mode = *mode_;
  if (fraction_) options.fraction = *fraction_;
  if (job_) options.job = *job_;
  if (max_wait_us_) options.max_wait_us = *max_wait_us_;
  if (run_) options.run = *run_;
  if (p99_us_) options.p99_us = *p99_us_;
  if (balancer_) options.balancer = *balancer_;
}

HEADRACE_ELEMENT(Offload)

}  // namespace headrace
