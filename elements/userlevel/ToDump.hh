#pragma once
#include <headrace/element.hh>
#include <headrace/touches_machine.hh>

#include "src/io/pcap/capture_writer.hh"

namespace headrace {

/// Writes packets to a capture file.
///
///     ToDump(FILENAME [, SNAPLEN, ENCAP, keyword USE_ENCAP_FROM, EXTRA_LENGTH, UNBUFFERED, NANO, FORMAT])
///
/// Input 0, push or pull; output 0 (optional): the packets, unchanged. Without an output, a pull input is pulled
/// whenever there are packets. Any number of threads may push.
///
/// FILENAME: the file; "-" is the standard output. A name that ends in ".gz" is compressed.
/// SNAPLEN: most bytes written of a packet; 0: all. Default 2000.
/// ENCAP: the header that packets begin with: ETHER, IP, FDDI, ATM, 802_11, SLL, AIRONET, HDLC, PPP_HDLC, PPP, SUNATM,
/// PRISM, NULL, or "#" with a link type number. Default ETHER.
/// USE_ENCAP_FROM: elements whose `encap` handlers tell, instead of ENCAP.
/// EXTRA_LENGTH false: the extra-length annotation does not count. Default true.
/// UNBUFFERED true: every packet is written at once. Default false.
/// NANO false: times in microseconds. Default true.
/// FORMAT: PCAP or PCAPNG. Default PCAP, but PCAPNG if the name ends in ".pcapng" (or ".pcapng.gz").
///
/// Handlers: `count` (r) packets written; `reset_counts` (w); `filename` (r); `flush` (w) writes out what is buffered.
class ToDump final : public Element, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"1/0-1"};

  /// After the elements that USE_ENCAP_FROM names.
  int configure_phase() const override { return kDefaultPhase + 1; }
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;

  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;
  bool run_task(Task& task) override;

 private:
  Status find_link_type(Errors& errors);
  void write(Packet* const* packets, int n);

  std::string filename_;
  io::CaptureWriter::Options options_;
  std::vector<Element*> encap_from_;
  io::CaptureWriter writer_;
  ThreadCounters count_{1};
  Task task_{this};
  Signal signal_;
};

HEADRACE_ELEMENT(ToDump)

}  // namespace headrace
