// The balancers that `--balancer` knows.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/balancer.hh"
#include "offload/balance/sanitize.hh"

namespace headrace {

namespace {

/// Made by whichever static object is first. A list, because find_balancer() gives out addresses.
std::vector<std::unique_ptr<const BalancerInfo>>& registered() {
  static std::vector<std::unique_ptr<const BalancerInfo>> balancers;
  return balancers;
}

std::vector<std::string>& refused() {
  static std::vector<std::string> names;
  return names;
}

}  // namespace

std::vector<std::string> take_refused_balancers() { return std::exchange(refused(), {}); }

bool register_balancer(const BalancerInfo& info) {
  if (find_balancer(info.name) != nullptr) {
    refused().emplace_back(info.name);
    return false;
  }
  registered().push_back(std::make_unique<const BalancerInfo>(info));
  return true;
}

const BalancerInfo* find_balancer(std::string_view name) {
  for (const auto& info : registered())
    if (name == info->name) return info.get();
  return nullptr;
}

std::vector<BalancerInfo> all_balancers() {
  std::vector<BalancerInfo> all;
  for (const auto& info : registered()) all.push_back(*info);
  std::sort(all.begin(), all.end(),
            [](const BalancerInfo& a, const BalancerInfo& b) { return std::string_view(a.name) < b.name; });
  return all;
}

std::unique_ptr<Balancer> make_balancer(std::string_view text, std::string& error) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string_view argument = equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  const BalancerInfo* info = find_balancer(name);
  if (info == nullptr) {
    std::string known;
    for (const BalancerInfo& one : all_balancers()) known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
    error = fmt::format(
        "there is no balancer '{}'; there are {}; one of your own needs its package: require(PACKAGE) in the "
        "configuration, or headrace balance --package",
        name, known);
    return nullptr;
  }
  std::unique_ptr<Balancer> balancer;
  bool takes = false;
  const std::string threw = balance::thrown_by("configure()", [&] {
    balancer = info->make();
    takes = balancer->configure(argument);
  });
  if (takes) return balancer;
  if (!threw.empty()) {
    error = fmt::format("{}: {}", text, threw);
    return nullptr;
  }
  error = argument.empty() ? fmt::format("the balancer {0} needs an argument: {0}=ARGUMENT", name)
                           : fmt::format("the balancer {} does not take the argument '{}'", name, argument);
  return nullptr;
}

}  // namespace headrace
