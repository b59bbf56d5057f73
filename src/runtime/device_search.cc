#include "headrace/device_state.hh"
#include "headrace/element.hh"
#include "headrace/graph_walk.hh"

namespace headrace {

namespace {

using Walk = std::vector<Element*> (*)(const Element&, int, const std::function<bool(Element&)>&);

const HasDevice* only_device(Walk walk, const Element& from, int port) {
  // The way does not lead through the element itself to what its other ports have.
  const std::vector<Element*> found =
      walk(from, port, [&](Element& e) { return &e == &from || dynamic_cast<const HasDevice*>(&e) != nullptr; });
  const HasDevice* device = nullptr;
  std::string name;
  for (Element* const e : found) {
    const HasDevice* const next = e == &from ? nullptr : dynamic_cast<const HasDevice*>(e);
    if (next == nullptr) return nullptr;
    // Several elements may have queues of one device.
    const std::optional<DeviceState> state = next->device_state();
    if (device != nullptr && (!state || state->name != name)) return nullptr;
    if (device == nullptr) {
      device = next;
      name = state ? state->name : std::string();
    }
  }
  return device;
}

}  // namespace

const HasDevice* device_upstream(const Element& element, int input) {
  return only_device(nearest_upstream, element, input);
}

const HasDevice* device_downstream(const Element& element, int output) {
  return only_device(nearest_downstream, element, output);
}

}  // namespace headrace
