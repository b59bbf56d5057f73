#pragma once
#include <headrace/element.hh>

#include "headrace/headers.hh"
#include "tables/files/log_file.hh"

namespace headrace {

/// Prints a line for each ARP packet, in the style of tcpdump.
///
///     ARPPrint([LABEL, keyword TIMESTAMP, ETHER, ACTIVE, OUTFILE])
///
/// Input: ARP packets with a network header; other packets pass without output. Lines go to standard error.
///
/// LABEL: printed at the start of each line.
/// TIMESTAMP false: does not print the timestamp annotation. Default true.
/// ETHER true: prints source and destination of the Ethernet header. Default false.
/// ACTIVE false: prints nothing. Default true.
/// OUTFILE: a file that gets the lines instead.
///
/// Handlers: `active` (rw); `lost` (r) lines that OUTFILE does not hold, because the disk was full.
class ARPPrint final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  std::string line(const Packet& p) const;

  std::string label_;
  std::string file_name_;
  bool timestamp_ = true;
  bool ether_ = false;
  bool active_ = true;
  LogFile file_;
};

HEADRACE_ELEMENT(ARPPrint)

}  // namespace headrace
