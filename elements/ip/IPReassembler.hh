#pragma once
#include <string>

#include "elements/ip/reassembler.hh"

namespace headrace {

/// Puts the fragments of IP packets together (RFC 791, 3.2; RFC 815; RFC 1122, 3.3.2).
///
///     IPReassembler([keyword HIMEM, TIMEOUT, MAX_MTU_ANNO])
///
/// Input: IP packets with a network header. Output 0: packets that are not fragments, unchanged, and reassembled
/// packets, with the bytes before the header of the first fragment and its annotations. Output 1 (optional): incomplete
/// packets that received no fragment for TIMEOUT or were evicted, from the first byte received on; missing bytes are
/// zero. Connect it to ICMPError(..., timeexceeded, reassembly), which answers only packets whose first fragment was
/// received. Without output 1 they are dropped and counted. All workers share the fragments.
///
/// Duplicate fragments are dropped. If fragments overlap, the whole packet is dropped, including fragments that arrive
/// later (RFC 5722). First TCP fragments that end before the TCP flags, and fragments that would overwrite the flags,
/// are also dropped (RFC 1858, RFC 3128).
///
/// HIMEM: maximum number of bytes kept; beyond it, old fragments are evicted until a quarter is free. At most an eighth
/// of all packet buffers is used. Default 256 KiB.
/// TIMEOUT: in seconds; default 30.
/// MAX_MTU_ANNO: a two-byte annotation that gets the length of the longest fragment of a complete packet.
///
/// In a hot swap the fragments are transferred to the new IPReassembler.
///
/// Handlers: `dump` (r) counts and incomplete packets, as text.
class IPReassembler final : public Reassembler {
 public:
  static constexpr Ports kPorts{"1/1-2"};

 private:
  Kind look(const Packet& p, Place& place) const override;
  int header_length(const Fragment& model, const Part& part) const override;
  void write_header(uint8_t* header, int length, const Fragment& model, const Part& part) const override;
  int most_bytes() const override { return 65535; }
  std::string name_of(const Key& key, const uint16_t (&ports)[2]) const override;
};

HEADRACE_ELEMENT(IPReassembler)

}  // namespace headrace
