#pragma once
/// \file
/// Compound elements that come with the program: a class that stands for a group of elements, as `elementclass` makes
/// one in a configuration, but whose body depends on its arguments and on the ports in use.
///
///     struct Meter {
///       static constexpr Ports kPorts{"1/1"};
///       static Status expand(Args& args, std::string& body) {
///         uint32_t rate = 0;
///         if (!args.read_mp("RATE", rate).complete()) return Status::failed();
///         body = fmt::format("input -> c :: Counter -> BandwidthShaper({}) -> output", rate);
///         return {};
///       }
///     };
///     HEADRACE_COMPOUND(Meter)
///
/// The elements of the body are named `NAME/c`, and their errors name the line of the configuration. Nothing of a
/// compound is left when the router is made, so it costs nothing, and chains of shaders go through it.

#include <string>

#include "headrace/args.hh"
#include "headrace/element.hh"

namespace headrace {

/// Writes what would stand between the braces of an `elementclass` without parameters. Names of AddressInfo are not
/// known yet; `args.scope()` tells how many inputs and outputs are in use.
using ExpandCompound = Status (*)(Args& args, std::string& body);

/// Registers a class, before main or when a module is loaded.
struct CompoundRegistration {
  CompoundRegistration(const ElementInfo& info, ExpandCompound expand);
};

/// Whether a class is a compound: it has a page and ports, but no elements of its own.
inline bool is_compound(const ElementInfo& info) { return info.make == nullptr; }

}  // namespace headrace

/// Makes the compound `Name` known to configurations. At namespace scope, once, in its header or source.
#define HEADRACE_COMPOUND(Name)                                  \
  inline const ::headrace::CompoundRegistration kRegister##Name{ \
      ::headrace::ElementInfo{#Name, Name::kPorts.text, "a/a", "x/x", #Name, false, nullptr}, &Name::expand};
