#include "elements/standard/StrideSched.hh"

#include <algorithm>

namespace headrace {

namespace {
constexpr uint32_t kStrideOfOne = 1u << 16;
constexpr int kMaxTickets = 1 << 15;
}  // namespace

Status StrideSched::configure(Args& args) {
  std::vector<std::string> words;
  if (!args.consume_rest(words).complete()) return Status::failed();
  if (static_cast<int>(words.size()) != ninputs())
    return args.errors().error("need {} argument{}, one per input port", ninputs(), ninputs() == 1 ? "" : "s");
  std::vector<int> tickets(words.size());
  const int before = args.errors().error_count();
  for (size_t i = 0; i < words.size(); ++i) {
    if (!parse_argument(words[i], tickets[i], ArgContext()))
      (void)args.errors().error("argument {} should be number of tickets (integer)", i);
    else if (tickets[i] < 0)
      (void)args.errors().error("argument {} (number of tickets) must be >= 0", i);
  }
  if (args.errors().error_count() > before) return Status::failed();
  const bool first = clients_.empty();
  clients_.resize(words.size());
  order_.clear();
  for (int i = 0; i < ninputs(); ++i) set_tickets(i, tickets[i], args.errors());
  if (first)
    for (Client& c : clients_) c.pass = c.stride;
  // From behind, so that of equals the lowest input comes first.
  order_.clear();
  for (int i = ninputs() - 1; i >= 0; --i)
    if (clients_[i].tickets > 0) insert(i);
  return {};
}

Status StrideSched::initialize(Errors&) {
  for (int i = 0; i < ninputs(); ++i) clients_[i].signal = Signal::upstream_nonempty(this, i, nullptr);
  return {};
}

void StrideSched::insert(int client) {
  const auto at = std::find_if(order_.begin(), order_.end(), [&](int other) {
    return static_cast<int32_t>(clients_[client].pass - clients_[other].pass) <= 0;
  });
  order_.insert(at, client);
}

void StrideSched::set_tickets(int client, int tickets, Errors& errors) {
  if (tickets > kMaxTickets) {
    errors.warning("input {}'s tickets reduced to {}", client, kMaxTickets);
    tickets = kMaxTickets;
  }
  Client& c = clients_[client];
  const int old = c.tickets;
  c.tickets = tickets;
  c.stride = tickets ? kStrideOfOne / static_cast<uint32_t>(tickets) : 0;
  if (tickets == 0) {
    std::erase(order_, client);
  } else if (old == 0) {
    c.pass = order_.empty() ? 0 : clients_[order_[0]].pass + c.stride;
    insert(client);
  }
}

bool StrideSched::pull_one(Batch& batch) {
  size_t asked = 0;
  bool got = false;
  while (asked < order_.size() && !got) {
    Client& c = clients_[order_[asked]];
    got = c.signal.active() && input(order_[asked]).pull(batch, 1) > 0;
    c.pass += c.stride;
    ++asked;
  }
  const std::vector<int> again(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(asked));
  order_.erase(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(asked));
  for (const int client : again) insert(client);
  return got;
}

int StrideSched::pull(int, Batch& batch, int max) {
  int n = 0;
  while (n < max && pull_one(batch)) ++n;
  return n;
}

std::string StrideSched::configuration() const {
  std::string s;
  for (const Client& c : clients_) s += (s.empty() ? "" : ", ") + std::to_string(c.tickets);
  return s;
}

void StrideSched::add_handlers(Handlers& handlers) {
  for (int i = 0; i < ninputs(); ++i) {
    const std::string name = "tickets" + std::to_string(i);
    handlers.read(name, [this, i] { return std::to_string(clients_[i].tickets); });
    handlers.write(name, [this, i](const std::string& text, Errors& errors) {
      int tickets;
      if (!parse_argument(text, tickets, ArgContext())) return errors.error("tickets value must be integer");
      if (tickets < 0) return errors.error("number of tickets must be >= 0");
      set_tickets(i, tickets, errors);
      return Status();
    });
  }
}

}  // namespace headrace
