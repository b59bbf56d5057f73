#include "cli/compile_arguments.hh"

namespace headrace::cli {

void add_compile_arguments(CLI::App& app, CompileOptions& options, const char* usual) {
  using Mode = CompileOptions::Mode;
  app.add_option_function<std::string>(
         "--compile",
         [&options](const std::string& text) {
           options.mode = text == "off" ? Mode::kOff : text == "wait" ? Mode::kWait : Mode::kAuto;
         },
         std::string("Compile chains for this CPU: auto, while packets flow already; wait, before they do; off, let "
                     "packets go from element to element; default: ") +
             usual)
      ->check(CLI::IsMember({"auto", "off", "wait"}))
      ->option_text("WHEN")
      ->group("Chains");
  app.add_option("--compiled", options.file, "Take the chains from a file that headrace compile made")
      ->option_text("FILE")
      ->group("Chains");
}

}  // namespace headrace::cli
