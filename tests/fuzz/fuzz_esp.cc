/// Fuzzes what becomes of ESP packets that come in. Packets that are not authentic never come out; of those that are, whose
/// plaintext is fuzzed, comes what is inside and what the policies let the association carry, or nothing. No buffer is
/// lost.
///
/// An input is a sequence of packets: a byte of flags, the length in two bytes (little endian), then the bytes. The empty
/// input takes the graph down.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "elements/ipsec/IPsecDatabase.hh"
#include "headrace/checksum.hh"
#include "headrace/headers.hh"
#include "headrace/packet_pool.hh"
#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"

namespace {

using namespace headrace;

constexpr std::string_view kESPGraph = R"(
db :: IPsecDatabase;
Idle -> mark :: MarkIPHeader -> lookup :: IPsecESPLookup(db)
  -> verify :: IPsecAuthHMACSHA1(db, true) -> decrypt :: IPsecAES(db, false) -> IPsecESPUnencap(db)
  -> came :: Queue(16) -> Idle;
lookup[1] -> Discard;
)";

constexpr int kAssociations = 8;
enum ESPFlag : uint8_t {
  kAssociation = kAssociations - 1,
  kAgain = 8,         // with the number of the packet before
  kAuthentic = 0x10,  // the bytes are a plaintext, which is sealed; else they are an IP packet
  kProper = 0x20,     // the plaintext gets a trailer, and an inner header of the association's
  kDamaged = 0x40,    // a bit is wrong, which the second byte of the length chooses
  kCongestion = 0x80  // in the outer header
};

constexpr uint64_t kFirstExtended = 4294967290;

struct ESPKind {
  const char* algorithms;
  bool aead;
  int key, auth_key;
  IPsecMode mode;
  bool udp, extended;
};
constexpr ESPKind kKinds[kAssociations] = {
    {"cipher_algo aes-128-ctr cipher_key {} auth_algo sha1-hmac", false, 20, 20, IPsecMode::kTunnel4, false, false},
    {"aead_algo aes-128-gcm aead_key {}", true, 20, 0, IPsecMode::kTunnel4, false, true},
    {"cipher_algo aes-256-cbc cipher_key {} auth_algo sha256-hmac", false, 32, 32, IPsecMode::kTunnel4, false, false},
    {"cipher_algo 3des-cbc cipher_key {} auth_algo sha1-hmac", false, 24, 20, IPsecMode::kTunnel4, true, false},
    {"cipher_algo null auth_algo sha256-hmac", false, 0, 32, IPsecMode::kTunnel6, false, true},
    {"aead_algo aes-256-gcm aead_key {}", true, 36, 0, IPsecMode::kTransport, false, false},
    {"cipher_algo aes-128-cbc cipher_key {} auth_algo sha1-hmac", false, 16, 20, IPsecMode::kTransport, true, false},
    {"cipher_algo aes-256-ctr cipher_key {} auth_algo sha256-hmac", false, 36, 32, IPsecMode::kTunnel6, true, true},
};

[[noreturn]] void fail_esp(const std::string& why) {
  std::fprintf(stderr, "fuzz_esp: %s\n", why.c_str());
  std::abort();
}

std::string key_bytes(int n, int number) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%s%02x", i == 0 ? "" : ":", (i * 13 + number) & 0xff);
    text += byte;
  }
  return text;
}

/// The graph, and the peer that seals packets.
class ESPFixture {
 public:
  ESPFixture() : runtime_(Runtime::Options{.threads = 1, .cpus = {}, .control_thread = false}) {
    lang::Configuration configuration;
    Errors errors;
    if (lang::parse(kESPGraph, "graph", {}, configuration, errors))
      router_ = Router::create(configuration, runtime_, errors);
    if (!router_) fail_esp(errors.str());
    input_ = router_->find("mark");
    output_ = router_->find("came");
    database_ = dynamic_cast<IPsecDatabase*>(router_->find("db"));
    for (int i = 0; i < kAssociations; ++i) add(i);
    baseline_ = PacketPool::instance().in_use();
  }
  ESPFixture(const ESPFixture&) = delete;
  ESPFixture& operator=(const ESPFixture&) = delete;

  void run(const uint8_t* data, size_t size) {
    const uint8_t* end = data + size;
    while (end - data >= 3) {
      const uint8_t flags = data[0];
      const size_t length = std::min<size_t>(data[1] | data[2] << 8, static_cast<size_t>(end - data - 3));
      const std::string_view bytes(reinterpret_cast<const char*>(data + 3), length);
      if (flags & kAuthentic)
        authentic(flags, data[1], bytes);
      else
        (void)came_of(std::string(bytes), "a packet that nobody has authenticated");
      data += 3 + length;
    }
    if (const uint32_t used = PacketPool::instance().in_use(); used != baseline_)
      fail_esp("buffers in use: " + std::to_string(used) + ", before " + std::to_string(baseline_));
  }

 private:
  void add(int i) {
    const ESPKind& kind = kKinds[i];
    const bool tunnel6 = kind.mode == IPsecMode::kTunnel6;
    std::string text = "sa in " + std::to_string(spi_of(i)) + " " + kind.algorithms;
    if (const size_t at = text.find("{}"); at != std::string::npos) text.replace(at, 2, key_bytes(kind.key, i));
    if (!kind.aead) text += " auth_key " + key_bytes(kind.auth_key, i + 100);
    text += kind.mode == IPsecMode::kTransport ? " mode transport"
            : tunnel6                          ? " mode ipv6-tunnel src 2001:db8::2 dst 2001:db8::1"
                                               : " mode ipv4-tunnel src 192.0.2.2 dst 192.0.2.1";
    if (kind.udp) text += " udp-encap";
    if (kind.extended) text += " esn " + std::to_string(kFirstExtended);
    const std::string spi = " in esp protect " + std::to_string(spi_of(i)) + " pri 1 src ";
    text += "\nsp ipv4" + spi + "10." + std::to_string(i) + ".0.0/16";
    if (kind.mode != IPsecMode::kTransport) text += "\nsp ipv6" + spi + "2001:db8:" + std::to_string(i) + "::/48";
    Element* element = nullptr;
    Errors errors;
    const Handler* const h = router_->find_handler("db.add", nullptr, element, errors);
    if (!h || !router_->call_write(*h, text, errors)) fail_esp(errors.str());
  }
  static uint32_t spi_of(int i) { return 0x1000 + static_cast<uint32_t>(i); }

  static void put32(std::string& to, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(value >> shift);
  }
  static void set16(char* at, size_t value) {
    at[0] = static_cast<char>(value >> 8);
    at[1] = static_cast<char>(value);
  }
  static void set_sum(std::string& ip) {
    Ip4Header header;
    std::memcpy(&header, ip.data(), sizeof header);
    set_ip_checksum(header);
    std::memcpy(ip.data(), &header, sizeof header);
  }

  /// Makes the plaintext one that belongs to association `i`, and adds the trailer.
  static void make_proper(int i, std::string& plain, uint32_t block) {
    uint8_t next = 17;
    if (kKinds[i].mode != IPsecMode::kTransport) {
      const bool v6 = !plain.empty() && static_cast<uint8_t>(plain[0]) >> 4 == 6;
      if (plain.size() < (v6 ? 40u : 20u)) plain.resize(v6 ? 40 : 20);
      next = v6 ? 41 : 4;
      if (v6) {
        set16(&plain[4], plain.size() - 40);
        const char source[] = {0x20, 1, 0xd, static_cast<char>(0xb8), 0, static_cast<char>(i)};
        std::memcpy(&plain[8], source, sizeof source);
      } else {
        plain[0] = 0x45;
        set16(&plain[2], plain.size());
        plain[12] = 10;
        plain[13] = static_cast<char>(i);
        set_sum(plain);
      }
    }
    uint8_t padding = 0;
    while ((plain.size() + 2) % block != 0) plain += static_cast<char>(++padding);
    plain += static_cast<char>(padding);
    plain += static_cast<char>(next);
  }

  void authentic(uint8_t flags, uint8_t bit, std::string_view bytes) {
    const int i = flags & kAssociation;
    const ESPKind& kind = kKinds[i];
    constexpr uint8_t kOurs4[] = {192, 0, 2, 1};
    constexpr uint8_t kOurs6[] = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    const Ip6Address ours = kind.mode == IPsecMode::kTunnel6 ? Ip6Address::from_bytes(kOurs6)
                                                             : Ip6Address::v4_mapped(IpAddress::from_bytes(kOurs4));
    Association* const a = database_->associations().inbound(spi_of(i), ours);
    if (a == nullptr) fail_esp("no association");
    const ESPKeys& keys = database_->view().keys[a->index];
    std::string plain(bytes.substr(0, 9000));
    if (flags & kProper) make_proper(i, plain, keys.block);
    plain.resize(plain.size() / keys.block * keys.block);
    Numbers& numbers = numbers_[i];
    if ((flags & kAgain) == 0 || numbers.last == 0) {
      numbers.last = numbers.last != 0 ? numbers.last + 1 : kind.extended ? kFirstExtended : 1;
      numbers.accepted = false;
    }
    const uint64_t sequence = numbers.last;
    const char* const forbidden = flags & kDamaged   ? "a damaged packet"
                                  : numbers.accepted ? "a number that came twice"
                                                     : nullptr;
    if (!(flags & kDamaged)) numbers.accepted = true;

    std::string esp;
    put32(esp, spi_of(i));
    put32(esp, static_cast<uint32_t>(sequence));
    for (uint32_t k = 0; k < keys.iv_length; ++k) esp += static_cast<char>(sequence >> 8 * (k % 8));
    esp += plain;
    esp.append(keys.icv_length, '\0');
    ESPJob job = {reinterpret_cast<uint8_t*>(esp.data()), static_cast<uint32_t>(esp.size()),
                  static_cast<uint32_t>(sequence >> 32), &keys, &IPsecDatabase::extra(*a).host};
    library_.seal(&job, 1);
    if (!job.good) fail_esp("not sealed");
    if (flags & kDamaged) esp[esp.size() * bit / 256] ^= static_cast<char>(1 << (bit & 7));

    std::string ip;
    if (kind.mode == IPsecMode::kTunnel6) {
      put32(ip, 6u << 28 | (flags & kCongestion ? 3u << 20 : 0));
      put32(ip, static_cast<uint32_t>(esp.size() + (kind.udp ? 8 : 0)) << 16 | (kind.udp ? 17u : 50u) << 8 | 64);
      for (const uint32_t end : {2u, 1u})
        for (const uint32_t word : {0x20010db8u, 0u, 0u, end}) put32(ip, word);
    } else {
      put32(ip, 0x45000000 | (flags & kCongestion ? 3u << 16 : 0) |
                    static_cast<uint32_t>(20 + (kind.udp ? 8 : 0) + esp.size()));
      put32(ip, 0);
      put32(ip, 0x40000000 | (kind.udp ? 17u : 50u) << 16);
      put32(ip, kind.mode == IPsecMode::kTransport ? 0x0a000001u | static_cast<uint32_t>(i) << 16 : 0xc0000202u);
      put32(ip, 0xc0000201);
      set_sum(ip);
    }
    if (kind.udp) {
      put32(ip, 4500u << 16 | 4500);
      put32(ip, static_cast<uint32_t>(8 + esp.size()) << 16);
    }
    const std::string came = came_of(ip + esp, forbidden);
    if (flags & kProper && forbidden == nullptr && came.empty() && !(flags & kCongestion))
      fail_esp("a proper packet was dropped");
    if (came.empty()) return;
    if (kind.mode == IPsecMode::kTransport) {
      const std::string_view payload = std::string_view(came).substr(20);
      if (payload != std::string_view(plain).substr(0, payload.size())) fail_esp("another payload");
      return;
    }
    // The congestion mark, and the checksum that covers it, are the outer header's.
    const bool v6 = static_cast<uint8_t>(came[0]) >> 4 == 6;
    if (came.size() > plain.size()) fail_esp("more than there was inside");
    for (size_t at = 0; at < came.size(); ++at)
      if (came[at] != plain[at] && !(at == 1 || (!v6 && (at == 10 || at == 11)))) fail_esp("another packet");
    if (v6 ? came.substr(4 + 4, 6) != std::string("\x20\1\xd\xb8\0", 5) + static_cast<char>(i)
           : came[12] != 10 || came[13] != i)
      fail_esp("a packet that no policy lets in");
  }

  /// Pushes a packet, and returns what comes out. \param forbidden what the packet is if nothing must come out
  std::string came_of(const std::string& bytes, const char* forbidden) {
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    if (!p) fail_esp("no buffer");
    Batch batch(p);
    input_->push(0, batch);
    Batch out;
    const int n = output_->pull(0, out, 16);
    if (n == 0) return {};
    if (n > 1 || forbidden != nullptr) fail_esp(std::string("came out: ") + (forbidden ? forbidden : "two packets"));
    const std::string came(reinterpret_cast<const char*>(out[0]->data()), out[0]->length());
    if (!out[0]->has_network_header() || out[0]->network_header_offset() != 0) fail_esp("no network header");
    out[0]->kill();
    return came;
  }

  Runtime runtime_;
  std::unique_ptr<Router> router_;
  Element* input_ = nullptr;
  Element* output_ = nullptr;
  IPsecDatabase* database_ = nullptr;
  ESPLibrary library_;
  /// Numbers belong to the process, as those of associations do.
  struct Numbers {
    uint64_t last;
    bool accepted;
  };
  static inline Numbers numbers_[kAssociations] = {};
  uint32_t baseline_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Not destroyed when the process exits: what it needs might be gone by then.
  static ESPFixture* fixture = nullptr;
  if (size == 0) {
    delete fixture;
    fixture = nullptr;
    return 0;
  }
  if (!fixture) fixture = new ESPFixture;
  fixture->run(data, size);
  return 0;
}
