#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Prints a line for each IPv6 packet to standard error and passes the packet on.
///
///     IP6Print([LABEL, keyword CONTENTS, NBYTES])
///
/// Input: packets with a network header (CheckIP6Header, MarkIP6Header); other packets pass without output. A line
/// reads
/// `LABEL: source -> destination plen payload length, next header, hlim hop limit`.
///
/// LABEL: printed at the start of each line. Default: none.
/// CONTENTS true: the packet's bytes follow below the line, in hexadecimal, 24 on a line. Default false.
/// NBYTES: maximum number of bytes shown. Default 1500.
class IP6Print final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  std::string label_;
  bool contents_ = false;
  uint32_t bytes_ = 1500;
};

HEADRACE_ELEMENT(IP6Print)

}  // namespace headrace
