// A library to preload into a program that uses DPDK: it turns the first port, a net_null, into a source of frames.
//
//     c++ -O3 -march=native -fPIC -shared -o frames.so frames.cc $(pkg-config --cflags libdpdk)
//     FRAMES_COUNTS=FILE LD_PRELOAD=./frames.so PROGRAM
//
// A receive callback writes a frame of 64 bytes, Ethernet, IPv4 and UDP, into each buffer that the port hands out. The
// destinations are drawn beforehand: FRAMES_DESTINATIONS of them (default 1,048,576), always the same ones in the same
// order. FRAMES_COUNTS is a file of 16 bytes, which the library maps: what was received, and what ports have sent.
// The program may be linked to DPDK in any way in which it exports DPDK's functions.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr int kLength = 64, kIpHeader = 14, kUdpHeader = 34;
constexpr uint16_t kPort = 0;

/// What differs between frames.
struct Flow {
  uint32_t destination;
  uint16_t checksum;
  uint16_t source_port;
};

struct Counts {
  uint64_t received;
  uint64_t sent;
};

alignas(64) uint8_t g_frame[kLength];
std::vector<Flow> g_flows;
size_t g_next = 0;
volatile Counts* g_counts;

uint16_t header_checksum(const uint8_t* header) {
  uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += static_cast<uint32_t>(header[i] << 8 | header[i + 1]);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return htons(static_cast<uint16_t>(~sum));
}

bool is_unicast(uint32_t address) {
  const uint32_t net = address >> 24;
  return net >= 1 && net < 224 && net != 127;
}

void make_frames(size_t flows) {
  static constexpr uint8_t kHeaders[] = {0x02, 0,
                                         0,    0,
                                         0,    0x01,
                                         0x02, 0,
                                         0,    0,
                                         0,    0x02,
                                         0x08, 0,  // Ethernet
                                         0x45, 0,
                                         0,    kLength - kIpHeader,
                                         0,    0,
                                         0,    0,
                                         64,   17,
                                         0,    0,  // IPv4
                                         198,  18,
                                         1,    1,
                                         0,    0,
                                         0,    0,  // from, to
                                         0,    0,
                                         0,    53,
                                         0,    kLength - kUdpHeader,
                                         0,    0};  // UDP
  std::memcpy(g_frame, kHeaders, sizeof kHeaders);
  std::mt19937_64 random(1);
  while (g_flows.size() < flows) {
    const uint64_t drawn = random();
    const auto address = static_cast<uint32_t>(drawn >> 32);
    if (!is_unicast(address)) continue;
    Flow flow{htonl(address), 0, static_cast<uint16_t>(drawn)};
    uint8_t header[20];
    std::memcpy(header, g_frame + kIpHeader, sizeof header);
    std::memcpy(header + 16, &flow.destination, sizeof flow.destination);
    flow.checksum = header_checksum(header);
    g_flows.push_back(flow);
  }
}

uint16_t fill(uint16_t port, uint16_t, rte_mbuf** mbufs, uint16_t n, uint16_t, void*) {
  for (int i = 0; i < n; ++i) {
    rte_mbuf* m = mbufs[i];
    if (i + 4 < n) rte_prefetch0(rte_pktmbuf_mtod(mbufs[i + 4], void*));
    auto* frame = rte_pktmbuf_mtod(m, uint8_t*);
    m->data_len = kLength;
    m->pkt_len = kLength;
    m->port = port;
    m->packet_type = RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_UDP;
    std::memcpy(frame, g_frame, kLength);
    const Flow& flow = g_flows[g_next];
    std::memcpy(frame + kIpHeader + 10, &flow.checksum, sizeof flow.checksum);
    std::memcpy(frame + kIpHeader + 16, &flow.destination, sizeof flow.destination);
    std::memcpy(frame + kUdpHeader, &flow.source_port, sizeof flow.source_port);
    if (++g_next == g_flows.size()) g_next = 0;
  }
  g_counts->received = g_counts->received + n;
  return n;
}

bool is_up() {
  rte_eth_link link;
  return rte_eth_dev_is_valid_port(kPort) && rte_eth_link_get_nowait(kPort, &link) == 0 && link.link_status != 0;
}

/// Adds the callback when the program has started the port, then sums up what ports have sent.
void attend() {
  while (!is_up()) usleep(1000);
  if (!rte_eth_add_rx_callback(kPort, 0, fill, nullptr)) {
    std::fprintf(stderr, "frames: port 0 takes no callback\n");
    return;
  }
  for (;;) {
    usleep(50'000);
    uint64_t sent = 0;
    uint16_t port;
    RTE_ETH_FOREACH_DEV(port) {
      rte_eth_stats stats;
      if (rte_eth_stats_get(port, &stats) == 0) sent += stats.opackets;
    }
    g_counts->sent = sent;
  }
}

volatile Counts* map_counts() {
  const char* name = std::getenv("FRAMES_COUNTS");
  const int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0 || ftruncate(fd, sizeof(Counts)) != 0) return nullptr;
  void* at = mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<volatile Counts*>(at);
}

bool start() {
  // The program may start others, such as a compiler, which have no DPDK.
  if (!dlsym(RTLD_DEFAULT, "rte_eth_add_rx_callback")) return false;
  g_counts = map_counts();
  if (!g_counts) {
    std::fprintf(stderr, "frames: FRAMES_COUNTS must name a file that can be written\n");
    return false;
  }
  const char* destinations = std::getenv("FRAMES_DESTINATIONS");
  make_frames(destinations ? std::strtoul(destinations, nullptr, 0) : 1 << 20);
  std::thread(attend).detach();
  return true;
}

[[maybe_unused]] const bool g_started = start();

}  // namespace
