#pragma once
/// \file
/// What the elements that check headers share on the host: what they say about bad packets, and their handlers.

#include <atomic>
#include <string>
#include <string_view>

#include "headrace/element.hh"

namespace headrace {

class ShaderElementBase;

/// The part of a checking shader's configuration that concerns its messages.
struct HeaderCheckOwner {
  bool verbose = false;  ///< say something about every bad packet, not only about the first
  bool details = false;  ///< have the handler drop_details
  std::atomic<bool> told = false;

  /// True if the next bad packet is worth a message.
  bool tells() const { return verbose || !told.load(std::memory_order_relaxed); }
  /// Writes "name: IP header check failed: why" to standard error, if it is still worth it.
  void tell(const Element& element, std::string_view protocol, std::string_view why);
};

/// `drops`, the sum of the first `count` counters, and with DETAILS `drop_details`, one line per counter.
void add_header_check_handlers(Handlers& handlers, const HeaderCheckOwner& owner, ShaderElementBase& element,
                               const CounterInfo* counters, int count);

}  // namespace headrace
