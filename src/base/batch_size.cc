#include "headrace/batch_size.hh"

#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace headrace {

namespace {

/// Measured with the standard router: six cache lines of each packet.
constexpr long kBytesOfPacket = 384;
constexpr long kUsualCache = 48 << 10;
constexpr int kStep = 32;

std::atomic<int> g_batch{0};

}  // namespace

int default_batch() {
  if (const int set = g_batch.load()) return set;
  const long cache = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  const auto fit = static_cast<int>((cache > 0 ? cache : kUsualCache) / kBytesOfPacket);
  return std::clamp(fit / kStep * kStep, kStep, 256);
}

void set_default_batch(int packets) { g_batch.store(packets); }

}  // namespace headrace
