#include "elements/control/ScheduleInfo.hh"

#include <algorithm>
#include <cmath>

#include "headrace/router.hh"

namespace headrace {

namespace {
constexpr int kDefaultTickets = 1024, kMostTickets = 32768;
}

Status ScheduleInfo::configure(Args& args) {
  std::vector<std::string> entries;
  args.consume_rest(entries);
  Status status = args.complete();
  const std::string compound = name().substr(0, name().rfind('/') + 1);
  for (const std::string& entry : entries) {
    std::vector<std::string> words;
    double share = 0;
    if (parse_argument(entry, words, args.context()) && words.empty()) continue;
    if (words.size() != 2 || !parse_argument(words[1], share, ArgContext()) || !(share > 0))
      status &= args.errors().error("expected 'ELEMENTNAME PARAM'");
    else
      shares_[compound + words[0]] = share;
  }
  return status;
}

double ScheduleInfo::share_of(const std::string& name) const {
  const ScheduleInfo* outermost = nullptr;
  const auto depth = [](const Element& e) { return std::count(e.name().begin(), e.name().end(), '/'); };
  for (const auto& e : router().elements()) {
    const auto* info = dynamic_cast<const ScheduleInfo*>(e.get());
    if (info && info->shares_.contains(name) && (!outermost || depth(*info) < depth(*outermost))) outermost = info;
  }
  return outermost ? outermost->shares_.at(name) : 1;
}

Status ScheduleInfo::initialize(Errors& errors) {
  // One does it for all.
  if (router().first<ScheduleInfo>() != this) return {};
  for (const auto& e : router().elements()) {
    if (e->tasks().empty()) continue;
    double share = 1;
    for (size_t end = 0; end != std::string::npos;) {
      end = e->name().find('/', end + 1);
      share *= share_of(e->name().substr(0, end));
    }
    if (share == 1) continue;
    if (share * kDefaultTickets > kMostTickets)
      errors.warning("share of '{}' too high; reduced to {}", e->name(), kMostTickets / kDefaultTickets);
    const double tickets = std::clamp(std::round(share * kDefaultTickets), 1., double{kMostTickets});
    for (Task* task : e->tasks()) task->set_tickets(static_cast<int>(tickets));
  }
  return {};
}

}  // namespace headrace
