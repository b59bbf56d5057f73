#include "src/io/pcap/live.hh"

#include <net/if.h>
#include <pcap/pcap.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "headrace/addresses.hh"

namespace headrace::io {

namespace {

constexpr int kCaptureBufferBytes = 8 << 20;

std::optional<std::array<uint8_t, 6>> hardware_address(const std::string& name) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return std::nullopt;
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  const bool known = ioctl(fd, SIOCGIFHWADDR, &request) == 0 && request.ifr_hwaddr.sa_family == 1;  // ARPHRD_ETHER
  close(fd);
  if (!known) return std::nullopt;
  std::array<uint8_t, 6> address;
  std::memcpy(address.data(), request.ifr_hwaddr.sa_data, address.size());
  return address;
}

std::string explain(pcap* handle, int code) {
  const std::string detail = pcap_geterr(handle);
  switch (code) {
    case PCAP_ERROR_NO_SUCH_DEVICE:
      return "no such interface";
    case PCAP_ERROR_PERM_DENIED:
    case PCAP_ERROR_PROMISC_PERM_DENIED:
      return "no permission; run as root, or give the program the capabilities CAP_NET_RAW and CAP_NET_ADMIN";
    case PCAP_ERROR_IFACE_NOT_UP:
      return "the interface is down";
    default:
      return detail.empty() ? pcap_statustostr(code) : detail;
  }
}

}  // namespace

LiveInterface::~LiveInterface() { pcap_close(pcap_); }

std::unique_ptr<LiveInterface> LiveInterface::open(const std::string& name, const Options& options, Errors& errors) {
  char text[PCAP_ERRBUF_SIZE] = "";
  pcap* handle = pcap_create(name.c_str(), text);
  if (!handle) {
    (void)errors.error("{}: {}", name, text);
    return nullptr;
  }
  std::unique_ptr<LiveInterface> live(new LiveInterface(name, handle));
  pcap_set_snaplen(handle, options.snap_length);
  pcap_set_promisc(handle, options.promiscuous);
  pcap_set_immediate_mode(handle, 1);
  pcap_set_timeout(handle, 1);
  if (options.capture) pcap_set_buffer_size(handle, kCaptureBufferBytes);
  live->nanoseconds_ = pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO) == 0;
  const int code = pcap_activate(handle);
  if (code < 0) {
    (void)errors.error("{}: {}", name, explain(handle, code));
    return nullptr;
  }
  if (code > 0 && code != PCAP_WARNING_TSTAMP_TYPE_NOTSUP) errors.warning("{}: {}", name, explain(handle, code));
  const auto failed = [&](const char* what) {
    (void)errors.error("{}: {}: {}", name, what, pcap_geterr(handle));
    return nullptr;
  };
  if (pcap_setnonblock(handle, 1, text) < 0) {
    (void)errors.error("{}: {}", name, text);
    return nullptr;
  }
  if (!live->block()) return failed("filter");
  if (options.capture) {
    if (options.link_type >= 0 && pcap_set_datalink(handle, options.link_type) < 0) return failed("link type");
    // Not every kind of interface can tell the directions apart.
    if (pcap_setdirection(handle, options.outbound ? PCAP_D_INOUT : PCAP_D_IN) < 0)
      errors.warning("{}: {}", name, pcap_geterr(handle));
  }
  live->address_ = hardware_address(name);
  return live;
}

int LiveInterface::fd() const { return pcap_get_selectable_fd(pcap_); }
int LiveInterface::link_type() const { return pcap_datalink(pcap_); }

bool LiveInterface::block() {
  // One instruction that accepts no byte of any packet.
  bpf_insn nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  bpf_program program{1, &nothing};
  return pcap_setfilter(pcap_, &program) == 0;
}

Status LiveInterface::set_filter(const std::string& text, Errors& errors) {
  bpf_program program;
  bool set = pcap_compile(pcap_, &program, text.c_str(), 1, PCAP_NETMASK_UNKNOWN) == 0;
  if (set) {
    set = pcap_setfilter(pcap_, &program) == 0;
    pcap_freecode(&program);
  }
  return set ? Status() : errors.error("{}: filter: {}", name_, pcap_geterr(pcap_));
}

int LiveInterface::receive(Batch& batch, int max, uint32_t headroom, bool timestamps, uint64_t& missed) {
  struct Context {
    LiveInterface& live;
    Batch& batch;
    uint32_t headroom;
    bool timestamps;
    uint64_t& missed;
  } context{*this, batch, headroom, timestamps, missed};
  const auto take = [](u_char* user, const pcap_pkthdr* header, const u_char* bytes) {
    Context& c = *reinterpret_cast<Context*>(user);
    const uint32_t n = std::min(header->caplen, Packet::kMaxLength);
    Packet* p = Packet::make(bytes, n, c.headroom);
    if (!p) {
      ++c.missed;
      return;
    }
    p->set_mac_header();
    p->set_anno_u32(anno_offset::kExtraLength, header->len - n);
    p->set_packet_type(packet_type_of(*p, c.live.link_type(), c.live.address_));
    if (c.timestamps)
      p->set_timestamp(Timestamp::from_sec(header->ts.tv_sec) +
                       Timestamp::from_ns(header->ts.tv_usec * (c.live.nanoseconds_ ? 1 : 1000)));
    c.batch.push_back(p);
  };
  const int before = batch.size();
  const int got = pcap_dispatch(pcap_, std::min(max, batch.room()), take, reinterpret_cast<u_char*>(&context));
  return got < 0 ? -1 : batch.size() - before;
}

bool LiveInterface::send(const Packet& p) {
  errno = 0;
  if (pcap_inject(pcap_, p.data(), p.length()) >= 0) return true;
  if (errno == 0) errno = EINVAL;
  return false;
}

std::optional<uint64_t> LiveInterface::kernel_drops() const {
  pcap_stat stats;
  if (pcap_stats(pcap_, &stats) < 0) return std::nullopt;
  return uint64_t{stats.ps_drop} + stats.ps_ifdrop;
}

PacketType packet_type_of(const Packet& p, int link_type, const std::optional<std::array<uint8_t, 6>>& own_address) {
  if (link_type != DLT_EN10MB || p.length() < 6) return PacketType::kHost;
  const EtherAddress to = EtherAddress::from_bytes(p.data());
  if (to.is_broadcast()) return PacketType::kBroadcast;
  if (to.is_group()) return PacketType::kMulticast;
  return !own_address || to.bytes() == *own_address ? PacketType::kHost : PacketType::kOtherHost;
}

}  // namespace headrace::io
