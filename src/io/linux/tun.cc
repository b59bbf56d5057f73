#include "src/io/linux/tun.hh"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "src/io/linux/device_registry.hh"

namespace headrace::io {

namespace {

constexpr uint32_t kLargest = 65535 + 18;

/// linux/ipv6.h cannot be included beside netinet/in.h.
struct In6Request {
  in6_addr address;
  uint32_t prefix_length;
  int index;
};

sockaddr to_sockaddr(IpAddress address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  address.copy_to(&in.sin_addr);
  sockaddr out;
  static_assert(sizeof in == sizeof out);
  std::memcpy(&out, &in, sizeof out);
  return out;
}

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

/// What a new device has: everything is to be set.
const HostDevice::Options kNothing{
    .name = {}, .tap = true, .address = {}, .address6 = {}, .gateway = {}, .ether = {}, .mtu = 0};

}  // namespace

std::shared_ptr<HostDevice> HostDevice::open(const std::string& key, const Options& options, const void* user,
                                             Errors& errors) {
  static DeviceRegistry<HostDevice> registry;
  return registry.open(
      options.name.empty() ? key : options.name, user,
      [&](const HostDevice& device) {
        return device.options_.tap == options.tap && if_nametoindex(device.name_.c_str()) != 0;
      },
      [&](int n) -> std::shared_ptr<HostDevice> {
        if (n > 0) {
          (void)errors.error("{}: another element has this device", options.name);
          return nullptr;
        }
        auto device = std::make_shared<HostDevice>();
        device->options_ = options;
        device->socket_ = device->open_device(errors);
        device->buffer_.reset(new uint8_t[kLargest]);
        return device->socket_ && device->set_up(kNothing, errors) ? device : nullptr;
      });
}

Descriptor HostDevice::open_device(Errors& errors) {
  const std::string& wanted = name_.empty() ? options_.name : name_;
  const char* what = options_.tap ? "tap" : "tun";
  if (wanted.size() >= IFNAMSIZ) {
    (void)errors.error("{}: a device's name has at most {} characters", wanted, IFNAMSIZ - 1);
    return Descriptor();
  }
  Descriptor socket(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!socket) {
    const bool no_driver = errno == ENOENT || errno == ENODEV || errno == ENXIO;
    (void)errors.error("/dev/net/tun: {}{}", std::strerror(errno),
                       no_driver ? " (the kernel needs its 'tun' module)" : "; run as root");
    return socket;
  }
  ifreq request = request_for(wanted);
  request.ifr_flags = static_cast<short>((options_.tap ? IFF_TAP : IFF_TUN) | IFF_NO_PI);
  if (ioctl(socket.get(), TUNSETIFF, &request) < 0) {
    if (errno == EPERM)
      (void)errors.error("no permission to make a {} device; run as root, or give the program CAP_NET_ADMIN", what);
    else if (errno == EBUSY || errno == EINVAL)
      (void)errors.error("{}: {} (another program has it, or it is no {} device)", wanted, std::strerror(errno), what);
    else
      (void)errors.error("{} device {}: {}", what, wanted, std::strerror(errno));
    return Descriptor();
  }
  name_ = request.ifr_name;
  return socket;
}

bool HostDevice::reopen() {
  Errors unused;
  const Descriptor made = open_device(unused);
  // The descriptor keeps its number, for the threads that send with it.
  return made && dup3(made.get(), socket_.get(), O_CLOEXEC) >= 0 && set_up(kNothing, unused).ok();
}

Status HostDevice::change(const Options& options, Errors& errors) {
  if (options == options_) return {};
  const Options old = std::exchange(options_, options);
  return set_up(old, errors);
}

Status HostDevice::set_up(const Options& old, Errors& errors) {
  const Descriptor control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = request_for(name_);
  const auto call = [&](unsigned long what) { return ioctl(control.get(), what, &request) == 0; };
  const auto failed = [&](const char* what) { return errors.error("{}: {}: {}", name_, what, std::strerror(errno)); };
  if (!control || !call(SIOCGIFFLAGS)) return failed("flags");
  const short flags = request.ifr_flags;
  if (options_.tap && options_.ether && options_.ether != old.ether) {
    request.ifr_hwaddr.sa_family = ARPHRD_ETHER;
    options_.ether->copy_to(request.ifr_hwaddr.sa_data);
    if (!call(SIOCSIFHWADDR)) return failed("Ethernet address");
  }
  if (options_.mtu != old.mtu) {
    request.ifr_mtu = options_.mtu;
    if (!call(SIOCSIFMTU)) return failed("MTU");
  }
  if (options_.address && options_.address != old.address) {
    request.ifr_addr = to_sockaddr(options_.address->address);
    if (!call(SIOCSIFADDR)) return failed("address");
    request.ifr_netmask = to_sockaddr(options_.address->mask);
    if (!call(SIOCSIFNETMASK)) return failed("network mask");
  }
  request.ifr_flags = static_cast<short>(flags | IFF_UP | IFF_RUNNING);
  if (!call(SIOCSIFFLAGS)) return failed("up");
  if (options_.address6 && options_.address6 != old.address6) {
    const Descriptor control6(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    In6Request request6{};
    options_.address6->address.copy_to(&request6.address);
    request6.prefix_length = static_cast<uint32_t>(options_.address6->length);
    request6.index = static_cast<int>(if_nametoindex(name_.c_str()));
    if (!control6 || (ioctl(control6.get(), SIOCSIFADDR, &request6) < 0 && errno != EEXIST))
      return failed("IPv6 address");
  }
  if (options_.gateway && options_.gateway != old.gateway) {
    rtentry route{};
    route.rt_dst = route.rt_genmask = to_sockaddr(IpAddress());
    route.rt_gateway = to_sockaddr(options_.gateway);
    route.rt_flags = RTF_UP | RTF_GATEWAY;
    route.rt_dev = name_.data();
    if (ioctl(control.get(), SIOCADDRT, &route) < 0 && errno != EEXIST) return failed("default route");
  }
  return {};
}

HostDevice::Got HostDevice::receive(uint32_t headroom, Packet*& packet) {
  const ssize_t n = read(socket_.get(), buffer_.get(), kLargest);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? Got::kNothing : Got::kGone;
  packet = Packet::make(buffer_.get(), static_cast<uint32_t>(n), headroom);
  return packet ? Got::kPacket : Got::kNoBuffer;
}

bool HostDevice::send(const Packet& p) const { return write(socket_.get(), p.data(), p.length()) >= 0; }

}  // namespace headrace::io
