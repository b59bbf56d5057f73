#include "elements/tcpudp/FastTCPFlows.hh"

#include "headrace/headers.hh"

namespace headrace {

namespace {
constexpr uint8_t kFlagFin = 0x01, kFlagSyn = 0x02, kFlagPush = 0x08, kFlagAck = 0x10;
}  // namespace

Status FastTCPFlows::configure(Args& args) {
  FrameTemplate::Ends& ends = settings_.ends;
  uint32_t flows = 0;
  args.read_mp("RATE", settings_.rate).read_mp("LIMIT", settings_.limit).read_mp("LENGTH", settings_.length);
  args.read_mp("SRCETH", ends.src_ether).read_mp("SRCIP", ends.src);
  args.read_mp("DSTETH", ends.dst_ether).read_mp("DSTIP", ends.dst);
  args.read_mp("FLOWS", flows, Between{1, 1 << 24}).read_mp("FLOWSIZE", flow_size_);
  args.read_p("ACTIVE", settings_.active).read("STOP", settings_.stop);
  if (!args.complete() || !check_settings(args.errors())) return Status::failed();
  if (flow_size_ < 3) {
    args.errors().warning("FLOWSIZE is at least 3");
    flow_size_ = 3;
  }
  flows_.resize(flows);
  for (TcpFlow& flow : flows_) flow = {random_port(), random_port(), 0};
  static constexpr uint8_t kFlags[kKinds] = {kFlagSyn, kFlagPush | kFlagAck, kFlagFin};
  for (int kind = 0; kind < kKinds; ++kind) {
    TcpHeader tcp{};
    tcp.sequence = random_.next();
    tcp.acknowledgment = random_.next();
    tcp.data_offset = sizeof tcp / 4 << 4;
    tcp.flags = kFlags[kind];
    tcp.window = 65535;
    frames_[kind].build(ends, ip_protocol::kTcp, {reinterpret_cast<const char*>(&tcp), sizeof tcp}, settings_.length,
                        true);
  }
  return {};
}

Packet* FastTCPFlows::next_frame() {
  TcpFlow& flow = flows_[random_.below(static_cast<uint32_t>(flows_.size()))];
  if (flow.sent >= flow_size_) flow = {random_port(), random_port(), 0};
  const Kind kind = flow.sent == 0 ? kSyn : flow.sent + 1 == flow_size_ ? kFin : kData;
  Packet* p = frames_[kind].make(flow.src_port, flow.dst_port);
  if (p) ++flow.sent;
  return p;
}

bool FastTCPFlows::has_last_frames() {
  while (open_ < flows_.size() && flows_[open_].sent >= flow_size_) ++open_;
  return open_ < flows_.size();
}

Packet* FastTCPFlows::last_frame() {
  TcpFlow& flow = flows_[open_];
  Packet* p = frames_[kFin].make(flow.src_port, flow.dst_port);
  if (p) flow.sent = flow_size_;
  return p;
}

}  // namespace headrace
