#pragma once
#include <netinet/in.h>

#include <headrace/element.hh>
#include <optional>

#include "headrace/packet.hh"
#include "headrace/touches_machine.hh"

namespace headrace {

/// Exchanges packets with other programs by UDP multicast.
///
///     McastSocket(MCASTIP, MCASTPORT [, SOURCEIP, SOURCEPORT, keyword LOOP, SNAPLEN, HEADROOM, TIMESTAMP, SNDBUF,
///                 RCVBUF])
///
/// Input 0 (optional), push or pull: each packet is sent as one datagram to the group. Output 0 (optional), push:
/// packets that others send to the group. Packets do not flow from the input to the output. A pushed packet that the
/// socket does not accept within 100 ms is dropped and counted; a pulled one waits.
///
/// MCASTIP, MCASTPORT: the group.
/// SOURCEIP: sends from this address, and sends and receives only by its interface. Packets sent by this element itself
/// are then not received. Default: by the host's routes.
/// SOURCEPORT: the port to send from. Default: any.
/// LOOP false: programs on this host do not receive what is sent. Default true.
/// SNAPLEN: maximum number of bytes received of a packet; the extra length annotation counts the rest. Default 2048.
/// HEADROOM: free bytes before the data. Default 28.
/// TIMESTAMP false: received packets get no timestamp. Default true.
/// SNDBUF, RCVBUF: bytes that the socket may hold. Default: as the system says.
///
/// Handlers: `count` (r) packets received; `sent` (r) packets sent.
class McastSocket final : public Element, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"0-1/0-1"};
  static constexpr Processing kProcessing{"a/h"};
  static constexpr Flow kFlow{"x/y"};

  ~McastSocket() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  bool run_task(Task& task) override;
  void selected(int fd, int mask) override;
  uint64_t held_packets() const override { return held_ ? 1 : 0; }

 private:
  enum class Sent { kYes, kNoRoom, kFailed };
  Status open_receiver(Errors& errors);
  Status open_sender(Errors& errors);
  Status join_group(Errors& errors);
  Sent send(const Packet& p);
  /// Takes a datagram, or returns null when there is none.
  Packet* receive(bool& more);

  sockaddr_in group_{};
  sockaddr_in source_{};
  bool loop_ = true;
  bool timestamps_ = true;
  uint32_t snap_length_ = 2048;
  uint32_t headroom_ = 28;
  std::optional<int> send_buffer_, receive_buffer_;
  int receiver_ = -1;
  int sender_ = -1;
  Packet* held_ = nullptr;  // pulled, and not sent yet
  Task task_{this};
  Signal signal_;
  ThreadCounters counts_{2};
};

HEADRACE_ELEMENT(McastSocket)

}  // namespace headrace
