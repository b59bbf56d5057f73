#pragma once
#include <string>

#include "elements/ip/reassembler.hh"

namespace headrace {

/// Puts the fragments of IPv6 packets together (RFC 8200, 4.5).
///
///     IP6Reassembler([keyword HIMEM, TIMEOUT, MAX_MTU_ANNO])
///
/// Input: IPv6 packets with a network header. Output 0: packets that are not fragments, unchanged, and reassembled
/// packets without a fragment header, with the other headers, the bytes before them, and the annotations of the first
/// fragment. Output 1 (optional): incomplete packets that received no fragment for TIMEOUT or were evicted, as one
/// fragment from the first byte received on; missing bytes are zero. Connect it to ICMP6Error(..., timeexceeded,
/// reassembly), which answers only packets whose first fragment was received. Without output 1 they are dropped and
/// counted. All workers share the fragments.
///
/// Duplicate fragments are dropped. If fragments overlap, the whole packet is dropped, including fragments that arrive
/// later (RFC 5722). A fragment that is a whole packet is taken by itself, whatever fragments have its identification
/// (RFC 6946). First fragments that do not have all headers up to that of the upper layer, which is 20 bytes of TCP
/// and 8 of others, are dropped (RFC 7112).
///
/// HIMEM, TIMEOUT, MAX_MTU_ANNO, handlers, and hot swaps: as for IPReassembler.
class IP6Reassembler final : public Reassembler {
 public:
  static constexpr Ports kPorts{"1/1-2"};

 private:
  Kind look(const Packet& p, Place& place) const override;
  int header_length(const Fragment& model, const Part& part) const override;
  void write_header(uint8_t* header, int length, const Fragment& model, const Part& part) const override;
  int most_bytes() const override { return 40 + 65535; }
  std::string name_of(const Key& key, const uint16_t (&ports)[2]) const override;
};

HEADRACE_ELEMENT(IP6Reassembler)

}  // namespace headrace
