#pragma once
/// \file
/// How a queue tells the tasks around it to sleep and to wake.

#include <atomic>
#include <vector>

namespace headrace {

class Element;
class Task;

/// What a Notifier reports on: packets to pull ("nonempty"), or room to push into ("nonfull").
enum class NotifierKind { kNonempty, kNonfull };

/// Owned by an element that stores packets. Listeners sleep while it is inactive; wake() schedules them.
class Notifier {
 public:
  bool active() const { return active_.load(std::memory_order_acquire); }
  /// Called by the owner from any thread. After sleep() the owner must check the condition again, and call wake() if it
  /// changed meanwhile.
  void sleep() { active_.store(false, std::memory_order_seq_cst); }
  void wake();
  void add_listener(Task* task);

 private:
  std::atomic<bool> active_{true};
  std::vector<Task*> listeners_;
};

/// Combines several notifiers: active if any of them is. A Signal without notifiers is always active.
class Signal {
 public:
  bool active() const {
    if (notifiers_.empty()) return true;
    for (const Notifier* n : notifiers_)
      if (n->active()) return true;
    return false;
  }
  bool always_active() const { return notifiers_.empty(); }

  /// The nonempty notifiers that a pull from `input` of `element` reaches. They wake `listener`, which may be null.
  static Signal upstream_nonempty(Element* element, int input, Task* listener);
  /// The nonfull notifiers that a push to `output` of `element` reaches.
  static Signal downstream_nonfull(Element* element, int output, Task* listener);

 private:
  std::vector<Notifier*> notifiers_;
};

}  // namespace headrace
