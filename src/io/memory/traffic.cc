#include "io/memory/traffic.hh"

#include <pcap/pcap.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "headrace/flow_hash.hh"
#include "headrace/ip_protocol.hh"
#include "io/memory/rule_draw.hh"

namespace headrace {

namespace {

constexpr uint32_t kSource = 0xc6120101;  // 198.18.1.1
constexpr uint16_t kDstPort = 53;

void put32(uint8_t* at, uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(at, &value, 4);
}
void put16(uint8_t* at, uint16_t value) {
  value = __builtin_bswap16(value);
  std::memcpy(at, &value, 2);
}
uint16_t get16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }

/// A unicast address outside of 0/8 and 127/8.
uint32_t random_destination(TrafficRandom& random) {
  for (;;) {
    const uint32_t a = random.next32();
    const uint32_t top = a >> 24;
    if (top >= 1 && top < 224 && top != 127) return a;
  }
}

void make_header(uint8_t* h, uint8_t ttl) {
  std::memset(h, 0, 64);
  const uint8_t ethernet[14] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0};
  std::memcpy(h, ethernet, sizeof ethernet);
  h[14] = 0x45;
  h[22] = ttl;
  h[23] = 17;
  put32(h + 26, kSource);
  put16(h + 36, kDstPort);
}

constexpr uint8_t kSource6[16] = {0x20, 0x01, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};  // 2001:2::1

void make_header6(uint8_t* h, uint8_t hop_limit) {
  std::memset(h, 0, 64);
  const uint8_t ethernet[14] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd};
  std::memcpy(h, ethernet, sizeof ethernet);
  h[14] = 0x60;
  h[20] = 17;
  h[21] = hop_limit;
  std::memcpy(h + 22, kSource6, 16);
  put16(h + 56, kDstPort);
}

/// The checksum of the header template with a destination and a length filled in, in network order.
uint16_t header_checksum(const uint8_t* header, uint32_t dst, uint16_t ip_length) {
  uint8_t ip[20];
  std::memcpy(ip, header + 14, 20);
  put16(ip + 2, ip_length);
  put32(ip + 16, dst);
  uint32_t sum = 0;
  for (int i = 0; i < 20; i += 2) sum += get16(ip + i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return __builtin_bswap16(static_cast<uint16_t>(~sum));
}

TrafficRecord make_record(const uint8_t* header, uint32_t dst, uint16_t src_port, uint16_t length) {
  TrafficRecord r;
  r.dst = __builtin_bswap32(dst);
  r.src_port = __builtin_bswap16(src_port);
  r.length = length;
  r.checksum = header_checksum(header, dst, static_cast<uint16_t>(length - 14));
  r.hash = toeplitz_ip4(kSource, dst, src_port, kDstPort);
  return r;
}

TrafficRecord6 make_record6(const Ip6Address& dst, uint16_t src_port, uint16_t length) {
  TrafficRecord6 r;
  dst.copy_to(r.dst);
  r.src_port = __builtin_bswap16(src_port);
  r.length = length;
  r.hash = toeplitz_ip6(kSource6, r.dst, src_port, kDstPort);
  return r;
}

/// A random address of a random prefix.
Ip6Address random_destination6(const std::vector<Ip6Prefix>& prefixes, TrafficRandom& random) {
  const Ip6Prefix& prefix = prefixes[random.next() % prefixes.size()];
  const uint64_t bits[2] = {random.next(), random.next()};
  return prefix.network() | (Ip6Address::from_bytes(bits) & ~prefix.mask());
}

Status load_frames(const TrafficSpec& spec, std::vector<TrafficShare>& shares, Errors& errors) {
  char message[PCAP_ERRBUF_SIZE] = "";
  pcap_t* pcap = pcap_open_offline(spec.file.c_str(), message);
  if (!pcap) return errors.error("{}", message);
  if (pcap_datalink(pcap) != DLT_EN10MB) {
    const int type = pcap_datalink(pcap);
    pcap_close(pcap);
    const char* name = pcap_datalink_val_to_name(type);
    return errors.error("{}: link type {} is not Ethernet", spec.file, name ? name : "unknown");
  }
  pcap_pkthdr* header;
  const u_char* bytes;
  int got;
  size_t frames = 0;
  while ((got = pcap_next_ex(pcap, &header, &bytes)) == 1) {
    if (header->caplen == 0) continue;
    const uint32_t hash = toeplitz_frame(bytes, header->caplen);
    TrafficShare& share = shares[rss_worker(hash, static_cast<int>(shares.size()))];
    share.frames.push_back({std::vector<uint8_t>(bytes, bytes + header->caplen), hash});
    ++frames;
  }
  Status status;
  if (got == PCAP_ERROR) status = errors.error("{}: {}", spec.file, pcap_geterr(pcap));
  if (frames == 0) status = errors.error("{}: no frames", spec.file);
  pcap_close(pcap);
  return status;
}

/// Fills the shares with records, of which make(length) makes a random one.
template <typename Record, typename Make>
void make_records(const TrafficSpec& spec, TrafficRandom& random, std::vector<TrafficShare>& shares,
                  std::vector<Record> TrafficShare::*records, Make&& make) {
  const int workers = static_cast<int>(shares.size());
  const uint32_t shortest = std::max(spec.shortest, spec.prefixes.empty() ? 0 : kShortestIp6);
  const auto make_long = [&](uint32_t length) { return make(static_cast<uint16_t>(std::max(length, shortest))); };
  for (TrafficShare& share : shares) (share.*records).reserve(spec.flows / shares.size() + spec.flows / 16);
  const auto add = [&](const Record& r) { (shares[rss_worker(r.hash, workers)].*records).push_back(r); };
  // Inside rules these are drawn with such probabilities.
  if (spec.kind == TrafficSpec::Kind::kZipf && spec.rules.empty()) {
    std::vector<Record> flows(spec.flows);
    for (Record& r : flows) r = make_long(spec.length);
    const ZipfSampler sampler(spec.flows, spec.skew);
    const size_t draws = std::max<size_t>(spec.flows, 1 << 20);
    for (size_t i = 0; i < draws; ++i) add(flows[sampler.draw(random)]);
    return;
  }
  for (uint32_t i = 0; i < spec.flows; ++i)
    add(make_long(spec.kind == TrafficSpec::Kind::kImix ? kImixLengths[i % 12] : spec.length));
}

/// A number for each address and port, in the order of their first frames.
template <typename Record>
TrafficFlows number_flows(const std::vector<Record>& records) {
  TrafficFlows flows;
  std::map<std::string, uint32_t, std::less<>> numbers;
  for (const Record& r : records) {
    std::string key(reinterpret_cast<const char*>(&r.dst), sizeof r.dst);
    key.append(reinterpret_cast<const char*>(&r.src_port), sizeof r.src_port);
    flows.of_frame.push_back(numbers.emplace(std::move(key), static_cast<uint32_t>(numbers.size())).first->second);
  }
  flows.count = static_cast<uint32_t>(numbers.size());
  return flows;
}

}  // namespace

TrafficFlows find_flows(const TrafficSpec& spec, const TrafficShare& share) {
  if (spec.kind == TrafficSpec::Kind::kZipf && share.narrow.empty() && share.wide.empty())
    return share.records6.empty() ? number_flows(share.records) : number_flows(share.records6);
  TrafficFlows flows;
  flows.count = static_cast<uint32_t>(share.size());
  flows.of_frame.resize(share.size());
  std::iota(flows.of_frame.begin(), flows.of_frame.end(), 0);
  return flows;
}

void set_length(TrafficRecord& record, const uint8_t* header, uint16_t length) {
  record.length = length;
  record.checksum = header_checksum(header, __builtin_bswap32(record.dst), static_cast<uint16_t>(length - 14));
}

std::vector<TrafficShare> make_traffic(const TrafficSpec& spec, int workers, Errors& errors) {
  std::vector<TrafficShare> shares(workers);
  for (TrafficShare& share : shares) {
    if (spec.prefixes.empty()) {
      make_header(share.header, spec.ttl);
    } else {
      make_header6(share.header, spec.ttl);
    }
  }
  if (spec.kind == TrafficSpec::Kind::kReplay) {
    (void)load_frames(spec, shares, errors);
    return shares;
  }
  TrafficRandom random(spec.seed);
  if (!spec.rules.empty() || spec.protocol == ip_protocol::kTcp) {
    RuleDraw draw(spec, random);
    if (draw.is_narrow()) {
      make_records(spec, random, shares, &TrafficShare::narrow,
                   [&](uint16_t length) { return narrowed(draw.next(length)); });
    } else {
      make_records(spec, random, shares, &TrafficShare::wide, [&](uint16_t length) { return draw.next(length); });
    }
    if (draw.misses_failed()) (void)errors.error("MISS: no frame is outside of the rules");
    return shares;
  }
  if (!spec.prefixes.empty()) {
    make_records(spec, random, shares, &TrafficShare::records6, [&](uint16_t length) {
      const Ip6Address dst = random_destination6(spec.prefixes, random);
      return make_record6(dst, static_cast<uint16_t>(random.next32()), length);
    });
    return shares;
  }
  const uint8_t* header = shares[0].header;
  make_records(spec, random, shares, &TrafficShare::records, [&](uint16_t length) {
    const uint32_t dst = random_destination(random);
    return make_record(header, dst, static_cast<uint16_t>(random.next32()), length);
  });
  return shares;
}

}  // namespace headrace
