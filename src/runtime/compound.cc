#include "headrace/compound.hh"

#include <fmt/format.h>

#include <map>

#include "base/argument_text.hh"
#include "runtime/shipped_compounds.hh"

namespace headrace {

namespace {

std::map<std::string, ExpandCompound, std::less<>>& compounds() {
  static std::map<std::string, ExpandCompound, std::less<>> all;
  return all;
}

/// Knows how many ports are in use, and no names.
class PortsOnly : public NameScope {
 public:
  PortsOnly(int inputs, int outputs) : inputs_(inputs), outputs_(outputs) {}
  int ninputs() const override { return inputs_; }
  int noutputs() const override { return outputs_; }

 private:
  int inputs_, outputs_;
};

}  // namespace

CompoundRegistration::CompoundRegistration(const ElementInfo& info, ExpandCompound expand) {
  const ElementRegistration registered(info);
  compounds().emplace(info.name, expand);
}

void add_shipped_compounds(lang::Options& options) {
  options.shipped = [](const lang::ElementUse& use, Errors& errors) -> std::optional<std::string> {
    const auto found = compounds().find(use.class_name);
    if (found == compounds().end()) return std::nullopt;
    const Errors::Context context(errors, use.landmark,
                                  fmt::format("While configuring '{} :: {}':", use.name, use.class_name));
    PortsOnly scope(use.inputs, use.outputs);
    Args args(lang::split_arguments(use.config), &scope, errors);
    std::string body;
    if (!found->second(args, body)) return std::nullopt;
    return body;
  };
}

}  // namespace headrace
