#pragma once
#include <headrace/element.hh>
#include <headrace/touches_machine.hh>

#include "headrace/device_port.hh"
#include "src/io/pcap/capture_writer.hh"

namespace headrace {

/// Writes packets to a capture file.
///
///     ToDump(FILENAME [, SNAPLEN, ENCAP, keyword USE_ENCAP_FROM, EXTRA_LENGTH, UNBUFFERED, NANO, FORMAT])
///
/// Input 0, push or pull; output 0 (optional): the packets, unchanged. Without an output, a pull input is pulled
/// whenever there are packets. Any number of threads may push. Packets that could not be written, because the disk is
/// full or the reader of a FIFO is gone, are omitted: the file contains only whole packets, and writing resumes when
/// there is room again. Without an output they are counted as drops.
///
/// FILENAME: the file; "-" is standard output. A name that ends in ".gz" is compressed.
/// SNAPLEN: maximum number of bytes written of a packet; 0: all. Default 2000.
/// ENCAP: the header that packets begin with: ETHER, IP, FDDI, ATM, 802_11, SLL, AIRONET, HDLC, PPP_HDLC, PPP, SUNATM,
/// PRISM, NULL, or "#" with a link type number. Default ETHER.
/// USE_ENCAP_FROM: elements whose `encap` handlers give the link type, instead of ENCAP.
/// EXTRA_LENGTH false: ignores the extra-length annotation. Default true.
/// UNBUFFERED true: writes each packet at once. Default false: writes 256 KB at a time, and the rest when the router
/// stops.
/// NANO false: times in microseconds. Default true.
/// FORMAT: PCAP or PCAPNG. Default PCAP, but PCAPNG if the name ends in ".pcapng" (or ".pcapng.gz").
///
/// Handlers: `count` (r) packets written; `not_written` (r) packets that could not be; `reset_counts` (w); `filename`
/// (r); `flush` (w) writes out what is buffered.
class ToDump final : public Element, public DevicePort, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"1/0-1"};

  /// After the elements that USE_ENCAP_FROM names.
  int configure_phase() const override { return kDefaultPhase + 1; }
  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    if (!options_.extra_length) return {};
    return declared(Read{anno::extra_length});
  }
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  std::vector<DropCount> drop_counts() const override;

  /// One that passes packets on is no place where they leave the router.
  bool moves(Direction direction) const override { return direction == Direction::kOut && noutputs() == 0; }
  PortTotals totals(Direction, int thread) const override { return writer_.written(thread); }
  void write_out() override { writer_.flush(); }

  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;
  bool run_task(Task& task) override;

 private:
  Status find_link_type(Errors& errors);

  std::string filename_;
  io::CaptureWriter::Options options_;
  std::vector<Element*> encap_from_;
  io::CaptureWriter writer_;
  Task task_{this};
  Signal signal_;
};

HEADRACE_ELEMENT(ToDump)

}  // namespace headrace
