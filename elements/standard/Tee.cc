#include "elements/standard/Tee.hh"

#include "elements/standard/tee_copies.hh"

namespace headrace {

Status Tee::configure(Args& args) {
  count_reasons({"no buffer for a copy"});
  return read_arms(*this, args);
}

void Tee::push(int, Batch& batch) {
  for (int i = 0; i + 1 < noutputs(); ++i) {
    Batch copies;
    copy_packets(*this, batch, 0, copies);
    if (!copies.empty()) output(i).push(copies);
  }
  output(noutputs() - 1).push(batch);
}

}  // namespace headrace
