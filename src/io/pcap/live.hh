#pragma once
/// \file
/// A network interface of the system, through libpcap.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headrace/batch.hh"
#include "headrace/error.hh"

struct pcap;

namespace headrace::io {

class LiveInterface {
 public:
  struct Options {
    bool promiscuous = false;
    /// Also what the system sends by the interface.
    bool outbound = false;
    /// False: only for sending; nothing is captured.
    bool capture = true;
    int snap_length = 2046;
    int link_type = -1;  // -1: the interface's own
  };

  ~LiveInterface();
  /// Null, with an error that says what is missing (the interface, or the right to use it). Nothing is captured before
  /// set_filter().
  static std::unique_ptr<LiveInterface> open(const std::string& name, const Options& options, Errors& errors);

  /// For Element::select().
  int fd() const;
  int link_type() const;
  /// The interface's Ethernet address, if it has one.
  const std::optional<std::array<uint8_t, 6>>& address() const { return address_; }

  /// Captures, from now on, what passes a filter of pcap-filter(7); empty: all.
  Status set_filter(const std::string& text, Errors& errors);
  /// Captures nothing from now on.
  bool block();

  /// Appends up to `max` packets, with timestamp, MAC header, packet type and extra-length annotation; -1 on failure.
  /// `missed` counts packets for which there was no buffer.
  int receive(Batch& batch, int max, uint32_t headroom, bool timestamps, uint64_t& missed);
  /// Sends a packet; false with errno set: EAGAIN and ENOBUFS mean later.
  bool send(const Packet& p);
  /// Packets that the kernel dropped for want of room; nothing if that is not known.
  std::optional<uint64_t> kernel_drops() const;

 private:
  LiveInterface(std::string name, pcap* handle) : name_(std::move(name)), pcap_(handle) {}
  std::string name_;
  pcap* pcap_;
  bool nanoseconds_ = false;
  std::optional<std::array<uint8_t, 6>> address_;
};

/// The packet type of a frame by its destination. Without the interface's address, what is not for a group is for us.
PacketType packet_type_of(const Packet& p, int link_type, const std::optional<std::array<uint8_t, 6>>& own_address);

}  // namespace headrace::io
