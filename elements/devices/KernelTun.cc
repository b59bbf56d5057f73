#include "elements/devices/KernelTun.hh"

#include "src/io/pcap/link_type.hh"

namespace headrace {

void KernelTun::deliver(Batch& batch) {
  if (options_.tap) {
    output(0).push(batch);
    return;
  }
  static const int kRaw = io::parse_link_type("IP");
  Batch ip, other;
  for (Packet* p : batch) (io::mark_ip_header(*p, kRaw) ? ip : other).push_back(p);
  if (!ip.empty()) output(0).push(ip);
  if (other.empty()) return;
  if (noutputs() > 1)
    output(1).push(other);
  else
    drop(other, kOwnReason);
}

}  // namespace headrace
