#pragma once
#include <headrace/element.hh>

#include "elements/ip/rewriter_base.hh"
#include "elements/tcpudp/TCPRewriter.hh"

namespace headrace {

/// Lets FTP in active mode (RFC 959) through rewriters.
///
///     FTPPortMapper(CONTROL_REWRITER, DATA_REWRITER, DATA_REWRITER_INPUT)
///
/// Input: TCP packets of FTP control connections, with a network header, on their way to CONTROL_REWRITER. Output: the
/// same. When a packet begins with a complete PORT command, the element creates a flow in DATA_REWRITER as if the first
/// packet of the data connection that the command announces had arrived at input DATA_REWRITER_INPUT: from the
/// announced address and port, to the destination of the packet and the port below its destination port. The command is
/// rewritten to the flow's external address and port, checksums and lengths are updated, and CONTROL_REWRITER shifts
/// the sequence numbers of the connection by the change in length. Packets of connections that CONTROL_REWRITER does
/// not know pass unchanged, and so does a command for which no flow can be created.
///
/// CONTROL_REWRITER: a TCPRewriter or IPRewriter. DATA_REWRITER: the same or another rewriter.
class FTPPortMapper final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"a/a"};

  int configure_phase() const override { return kDefaultPhase + 1; }
  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  /// Replaces bytes of the payload; false when there is no room.
  static bool replace(Packet& p, int at, int length, const std::string& text);

  PortRewriter* control_ = nullptr;
  RewriterBase* data_ = nullptr;
  int data_input_ = 0;
};

HEADRACE_ELEMENT(FTPPortMapper)

}  // namespace headrace
