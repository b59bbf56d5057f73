#pragma once
/// \file
/// Virtual interfaces of Linux that this process stands behind (the TUN/TAP driver): what the host sends by one comes
/// here, and what is written here the host receives.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headrace/addresses.hh"
#include "headrace/batch.hh"
#include "headrace/error.hh"
#include "src/io/linux/descriptor.hh"

namespace headrace::io {

class HostDevice {
 public:
  struct Options {
    /// Empty: the system makes a name.
    std::string name;
    bool tap = true;  // Ethernet frames; else IP packets
    std::optional<IpPrefix> address;
    std::optional<Ip6Prefix> address6;
    IpAddress gateway;  // of the default route through this interface; 0.0.0.0: none
    std::optional<EtherAddress> ether;
    int mtu = 1500;
    bool operator==(const Options&) const = default;
  };

  /// Makes the interface, with its addresses and up, or shares that of the configuration which runs. Null, with an
  /// error that says what is missing. \param key stands for the name where there is none
  static std::shared_ptr<HostDevice> open(const std::string& key, const Options& options, const void* user,
                                          Errors& errors);

  const std::string& name() const { return name_; }
  int fd() const { return socket_.get(); }
  /// For a device that is shared: sets what differs.
  Status change(const Options& options, Errors& errors);

  /// Creates the interface again after it was deleted; other threads may send meanwhile.
  bool reopen();

  enum class Got { kPacket, kNothing, kNoBuffer, kGone };
  /// Takes a packet that the host sends. One thread at a time.
  Got receive(uint32_t headroom, Packet*& packet);
  /// Gives a packet to the host; false with errno. Any number of threads: the driver takes one packet a call.
  bool send(const Packet& p) const;

 private:
  Descriptor open_device(Errors& errors);
  Status set_up(const Options& old, Errors& errors);

  Descriptor socket_;
  std::string name_;
  Options options_;
  /// Room for the longest packet.
  std::unique_ptr<uint8_t[]> buffer_;
};

}  // namespace headrace::io
