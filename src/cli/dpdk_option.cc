#include "cli/dpdk_option.hh"

#include <sstream>

#include "io/dpdk_arguments.hh"
#include "runtime/packages.hh"

namespace headrace::cli {

void add_dpdk_option(CLI::App& app) {
  app.add_option_function<std::string>(
         "--dpdk",
         [](const std::string& text) {
           if (const std::string_view reason = absent_reason("FromDPDKDevice"); !reason.empty())
             throw CLI::ValidationError("--dpdk", std::string(reason));
           std::istringstream words(text);
           for (std::string word; words >> word;) io::dpdk_arguments().push_back(word);
         },
         "Arguments for DPDK, such as \"--vdev=net_null0 --no-pci\"")
      ->option_text("ARGUMENTS")
      ->group("Devices");
}

}  // namespace headrace::cli
