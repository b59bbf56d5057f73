#include "elements/ip/header_check.hh"

#include <fmt/format.h>

#include "headrace/chatter.hh"
#include "headrace/shader_host.hh"

namespace headrace {

void HeaderCheckOwner::tell(const Element& element, std::string_view protocol, std::string_view why) {
  if (told.exchange(true, std::memory_order_relaxed) && !verbose) return;
  chatter("{}: {} header check failed: {}", element.name(), protocol, why);
}

void add_header_check_handlers(Handlers& handlers, const HeaderCheckOwner& owner, ShaderElementBase& element,
                               const CounterInfo* counters, int count) {
  handlers.read("drops", [&element, count] {
    uint64_t sum = 0;
    for (int i = 0; i < count; ++i) sum += element.counter(i);
    return std::to_string(sum);
  });
  if (!owner.details) return;
  handlers.read("drop_details", [&element, counters, count] {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += fmt::format("{}\t{}\n", element.counter(i), counters[i].name);
    return lines;
  });
}

}  // namespace headrace
