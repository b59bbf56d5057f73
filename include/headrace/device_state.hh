#pragma once
/// \file
/// What elements tell each other about the devices behind them, and how to find such elements in the graph.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "headrace/addresses.hh"

namespace headrace {

class Element;

/// Ways in which a network device can run, as bits.
namespace link_mode {
inline constexpr uint32_t k10Half = 1 << 0, k10Full = 1 << 1, k100Half = 1 << 2, k100Full = 1 << 3, k1000Half = 1 << 4,
                          k1000Full = 1 << 5, k10G = 1 << 6, k40G = 1 << 7, k100G = 1 << 8, k1T = 1 << 9,
                          kOtherSpeed = 1 << 10, kCopper = 1 << 11, kFiber = 1 << 12, kAutonegotiation = 1 << 13,
                          kPause = 1 << 14, kAsymmetricPause = 1 << 15;
/// The bit of a speed in Mb/s; 0: none, for the speed 0.
constexpr uint32_t of_speed(uint32_t mbps, bool full_duplex = true) {
  switch (mbps) {
    case 0:
      return 0;
    case 10:
      return full_duplex ? k10Full : k10Half;
    case 100:
      return full_duplex ? k100Full : k100Half;
    case 1000:
      return full_duplex ? k1000Full : k1000Half;
    case 10'000:
      return k10G;
    case 40'000:
      return k40G;
    case 100'000:
      return k100G;
    case 1'000'000:
      return k1T;
    default:
      return kOtherSpeed;
  }
}
}  // namespace link_mode

/// A device as it is at one moment.
struct DeviceState {
  std::string name;                     ///< "eth0", "net_memif0"
  std::optional<EtherAddress> address;  ///< nothing: it has none
  bool enabled = true;                  ///< its administrator wants it to run ("up")
  bool carrier = true;                  ///< it runs, and frames can pass
  int mtu = 0;                          ///< bytes of the longest packet without link header; 0: not known
  uint32_t speed = 0;                   ///< in Mb/s; 0: not known
  uint32_t most_speed = 0;              ///< that it could have
  uint32_t current = 0, advertised = 0, supported = 0, peer = 0;  ///< bits of link_mode; 0: not known
  bool operator==(const DeviceState&) const = default;
};

/// What a device, or the element in front of it, has counted since the router started or the device was reset.
struct DeviceCounters {
  uint64_t rx_packets = 0, rx_bytes = 0, rx_dropped = 0, rx_errors = 0, rx_frame_errors = 0, rx_overruns = 0,
           rx_crc_errors = 0;
  uint64_t tx_packets = 0, tx_bytes = 0, tx_dropped = 0, tx_errors = 0, collisions = 0;
  bool operator==(const DeviceCounters&) const = default;
};

/// Base of elements behind which there is a device.
class HasDevice {
 public:
  virtual ~HasDevice() = default;
  /// Nothing while there is no device, as when an interface was deleted. Not on the data path; any thread.
  virtual std::optional<DeviceState> device_state() const = 0;
  /// Only what this element's direction is about is more than zero. Not on the data path; any thread.
  virtual DeviceCounters device_counters() const = 0;
};

/// The device from which packets come to an input, through whatever elements; null if there is none, or several. Of several
/// elements in front of one device the first. Call it when all elements are initialized.
const HasDevice* device_upstream(const Element& element, int input);
/// The device to which packets go from an output.
const HasDevice* device_downstream(const Element& element, int output);

/// Says that the state of some device may have changed. Any thread but workers.
void announce_device_change();

/// Calls `changed` at each announcement, on the thread that makes it: it must be short (Runtime::post_later()), and neither
/// make nor destroy listeners. Once a listener is destroyed its function does not run any more.
class DeviceChangeListener {
 public:
  explicit DeviceChangeListener(std::function<void()> changed);
  ~DeviceChangeListener();
  DeviceChangeListener(const DeviceChangeListener&) = delete;
  DeviceChangeListener& operator=(const DeviceChangeListener&) = delete;

 private:
  friend void announce_device_change();
  const std::function<void()> changed_;
};

}  // namespace headrace
