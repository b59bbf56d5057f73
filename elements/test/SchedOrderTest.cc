#include "elements/test/SchedOrderTest.hh"

#include <algorithm>
#include <utility>

#include "headrace/router.hh"

namespace headrace {

namespace {
constexpr uint32_t kDefaultOrderSize = 1024, kMaxOrderSize = 1 << 24;
}  // namespace

Status SchedOrderTest::configure(Args& args) {
  return args.read_mp("ID", id_)
      .read("SIZE", size_, Between{0u, kMaxOrderSize})
      .read("LIMIT", limit_)
      .read("STOP", stop_)
      .complete();
}

Status SchedOrderTest::initialize(Errors& errors) {
  first_ = router().first<SchedOrderTest>();
  if (home_thread() != first_->home_thread()) return errors.error("all SchedOrderTests must run on one thread");
  if (first_ == this) {
    uint32_t size = 0;
    for (const auto& e : router().elements())
      if (const auto* other = dynamic_cast<const SchedOrderTest*>(e.get())) size = std::max(size, other->size_);
    order_.resize(size == 0 ? kDefaultOrderSize : size);
  }
  task_.initialize(true);
  return {};
}

bool SchedOrderTest::run_task(Task& task) {
  if (first_->used_ < first_->order_.size()) {
    first_->order_[first_->used_] = id_;
    first_->used_ += 1;
  } else if (std::exchange(stop_, false)) {
    router().request_stop();
  }
  if (limit_ == 0 || ++runs_ < limit_) task.fast_reschedule();
  return true;
}

void SchedOrderTest::add_handlers(Handlers& handlers) {
  handlers.read("order", [this] {
    std::string ids;
    for (size_t i = 0; i < first_->used_; ++i) ids += (i > 0 ? " " : "") + std::to_string(first_->order_[i]);
    return ids + "\n";
  });
}

}  // namespace headrace
