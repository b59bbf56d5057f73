#include "runtime/barrier.hh"

namespace headrace {

template class BasicBarrier<SystemSync>;

}  // namespace headrace
