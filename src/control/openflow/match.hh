#pragma once
/// \file
/// Matches of both versions as a KeyMatch: OXM fields in 1.3, struct ofp_match with wildcards in 1.0.

#include <cstdint>
#include <span>
#include <vector>

#include "control/openflow/wire.hh"
#include "tables/key/key_fields.hh"
#include "tables/key/key_match.hh"

namespace headrace::openflow {

/// OXM numbers of fields that the codec treats in a special way. They are places in key_fields(), too.
namespace oxm {
inline constexpr uint8_t kInPort = 0, kInPhyPort = 1, kMetadata = 2, kEtherDst = 3, kEtherSrc = 4, kEtherType = 5,
                         kVlanVid = 6, kVlanPcp = 7, kDscp = 8, kIpProtocol = 10, kTcpSource = 13, kTcpDestination = 14,
                         kUdpSource = 15, kUdpDestination = 16, kArpOp = 21, kMplsLabel = 34, kPbbIsid = 37;
}

struct Match {
  KeyMatch key;
  /// No wildcard bit of 1.0 is set, not even those of fields that such packets do not have. In 1.0 these entries come
  /// before all others, whatever their priority.
  bool exact_1_0 = false;
  /// Reading::kAsWritten only: the fields as they were written, in `written_in`, if `key` would be written in another way.
  std::vector<uint8_t> as_written;
  Version written_in = Version::k1_3;

  bool operator==(const Match&) const = default;
};

/// A field in OXM form (ONF TS-023, section 7.2.3.2).
struct OxmField {
  const KeyField* field = nullptr;
  bool has_mask = false;
  KeyValue value;
  KeyValue mask;
};

/// The 32 bits in front of a field's value.
uint32_t oxm_header(const KeyField& field, bool has_mask);
/// Bytes of a field's value.
size_t oxm_bytes(const KeyField& field);

/// Reads one field and its header. Errors: BAD_MATCH with BAD_LEN, BAD_FIELD, BAD_VALUE, BAD_MASK or BAD_WILDCARDS.
ErrorCode read_oxm(std::span<const uint8_t> bytes, OxmField& field);
/// Bytes of the field that begins with `bytes`, at least 4; 0 if they are not all there.
size_t oxm_size(std::span<const uint8_t> bytes);
void write_oxm(Writer& io, const KeyField& field, const KeyValue& value, const KeyValue* mask);

/// Whether the match has what a field requires.
bool requirements_met(const KeyMatch& match, const KeyField& field);

/// Reads struct ofp_match with its padding. Errors: BAD_MATCH with all its codes. In 1.0 there are none: fields that the
/// types do not have are left out, as other switches do. With them, 1.0 has DSCP, protocol and ports of IPv6 and the
/// operation and addresses of RARP, too: its text speaks of IPv4 and ARP, but controllers rely on it.
void match(Reader& io, Match& match);
/// Writes fields in the order of their numbers, without masks of all ones. What the version cannot say is left out, so
/// that the match becomes wider, and clears `io.exact()`.
void match(Writer& io, const Match& match);

}  // namespace headrace::openflow
