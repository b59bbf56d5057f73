#include "elements/standard/DelayShaper.hh"

namespace headrace {

DelayShaper::~DelayShaper() {
  if (held_) held_->kill();
}

Status DelayShaper::initialize(Errors&) {
  relay_.initialize(false);
  timer_.initialize();
  upstream_ = Signal::upstream_nonempty(this, 0, &relay_);
  return {};
}

Packet* DelayShaper::next() {
  if (!held_ && (held_ = input(0).pull())) {
    const Timestamp received = held_->timestamp();
    held_->set_timestamp((received.ns >= Timestamp::kSecond ? received : clock::now()) + delay_.timestamp());
  }
  if (!held_) {
    if (!upstream_.active()) {
      ready_.sleep();
      if (upstream_.active()) ready_.wake();
    }
    return nullptr;
  }
  const Timestamp now = clock::now();
  if (held_->timestamp() > now) {
    ready_.sleep();
    timer_.schedule_after(held_->timestamp() - now);
    return nullptr;
  }
  held_->set_timestamp(now);
  return std::exchange(held_, nullptr);
}

int DelayShaper::pull(int, Batch& batch, int max) {
  int n = 0;
  for (; n < max; ++n) {
    Packet* p = next();
    if (!p) break;
    batch.push_back(p);
  }
  return n;
}

Notifier* DelayShaper::notifier(NotifierKind kind, bool output, int) {
  return output && kind == NotifierKind::kNonempty ? &ready_ : nullptr;
}

void DelayShaper::add_handlers(Handlers& handlers) { handlers.value("delay", delay_); }

}  // namespace headrace
