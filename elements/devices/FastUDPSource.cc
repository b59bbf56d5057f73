#include "elements/devices/FastUDPSource.hh"

#include "headrace/headers.hh"

namespace headrace {

Status FastUDPSource::configure(Args& args) {
  bool checksum = true;
  const TcpUdpPort port{ip_protocol::kUdp};
  FrameTemplate::Ends& ends = settings_.ends;
  ends.src = ends.dst = IpAddress::from_octets(127, 0, 0, 1);
  args.read_p("RATE", settings_.rate).read_p("LIMIT", settings_.limit).read_p("LENGTH", settings_.length);
  args.read_p("SRCETH", ends.src_ether).read_p("SRCIP", ends.src).read_p("SPORT", src_port_, port);
  args.read_p("DSTETH", ends.dst_ether).read_p("DSTIP", ends.dst).read_p("DPORT", dst_port_, port);
  args.read_p("CHECKSUM", checksum).read_p("INTERVAL", interval_).read_p("ACTIVE", settings_.active);
  if (!args.read("STOP", settings_.stop).complete() || !check_settings(args.errors())) return Status::failed();
  frame_.build_udp(ends, settings_.length, checksum);
  return {};
}

Packet* FastUDPSource::next_frame() {
  Packet* p = frame_.make(static_cast<uint16_t>(src_port_ + increment_), static_cast<uint16_t>(dst_port_ + increment_));
  if (p && interval_ > 0 && ++of_interval_ == interval_) {
    of_interval_ = 0;
    ++increment_;
  }
  return p;
}

void FastUDPSource::restart() { increment_ = of_interval_ = 0; }

}  // namespace headrace
