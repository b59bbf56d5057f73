#include "src/io/linux/interface.hh"

#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <pcap/dlt.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "src/io/linux/bpf.hh"

extern char** environ;

namespace headrace::io {

namespace {

/// libpcap's name for all of them.
constexpr const char* kAllInterfaces = "any";

Descriptor control_socket() { return Descriptor(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)); }

bool ask(const Descriptor& socket, const std::string& name, unsigned long what, ifreq& request) {
  request = {};
  if (name.size() >= IFNAMSIZ) {
    errno = ENODEV;
    return false;
  }
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return ioctl(socket.get(), what, &request) == 0;
}

template <typename T>
bool ask_driver(const Descriptor& socket, const std::string& name, T& what) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&what);
  return ioctl(socket.get(), SIOCETHTOOL, &request) == 0;
}

int link_type_of(unsigned short hardware) {
  switch (hardware) {
    case ARPHRD_ETHER:
    case ARPHRD_LOOPBACK:
      return DLT_EN10MB;
    case ARPHRD_NONE:
    case ARPHRD_TUNNEL:
    case ARPHRD_SIT:
    case ARPHRD_IPGRE:
      return DLT_RAW;
    default:
      return -1;
  }
}

/// Runs a program and waits for it. True if it succeeded.
bool run_program(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child;
  int status;
  return posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0 &&
         waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

std::optional<Interface> Interface::find(const std::string& name) {
  const Descriptor socket = control_socket();
  ifreq request;
  Interface i;
  i.name = name;
  if (name == kAllInterfaces) {
    i.up = true;
    return i;
  }
  if (!ask(socket, name, SIOCGIFINDEX, request)) return std::nullopt;
  i.index = request.ifr_ifindex;
  if (ask(socket, name, SIOCGIFMTU, request)) i.mtu = request.ifr_mtu;
  if (ask(socket, name, SIOCGIFFLAGS, request)) i.up = request.ifr_flags & IFF_UP;
  if (ask(socket, name, SIOCGIFHWADDR, request)) {
    i.link_type = link_type_of(request.ifr_hwaddr.sa_family);
    if (request.ifr_hwaddr.sa_family == ARPHRD_ETHER) {
      i.address.emplace();
      std::memcpy(i.address->data(), request.ifr_hwaddr.sa_data, i.address->size());
    }
  }
  // Not from /sys, which may be that of another namespace.
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  const bool told = ask_driver(socket, name, driver);
  // A bus address, such as 0000:03:00.0.
  i.is_virtual = !told || !std::memchr(driver.bus_info, ':', sizeof driver.bus_info);
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  if (ask_driver(socket, name, channels))
    i.receive_queues = std::max(1, static_cast<int>(channels.rx_count + channels.combined_count));
  return i;
}

int interface_index(const std::string& name) { return static_cast<int>(if_nametoindex(name.c_str())); }

std::string explain_errno(int error) {
  switch (error) {
    case ENODEV:
    case ENXIO:
      return "no such interface";
    case EPERM:
    case EACCES:
      return "no permission; run as root, or give the program the capabilities CAP_NET_RAW and CAP_NET_ADMIN";
    case ENETDOWN:
      return "the interface is down";
    default:
      return std::strerror(error);
  }
}

std::unique_ptr<Promiscuity> Promiscuity::begin(const Interface& interface, Errors& errors) {
  auto p = std::make_unique<Promiscuity>();
  p->socket_ = Descriptor(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  packet_mreq membership{};
  membership.mr_ifindex = interface.index;
  membership.mr_type = PACKET_MR_PROMISC;
  if (!p->socket_ ||
      setsockopt(p->socket_.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership) < 0) {
    (void)errors.error("{}: promiscuous mode: {}", interface.name, explain_errno(errno));
    return nullptr;
  }
  return p;
}

std::shared_ptr<KernelSilence> KernelSilence::begin(const std::string& interface, Errors& errors) {
  static std::mutex lock;
  static std::map<std::string, std::weak_ptr<KernelSilence>> all;
  std::lock_guard guard(lock);
  std::weak_ptr<KernelSilence>& known = all[interface];
  const int index = interface_index(interface);
  if (std::shared_ptr<KernelSilence> s = known.lock(); s && (s->index_ == index || !s->link_)) return s;
  auto s = std::make_shared<KernelSilence>();
  // A program behind the packet sockets that drops everything. It goes with this process, however that ends.
  s->link_ = attach_tcx_drop(index);
  s->index_ = index;
  if (!s->link_) {
    // Before Linux 6.6: only IPv4, and the rules stay if the process is killed.
    for (const char* chain : {"INPUT", "FORWARD"})
      if (!run_program({"iptables", "-w", "-I", chain, "-i", interface, "-j", "DROP"})) {
        (void)errors.error(
            "{}: the kernel would still receive the packets: neither tcx (Linux 6.6) nor iptables can be used "
            "(SNIFFER true allows that)",
            interface);
        return nullptr;
      }
    s->interface_ = interface;
  }
  known = s;
  return s;
}

KernelSilence::~KernelSilence() {
  if (interface_.empty()) return;
  for (const char* chain : {"INPUT", "FORWARD"})
    run_program({"iptables", "-w", "-D", chain, "-i", interface_, "-j", "DROP"});
}

}  // namespace headrace::io
