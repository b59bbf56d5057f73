#pragma once
/// \file
/// Network interfaces of Linux as device ports: one interface to three ways of receiving and sending frames.
///
/// A port belongs to the process, not to a configuration: when a configuration that is being set up opens what a
/// running one has open, they share it, so that nothing is lost or doubled when the new one takes over.

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/batch.hh"
#include "headrace/error.hh"
#include "src/io/linux/interface.hh"

namespace headrace::io {

enum class PortMethod {
  kAfXdp,     // an XDP program gives the frames to AF_XDP sockets; the kernel does not see them
  kAfPacket,  // packet sockets with a ring in shared memory
  kPcap,      // libpcap
};
/// "AF_XDP", "AF_PACKET" or Click's "LINUX", "PCAP", in any case; nothing when the word is none of these.
std::optional<PortMethod> parse_port_method(std::string word);
const char* port_method_name(PortMethod method);

struct PortRequest {
  std::string device;
  /// Nothing: AF_XDP if it works and nothing below speaks against it, else AF_PACKET.
  std::optional<PortMethod> method;

  // Receiving
  /// The kernel's protocols receive the frames, too. Speaks against AF_XDP, as do a filter and `outbound`.
  bool sniffer = false;
  bool promiscuous = false;
  /// Also what the system sends by the interface.
  bool outbound = false;
  /// Most bytes of a frame; longer ones are cut. 0: as long as the interface's MTU makes them; longer ones are lost.
  int snap_length = 0;
  int link_type = -1;  // to ask the interface for; -1: its own
  std::string filter;  // of pcap-filter(7)
};

/// Frames that were received and did not become packets.
struct ReceiveLosses {
  uint64_t no_buffer = 0;
  /// Longer than frames of the interface can be: several that were merged by GRO, or are to be segmented (GSO).
  uint64_t too_long = 0;
};

/// Why a port has its method.
class PortChoice {
 public:
  /// ", not by af_xdp: another program has queue 0" where AF_XDP was to be used and could not; else empty.
  const std::string& refusal() const { return refusal_; }
  void set_refusal(std::string refusal) { refusal_ = std::move(refusal); }

 private:
  std::string refusal_;
};

/// What a FromDevice has of an interface. One thread receives at a time.
class PortReceiver : public PortChoice {
 public:
  virtual ~PortReceiver() = default;

  const Interface& interface() const { return interface_; }
  /// True once the interface was deleted (another of the same name may exist): nothing will come any more.
  bool gone() const { return interface_index(interface_.name) != interface_.index; }
  virtual PortMethod method() const = 0;
  /// "af_xdp (native, copy)"
  virtual std::string description() const { return port_method_name(method()); }
  virtual int link_type() const { return interface_.link_type; }
  /// They become readable when frames are there.
  virtual std::vector<int> descriptors() const = 0;

  /// True if start() can do what `request` asks for.
  virtual bool fits(const PortRequest& request) const = 0;
  /// Receives from now on, with the filter and mode of `request`, also if it was started with others; few system calls.
  virtual Status start(const PortRequest& request, Errors& errors) = 0;
  /// Receives no more; what was received before can still be read.
  virtual void stop() = 0;
  /// Between start() and stop().
  bool running() const { return running_; }

  /// Appends up to `max` packets with timestamp (if wanted), MAC header, packet type and extra-length annotation.
  virtual void receive(Batch& batch, int max, uint32_t headroom, bool timestamps, ReceiveLosses& losses) = 0;
  /// Frames that the kernel had no room for, since this was opened; nothing when that is not known. Any thread.
  virtual std::optional<uint64_t> kernel_drops() = 0;
  /// A failure that was reported since the last call, as an errno; 0 for none.
  virtual int take_error() = 0;

 protected:
  explicit PortReceiver(Interface interface) : interface_(std::move(interface)) {}
  Interface interface_;
  std::atomic<bool> running_{false};
};

/// What a ToDevice has of an interface. One thread sends at a time.
class PortSender : public PortChoice {
 public:
  virtual ~PortSender() = default;
  const Interface& interface() const { return interface_; }
  bool gone() const { return interface_index(interface_.name) != interface_.index; }
  virtual PortMethod method() const = 0;
  virtual std::string description() const { return port_method_name(method()); }
  /// It becomes writable when there is room again.
  virtual int descriptor() const = 0;

  /// Sends packets, which stay the caller's; returns how many from the first on. If not all: errno says what is the
  /// matter with the next one; EAGAIN and ENOBUFS mean later.
  virtual int send(Packet* const* packets, int n) = 0;
  /// After one or more send(): makes what was sent leave. False: something is still here, call again later.
  virtual bool flush() { return true; }

 protected:
  explicit PortSender(Interface interface) : interface_(std::move(interface)) {}
  Interface interface_;
};

/// Says what is wrong with a filter of pcap-filter(7).
Status check_filter(const std::string& text, Errors& errors);

/// Opens an interface for an element of the configuration `user` (any pointer that tells configurations apart), or
/// shares what another configuration has open. It does not receive before start(). Null, with an error that says what
/// is missing.
std::shared_ptr<PortReceiver> open_receiver(const PortRequest& request, const void* user, Errors& errors);
std::shared_ptr<PortSender> open_sender(const PortRequest& request, const void* user, Errors& errors);
/// True if anybody in this process receives from the interface now.
bool is_received(const std::string& device);

// The methods, for open_receiver() and open_sender(). Null, with an error.
std::unique_ptr<PortReceiver> open_packet_receiver(const Interface& interface, const PortRequest& request,
                                                   Errors& errors);
std::unique_ptr<PortSender> open_packet_sender(const Interface& interface, Errors& errors);
std::unique_ptr<PortReceiver> open_xdp_receiver(const Interface& interface, const PortRequest& request, Errors& errors);
/// \param ordinal which of the senders to this interface: each has a queue of its own
std::unique_ptr<PortSender> open_xdp_sender(const Interface& interface, int ordinal, Errors& errors);
std::unique_ptr<PortReceiver> open_pcap_receiver(const Interface& interface, const PortRequest& request,
                                                 Errors& errors);
std::unique_ptr<PortSender> open_pcap_sender(const Interface& interface, Errors& errors);

}  // namespace headrace::io
