#include "cli/dpdk_option.hh"

#include <sstream>

#include "io/dpdk_arguments.hh"
#include "runtime/packages.hh"

namespace headrace::cli {

std::string set_dpdk_arguments(const std::string& text) {
  if (const std::string_view reason = absent_reason("FromDPDKDevice"); !reason.empty()) return std::string(reason);
  std::istringstream words(text);
  for (std::string word; words >> word;) io::dpdk_arguments().push_back(word);
  return {};
}

void add_dpdk_option(CLI::App& app) {
  app.add_option_function<std::string>(
      "--dpdk",
      [](const std::string& text) {
        if (const std::string reason = set_dpdk_arguments(text); !reason.empty())
          throw CLI::ValidationError("--dpdk", reason);
      },
      "Arguments for DPDK, such as \"--vdev=net_null0 --no-pci\"");
}

}  // namespace headrace::cli
