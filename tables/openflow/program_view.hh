#pragma once
/// \file
/// What an OpenFlow switch does with packets, as words that both processors read. Includes no standard header.
///
/// The data of an entry's match (AclMatch::data) is the index of its *program*, an immutable run of words that says what
/// its instructions are. Entries with the same instructions share one. A program consists of
///
/// - a head of 4 words, see ProgramWord, and 4 words of metadata if it has ProgramFlag kWritesMetadata;
/// - the operations of apply-actions, in the order in which they are written;
/// - the operations of write-actions, each type once, in the order in which an action set runs (ONF TS-023, section 5.10).
///
/// A packet obeys the parts in the order meter, apply, clear, write, metadata, goto. A bucket of a group has a program,
/// too: its actions are the apply-actions, in the order of an action set, and it has nothing else.
///
/// Programs and groups are replaced as a whole: their words do not change as long as a reader, or a job of a device, may
/// know their index. Later their place is used again, so they are read by load_shared().

#include <headrace/shader_types.hh>

namespace headrace::openflow {

/// Words of a program's head.
namespace program_word {
inline constexpr uint32_t kFlags = 0;  ///< ProgramFlag; bits 24 to 31: the table of goto
inline constexpr uint32_t kMeter = 1;  ///< place of the meter + 1; 0: none
inline constexpr uint32_t kSizes = 2;  ///< words of apply-actions; from bit 16 on of write-actions
inline constexpr uint32_t kPort = 3;   ///< if kOnlyOutput or kRoutes: the port
inline constexpr uint32_t kHead = 4;
/// If kWritesMetadata, behind the head: value and mask, the upper words first. Value bits are under the mask.
inline constexpr uint32_t kMetadata = 4;
inline constexpr uint32_t kMetadataWords = 4;
}  // namespace program_word

namespace program_flag {
inline constexpr uint32_t kGoto = 1;
inline constexpr uint32_t kWritesMetadata = 2;
inline constexpr uint32_t kClears = 4;  ///< empties the action set before write-actions
/// All that the program does is to output to one port: a real one, LOCAL or IN_PORT. The action set before it is run, too.
inline constexpr uint32_t kOnlyOutput = 8;
/// The program is not simple: a host must run it. A simple one has no meter, and its operations are kSetField of fields
/// that stay_on_device(), kSetNwTtl, kDecNwTtl, those of VLAN tags, kGroup, and kOutput to a real port, LOCAL or
/// IN_PORT. kOutput and kGroup of its apply-actions are the last operation, once, and then it has neither goto nor
/// write-actions. Its write-actions have at most one of them.
inline constexpr uint32_t kNeedsHost = 16;
/// It has a kGroup: the group decides whether a device can do it.
inline constexpr uint32_t kHasGroup = 32;
/// Of entries of 1.3 that match everything with priority 0: packets that it sends to controllers have missed (ONF TS-023,
/// section 5.4).
inline constexpr uint32_t kTableMiss = 64;
/// All that the program does is what routers do: of its apply-actions the last one is an output as of kOnlyOutput, and those
/// before are kDecNwTtl, once at most, and kSetField of Ethernet's addresses. The action set before it is run, too.
inline constexpr uint32_t kRoutes = 128;
}  // namespace program_flag

/// Operations: the low byte of their first word.
enum class Op : uint8_t {
  kOutput,    ///< bits 16 to 31: bytes for the controller at most, 0xffff for all; the second word is the port
  kGroup,     ///< bits 8 to 31: the slot of the group
  kSetField,  ///< bits 8 to 15: OXM number; then, as SetField reads it, pairs of value and mask for words of a key
  kSetNwTtl,  ///< bits 8 to 15: the TTL. Nothing but an IP packet changes.
  kDecNwTtl,  ///< A packet whose TTL is not valid any more leaves for the controller, if that wants it, and is dropped.
  kPushVlan,  ///< bits 16 to 31: the Ethernet type. Copies the outer tag's VLAN and priority; without one both are 0.
  kPopVlan,   ///< nothing without a tag
  kSetVlanVid,  ///< 1.0; bits 16 to 31: the VLAN. Adds a tag if there is none.
  kSetVlanPcp,  ///< 1.0; bits 16 to 31: the priority. Adds a tag if there is none.
  kSetPort,     ///< 1.0; bit 8: the destination's; bits 16 to 31: a port of TCP or UDP, whichever there is
  kPushMpls,    ///< bits 16 to 31: the Ethernet type
  kPopMpls,     ///< bits 16 to 31: the Ethernet type of what follows
  kSetMplsTtl,  ///< bits 8 to 15: the TTL
  kDecMplsTtl,  ///< as kDecNwTtl
  kPushPbb,     ///< bits 16 to 31: the Ethernet type
  kPopPbb,
  kCopyTtlOut,
  kCopyTtlIn,
};

/// An operation's first word, and the second one of kOutput.
HEADRACE_SHADER uint32_t op_word(const uint32_t* op) { return load_shared(op); }
HEADRACE_SHADER uint32_t op_port(const uint32_t* op) { return load_shared(op + 1); }
/// The parts of an operation's first word.
HEADRACE_SHADER Op op_of(uint32_t word) { return static_cast<Op>(word & 0xff); }
HEADRACE_SHADER uint32_t op_byte(uint32_t word) { return word >> 8 & 0xff; }
HEADRACE_SHADER uint32_t op_half(uint32_t word) { return word >> 16; }
HEADRACE_SHADER uint32_t op_slot(uint32_t word) { return word >> 8; }
/// Words of an operation.
HEADRACE_SHADER uint32_t op_words(uint32_t word) {
  switch (op_of(word)) {
    case Op::kOutput:
      return 2;
    case Op::kSetField:
      return 1 + 2 * (word >> 24);
    default:
      return 1;
  }
}

/// A kSetField: `count` words of a key from `first` on change under masks.
struct SetField {
  uint32_t field;  ///< OXM number
  uint32_t first;
  uint32_t count;
  const uint32_t* pairs;

  HEADRACE_SHADER explicit SetField(const uint32_t* op) : pairs(op + 1) {
    const uint32_t word = op_word(op);
    field = op_byte(word);
    first = word >> 16 & 0xff;
    count = word >> 24;
  }
  HEADRACE_SHADER uint32_t value(uint32_t i) const { return load_shared(pairs + 2 * i); }
  HEADRACE_SHADER uint32_t mask(uint32_t i) const { return load_shared(pairs + 2 * i + 1); }
  HEADRACE_SHADER void apply(uint32_t* key) const {
    for (uint32_t i = 0; i < count; ++i) key[first + i] = (key[first + i] & ~mask(i)) | value(i);
  }
};

/// Fields that a simple program may set: addresses and tags of Ethernet, addresses, DSCP, ECN and label of IP, and ports of
/// TCP and UDP, by OXM number. For others a checksum is of another kind, or the place is behind options.
HEADRACE_SHADER bool stays_on_device(uint32_t field) {
  constexpr uint64_t kFields = uint64_t{1} << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 11 | 1 << 12 |
                               1 << 13 | 1 << 14 | 1 << 15 | 1 << 16 | 1 << 26 | 1 << 27 | 1 << 28;
  return field < 64 && (kFields >> field & 1) != 0;
}

/// Operations one behind the other.
class OpRange {
 public:
  HEADRACE_SHADER OpRange(const uint32_t* begin, uint32_t words) : begin_(begin), words_(words) {}
  HEADRACE_SHADER bool empty() const { return words_ == 0; }
  /// Calls `visit(op)` with a pointer to each operation's first word.
  template <typename Visit>
  HEADRACE_SHADER void each(Visit&& visit) const {
    for (uint32_t at = 0; at < words_; at += op_words(op_word(begin_ + at))) visit(begin_ + at);
  }
  HEADRACE_SHADER const uint32_t* begin() const { return begin_; }
  HEADRACE_SHADER const uint32_t* end() const { return begin_ + words_; }

 private:
  const uint32_t* begin_;
  uint32_t words_;
};

/// A program. Valid as long as the entry or group that named it; see OpenFlowView.
class ProgramView {
 public:
  HEADRACE_SHADER explicit ProgramView(const uint32_t* words) : words_(words) {}

  HEADRACE_SHADER uint32_t flags() const { return word(program_word::kFlags); }
  HEADRACE_SHADER bool has(uint32_t flag) const { return (flags() & flag) != 0; }
  HEADRACE_SHADER uint32_t goto_table() const { return flags() >> 24; }
  /// Place of the meter + 1; 0: none.
  HEADRACE_SHADER uint32_t meter() const { return word(program_word::kMeter); }
  HEADRACE_SHADER uint32_t only_port() const { return word(program_word::kPort); }
  /// Changes the metadata of a key, which are two words.
  HEADRACE_SHADER void write_metadata(uint32_t* metadata) const {
    if (!has(program_flag::kWritesMetadata)) return;
    for (uint32_t i = 0; i < 2; ++i)
      metadata[i] = (metadata[i] & ~word(program_word::kMetadata + 2 + i)) | word(program_word::kMetadata + i);
  }
  HEADRACE_SHADER OpRange apply_actions() const { return {ops(), word(program_word::kSizes) & 0xffff}; }
  HEADRACE_SHADER OpRange write_actions() const {
    const uint32_t sizes = word(program_word::kSizes);
    return {ops() + (sizes & 0xffff), sizes >> 16};
  }

 private:
  HEADRACE_SHADER uint32_t word(uint32_t i) const { return load_shared(words_ + i); }
  HEADRACE_SHADER const uint32_t* ops() const {
    return words_ + program_word::kHead + (has(program_flag::kWritesMetadata) ? program_word::kMetadataWords : 0);
  }

  const uint32_t* words_;
};

}  // namespace headrace::openflow
