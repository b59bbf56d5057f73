#include "elements/openflow/OpenFlowSwitch.hh"

#include <fmt/format.h>

#include <vector>

#include "control/openflow/switch/switch.hh"
#include "elements/openflow/datapath_number.hh"

namespace headrace {

Status OpenFlowSwitch::expand(Args& args, std::string& body) {
  uint64_t number = 0;
  bool local = false;
  std::string bytes, room, edits;
  std::vector<std::string> rest;
  if (!args.read_mp("DPID", number, DatapathNumber())
           .read("LOCAL", local)
           .read("BYTES", bytes, AnyArg())
           .read("ROOM", room, AnyArg())
           .read("EDITS", edits, AnyArg())
           .consume_rest(rest)
           .complete())
    return Status::failed();
  const int n = args.scope()->ninputs();
  if (local && n < 2) return args.errors().error("LOCAL: expected a port beside LOCAL");
  const std::string name = openflow::Switch::name_of(number);
  std::string control = name, tables = name;
  if (local) {
    control += ", LOCAL true";
    tables += ", LOCAL true";
  }
  for (const std::string& argument : rest) control += ", " + argument;
  if (!bytes.empty()) tables += ", BYTES " + bytes;
  if (!room.empty()) tables += ", ROOM " + room;
  if (!edits.empty()) tables += ", EDITS " + edits;
  body = fmt::format("control :: OpenFlowControl({});\ntables :: OpenFlowTables({});\n", control, tables);
  for (int i = 0; i < n; ++i)
    body += fmt::format(
        "input[{0}] -> in{0} :: Paint({0}) -> tables; tables[{0}] -> [{0}] output; control[{0}] -> [{0}] output;\n", i);
  return {};
}

}  // namespace headrace
