#include "elements/tcpudp/FastUDPFlows.hh"

#include "headrace/value_handlers.hh"

namespace headrace {

Status FastUDPFlows::configure(Args& args) {
  FrameTemplate::Ends& ends = settings_.ends;
  uint32_t flows = 0;
  bool duplicate = false;
  args.read_mp("RATE", settings_.rate).read_mp("LIMIT", settings_.limit).read_mp("LENGTH", settings_.length);
  args.read_mp("SRCETH", ends.src_ether).read_mp("SRCIP", ends.src);
  args.read_mp("DSTETH", ends.dst_ether).read_mp("DSTIP", ends.dst);
  args.read_mp("FLOWS", flows, Between{1, 1 << 24}).read_mp("FLOWSIZE", flow_size_, Between{1, UINT32_MAX});
  // Click has CHECKSUM and ACTIVE also by position, FastClick by keyword only.
  args.read_p("CHECKSUM", checksum_).read_p("ACTIVE", settings_.active).read("STOP", settings_.stop);
  args.read("BURST", burst_, Between{1, INT32_MAX}).read("FLOWBURST", flow_burst_, Between{1, UINT32_MAX});
  args.read("SEQUENTIAL", sequential_).read("DUPLICATE", duplicate);
  if (!args.complete() || !check_settings(args.errors())) return Status::failed();
  flows_.resize(flows);
  for (UdpFlow& flow : flows_) flow = {random_port(), random_port(), 0};
  build();
  return {};
}

uint32_t FastUDPFlows::pick() {
  if (in_a_row_ < flow_burst_ && flow_ != UINT32_MAX) return flow_;
  in_a_row_ = 0;
  if (!sequential_) return random_.below(static_cast<uint32_t>(flows_.size()));
  return flow_ + 1 < flows_.size() ? flow_ + 1 : 0;
}

Packet* FastUDPFlows::next_frame() {
  flow_ = pick();
  UdpFlow& flow = flows_[flow_];
  if (flow.sent >= flow_size_) {
    if (sequential_)
      flow = {static_cast<uint16_t>(flow.src_port + 1), static_cast<uint16_t>(flow.dst_port + 1), 0};
    else
      flow = {random_port(), random_port(), 0};
  }
  Packet* p = frame_.make(flow.src_port, flow.dst_port);
  if (!p) return nullptr;
  ++flow.sent;
  ++in_a_row_;
  return p;
}

void FastUDPFlows::add_handlers(Handlers& handlers) {
  FrameSource::add_handlers(handlers);
  const auto rebuild = [this] { build(); };
  read_value(handlers, "length", settings_.length);
  write_value(handlers, "length", settings_.length, Between{FrameTemplate::kShortest, FrameTemplate::kLongest},
              rebuild);
  write_value(handlers, "srceth", settings_.ends.src_ether, rebuild);
  write_value(handlers, "dsteth", settings_.ends.dst_ether, rebuild);
  handlers.value("stop", settings_.stop);
}

}  // namespace headrace
