#include "elements/standard/FrontDropQueue.hh"

#include <algorithm>

namespace headrace {

void FrontDropQueue::push(int, Batch& batch) {
  const uint32_t n = static_cast<uint32_t>(batch.size());
  if (capacity() == 0) {
    overflow(batch, 0);
    return;
  }
  // Another thread may take the room that was made, so this goes on until the last packet is in.
  Batch rest;
  for (uint32_t done = 0; done < n;) {
    rest.clear();
    for (uint32_t i = done; i < n; ++i) rest.push_back(batch[static_cast<int>(i)]);
    done += store(rest);
    if (done == n) break;
    Batch old;
    old.resize(static_cast<int>(take(old.begin(), std::min(n - done, static_cast<uint32_t>(Batch::kCapacity)))));
    overflow(old, 0);
  }
}

}  // namespace headrace
