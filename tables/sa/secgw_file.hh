#pragma once
/// \file
/// Configuration files of DPDK's example ipsec-secgw.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/addresses.hh"
#include "headrace/error.hh"
#include "tables/sa/association_config.hh"
#include "tables/sa/security_policy.hh"

namespace headrace {

/// What a file says, in the order of its lines.
struct SecgwConfig {
  struct PolicyLine {
    Policy policy;
    int line = 0;
  };
  struct AssociationLine {
    AssociationConfig config;
    int line = 0;
  };
  struct Route {
    bool v6 = false;
    Ip6Prefix prefix;  // IPv4-mapped unless v6
    uint32_t port = 0;
    int line = 0;
  };
  struct Neighbor {
    uint32_t port = 0;
    EtherAddress address;
    int line = 0;
  };

  std::vector<PolicyLine> policies;
  std::vector<AssociationLine> associations;
  std::vector<Route> routes;
  std::vector<Neighbor> neighbors;
};

/// Reads a file in the format of DPDK 22.11's ipsec-secgw, as its guide describes it ("Sample Applications", "IPsec Security
/// Gateway", "Configuration File Syntax"), and checks it with check_secgw(). The file may be compressed.
///
///     sp ipv4|ipv6 in|out esp protect SPI|bypass|discard [pri N] [src PREFIX] [dst PREFIX]
///        [proto NUMBER:255] [sport FIRST:LAST] [dport FIRST:LAST]
///     sa in|out SPI
///        cipher_algo null|aes-128-cbc|aes-128-ctr|aes-256-ctr [cipher_key BYTES] auth_algo null|sha1-hmac|sha256-hmac
///        [auth_key BYTES], or aead_algo aes-128-gcm|aes-256-gcm aead_key BYTES
///        mode ipv4-tunnel|ipv6-tunnel src ADDRESS dst ADDRESS, or mode transport
///        [esn FIRST] [udp-encap]
///        [replay-window PACKETS] [encap-port SOURCE:DESTINATION] [dscp copy|0-63] [df copy|set|clear]
///        [most-packets N] [most-bytes N]
///     rt ipv4|ipv6 dst PREFIX [port N]
///     neigh port N ADDRESS
///
/// `#` starts a comment; a backslash at the end joins a line with the next one. The options of an `sa` may stand in any
/// order, but a key follows its algorithm. BYTES are hexadecimal and joined by colons; the last 4 of an aes-ctr or
/// aes-gcm key are the nonce of RFC 3686 or the salt of RFC 4106. `esn` turns extended sequence numbers on and says
/// the first one. Numbers are decimal, SPIs also hexadecimal with 0x.
///
/// The options of the third line of an `sa` are ours: the anti-replay window (64), the UDP ports of `udp-encap`
/// (4500:4500), the DSCP and the DF bit of outer headers (copy), and the lifetime in packets or bytes (none).
///
/// What differs from ipsec-secgw: a policy without `sport` or `dport` is about all ports, and not about port 0. `proto`
/// is NUMBER:255, that is, DPDK's value and mask, or NUMBER:NUMBER as its guide has it, or 0:0 for all; other masks are
/// refused. A prefix needs its length. Policies with one priority are asked in the order of the file.
///
/// `type` other than no-offload, `port_id`, `fallback`, `flow-direction`, `mss`, `reassembly_en`, `telemetry` and lines
/// with `flow` configure network cards of ipsec-secgw; they are ignored with a warning, `type no-offload`, `port_id` and
/// `telemetry` without one.
///
/// Errors are "FILE:LINE: 'WORD': reason" for each mistake, but after 50 they are only counted. They never contain
/// keys. Returns false if there was an error; what had none is in `config`.
bool read_secgw(const std::string& path, SecgwConfig& config, Errors& errors);

/// Reads a text as if it was that file, without check_secgw(): a file, or the argument of a handler.
bool read_secgw_text(std::string_view text, const std::string& path, SecgwConfig& config, Errors& errors);

/// Checks what only a whole file tells: that the association of each policy is there, and no SPI is twice in a direction,
/// or, inbound, for one destination. Warns of SPIs that are reserved.
bool check_secgw(const SecgwConfig& config, const std::string& path, Errors& errors);

}  // namespace headrace
