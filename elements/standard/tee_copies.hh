#pragma once
#include "headrace/element.hh"

namespace headrace {

/// Reads Tee's argument N.
inline Status read_arms(const Element& element, Args& args) {
  int n = element.noutputs();
  if (!args.read_p("N", n).complete()) return Status::failed();
  if (n != element.noutputs())
    return args.errors().error("{} outputs implies {} arms", element.noutputs(), element.noutputs());
  return {};
}

/// Copies packets from slot `from` of `batch` to `copies`; those for which there is no buffer are counted as reason 0.
inline void copy_packets(Element& element, const Batch& batch, int from, Batch& copies) {
  for (int i = from; i < batch.size(); ++i)
    if (Packet* copy = batch[i]->clone())
      copies.push_back(copy);
    else
      element.count_drops(1);
}

}  // namespace headrace
