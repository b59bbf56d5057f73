#include "elements/standard/PullTee.hh"

#include "elements/standard/tee_copies.hh"

namespace headrace {

Status PullTee::configure(Args& args) {
  count_reasons({"no buffer for a copy"});
  return read_arms(*this, args);
}

int PullTee::pull(int, Batch& batch, int max) {
  const int before = batch.size();
  const int n = input(0).pull(batch, max);
  for (int i = 1; n > 0 && i < noutputs(); ++i) {
    Batch copies;
    copy_packets(*this, batch, before, copies);
    if (!copies.empty()) output(i).push(copies);
  }
  return n;
}

}  // namespace headrace
