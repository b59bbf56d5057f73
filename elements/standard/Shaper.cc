#include "elements/standard/Shaper.hh"

namespace headrace {

Status Shaper::read_rate(Args& args, uint64_t& rate) {
  return args.read_mp("RATE", rate, Between{0, UINT32_MAX}).complete();
}

Status Shaper::configure(Args& args) {
  uint64_t rate;
  if (!read_rate(args, rate)) return Status::failed();
  if (rate != pacer_.rate()) pacer_.reset();
  pacer_.set_rate(rate);
  return {};
}

int Shaper::pull(int port, Batch& batch, int max) {
  int pulled = 0;
  for (; pulled < max; ++pulled) {
    const bool due = pacer_.due(clock::steady());
    if (due != (port == 0) || input(0).pull(batch, 1) == 0) break;
    if (due) pacer_.count(cost(*batch[batch.size() - 1]));
  }
  return pulled;
}

void Shaper::add_handlers(Handlers& handlers) {
  handlers.argument("rate", "RATE", 0, true);
  handlers.read("rate", [this] { return unparse_rate(); });
  handlers.button("reset", [this] { pacer_.reset(); });
}

}  // namespace headrace
