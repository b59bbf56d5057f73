#include "cli/live_configuration.hh"

#include <fmt/format.h>

#include "base/argument_text.hh"

namespace headrace::cli {

void LiveConfiguration::allow_reconfigure() {
  runtime_.want_control_thread();
  options_.hotconfig = [this](const std::string& text, Errors& errors) { return replace(text, errors); };
}

void LiveConfiguration::add_sockets(lang::Configuration& configuration) const {
  // Click's name for it; an @ keeps it apart from what configurations name.
  std::string name = "click_driver@@ControlSocket";
  for (size_t i = 0; i < sockets_.size(); ++i) {
    if (i > 0) name = fmt::format("click_driver@@ControlSocket@{}", i + 1);
    configuration.elements.push_back({name, "ControlSocket", sockets_[i], {"command line", 0}});
  }
}

std::unique_ptr<Router> LiveConfiguration::make(lang::Configuration configuration, Errors& errors) {
  add_sockets(configuration);
  return Router::create(configuration, runtime_, errors, options_);
}

Status LiveConfiguration::replace(const std::string& text, Errors& errors) {
  if (!runtime_.running()) return errors.error("no router runs whose place the configuration could take");
  if (runtime_.may_replace()) return replace_now(text, errors);
  runtime_.post_later([this, text] {
    Errors own(Errors::Output::kStderr);
    (void)replace_now(text, own);
  });
  return {};
}

Status LiveConfiguration::replace_now(const std::string& text, Errors& errors) {
  const int before = errors.error_count();
  lang::Configuration configuration;
  if (!parse_(text, configuration, errors) || errors.error_count() > before) return Status::failed();
  add_sockets(configuration);
  std::unique_ptr<Router> next;
  runtime_.attend_while([&] { next = Router::create(configuration, runtime_, errors, options_, runtime_.current()); });
  if (!next) return Status::failed();
  (void)runtime_.replace(std::move(next));
  return {};
}

std::string unix_socket(const std::string& file) { return "UNIX, " + lang::quote(file); }

}  // namespace headrace::cli
