#include "control/openflow/match.hh"

#include <bit>

namespace headrace::openflow {

namespace {

constexpr uint16_t kOxmBasic = 0x8000;
constexpr uint16_t kOxmMatch = 1;  // OFPMT_OXM; type 0 is that of 1.1
constexpr size_t kMatch10Bytes = 40;
constexpr uint32_t kTagPresent = 0x1000, kWholeVid = 0x1fff, kNoTag10 = 0xffff;
constexpr uint32_t kAllWildcards10 = (1u << 22) - 1;
constexpr uint32_t kWildcardSource = 8, kWildcardDestination = 14, kPrefixBits = 0x3f;

struct Requirement {
  const KeyField* field = nullptr;
  uint32_t value = 0;
  uint32_t other = 0;
};

/// Requirements of all fields with pointers for names: thousands of entries a second are checked.
const std::array<std::array<Requirement, 2>, 64>& requirements() {
  static const auto all = [] {
    std::array<std::array<Requirement, 2>, 64> rows{};
    for (const KeyField& field : key_fields())
      for (size_t i = 0; i < 2; ++i)
        if (const KeyPrerequisite& p = field.prerequisites[i]; p.field != nullptr)
          rows[field.oxm][i] = {find_key_field(p.field), p.value, p.other};
    return rows;
  }();
  return all;
}

const KeyField* field_numbered(unsigned oxm) {
  const auto fields = key_fields();
  return oxm < fields.size() ? &fields[oxm] : nullptr;
}

bool is_zero(const KeyValue& value) { return value == KeyValue{}; }
KeyValue both_of(const KeyValue& a, const KeyValue& b) { return {a.high & b.high, a.low & b.low}; }
KeyValue without(const KeyValue& a, const KeyValue& b) { return {a.high & ~b.high, a.low & ~b.low}; }

KeyValue number_at(std::span<const uint8_t> bytes) {
  KeyValue value;
  for (const uint8_t byte : bytes) {
    value.high = value.high << 8 | value.low >> 56;
    value.low = value.low << 8 | byte;
  }
  return value;
}

void put_field(KeyMatch& match, const KeyField& field, const KeyValue& value, const KeyValue& mask) {
  set_key_field(match.value, field, value);
  set_key_field(match.mask, field, mask);
}

/// The bits that a version must express: those that are matched, but for the priority of a packet without a tag.
std::array<uint32_t, key_word::kCount> bits_of(const KeyMatch& match) {
  std::array<uint32_t, key_word::kCount> bits = match.mask;
  const auto fields = key_fields();
  const bool no_tag = get_key_field(match.mask, fields[oxm::kVlanVid]).low == kWholeVid &&
                      get_key_field(match.value, fields[oxm::kVlanVid]).low == 0 &&
                      get_key_field(match.value, fields[oxm::kVlanPcp]).low == 0;
  if (no_tag) set_key_field(bits, fields[oxm::kVlanPcp], {});
  return bits;
}

/// The fields of ofp_match in 1.3, between its length and its padding.
ErrorCode read_oxm_fields(std::span<const uint8_t> bytes, KeyMatch& match) {
  uint64_t present = 0;
  while (!bytes.empty()) {
    OxmField one;
    if (const ErrorCode error = read_oxm(bytes, one); error != ErrorCode::kNone) return error;
    bytes = bytes.subspan(oxm_size(bytes));
    if ((present >> one.field->oxm & 1) != 0) return ErrorCode::kMatchDupField;
    present |= uint64_t{1} << one.field->oxm;
    // Fields that no packet has together share bits; the requirements, checked below, keep them apart.
    if (!is_zero(one.mask)) put_field(match, *one.field, one.value, one.mask);
  }
  for (; present != 0; present &= present - 1)
    if (!requirements_met(match, *field_numbered(static_cast<unsigned>(std::countr_zero(present)))))
      return ErrorCode::kMatchBadPrereq;
  return ErrorCode::kNone;
}

void write_oxm_fields(Writer& io, const KeyMatch& match) {
  std::array<uint32_t, key_word::kCount> left = bits_of(match);
  for (const KeyField& field : key_fields()) {
    const KeyValue mask = get_key_field(left, field);
    if (is_zero(mask) || !requirements_met(match, field)) continue;
    write_oxm(io, field, get_key_field(match.value, field), mask == key_field_ones(field) ? nullptr : &mask);
    set_key_field(left, field, {});
  }
  if (left != std::array<uint32_t, key_word::kCount>{} || match.low != 0 || match.high != 0xffffffff) io.inexact();
}

/// struct ofp_match of 1.0; values by the numbers of their wildcards.
struct Match10 {
  uint32_t wildcards = kAllWildcards10;
  std::array<KeyValue, 22> values{};
};

/// Both directions; `number(wildcard, size)` is one value.
template <typename Io, typename Number>
void match_10_fields(Io& io, const Number& number) {
  number(0, 2);
  number(2, 6);
  number(3, 6);
  number(1, 2);
  number(20, 1);
  io.pad(1);
  number(4, 2);
  number(21, 1);
  number(5, 1);
  io.pad(2);
  number(8, 4);
  number(14, 4);
  number(6, 2);
  number(7, 2);
}

/// The wildcards of an address: how many bits are ignored.
uint32_t ignored_bits(uint32_t wildcards, uint32_t shift) { return wildcards >> shift & kPrefixBits; }

void add_vlan_10(const Match10& from, KeyMatch& match) {
  const auto fields = key_fields();
  const bool any_vid = (from.wildcards >> 1 & 1) != 0, any_pcp = (from.wildcards >> 20 & 1) != 0;
  const uint64_t vid = from.values[1].low;
  if (!any_vid && vid == kNoTag10) return put_field(match, fields[oxm::kVlanVid], {0, 0}, {0, kWholeVid});
  if (!any_vid) put_field(match, fields[oxm::kVlanVid], {0, kTagPresent | (vid & 0xfff)}, {0, kWholeVid});
  if (any_pcp) return;
  if (any_vid) put_field(match, fields[oxm::kVlanVid], {0, kTagPresent}, {0, kTagPresent});
  put_field(match, fields[oxm::kVlanPcp], {0, from.values[20].low & 7}, {0, 7});
}

KeyMatch from_match_10(const Match10& from) {
  KeyMatch match;
  add_vlan_10(from, match);
  for (const KeyField& field : key_fields()) {
    if (field.wildcard_1_0 < 0 || field.oxm == oxm::kVlanVid || field.oxm == oxm::kVlanPcp) continue;
    if (!requirements_met(match, field)) continue;
    const auto wildcard = static_cast<uint32_t>(int{field.wildcard_1_0});
    KeyValue mask = key_field_ones(field), value = from.values[wildcard];
    if (wildcard == kWildcardSource || wildcard == kWildcardDestination) {
      const uint32_t ignored = ignored_bits(from.wildcards, wildcard);
      mask.low = ignored >= 32 ? 0 : mask.low >> ignored << ignored;
    } else if ((from.wildcards >> wildcard & 1) != 0) {
      mask = {};
    }
    if (is_zero(mask)) continue;
    if (field.oxm == oxm::kInPort && value.low >= port::kMax10) value.low |= 0xffff0000;
    if (field.oxm == oxm::kDscp) value.low >>= 2;
    put_field(match, field, both_of(value, mask), mask);
  }
  return match;
}

/// False if 1.0 has no such value.
bool put_value_10(Match10& to, const KeyField& field, const KeyValue& value, const KeyValue& mask) {
  const auto wildcard = static_cast<uint32_t>(int{field.wildcard_1_0});
  KeyValue put = value;
  if (wildcard == kWildcardSource || wildcard == kWildcardDestination) {
    const auto ignored = static_cast<uint32_t>(std::countr_zero(mask.low));
    if (mask.low != (0xffffffffu >> ignored << ignored)) return false;
    to.wildcards = (to.wildcards & ~(kPrefixBits << wildcard)) | ignored << wildcard;
    to.values[wildcard] = put;
    return true;
  }
  if (field.oxm == oxm::kVlanVid) {
    // A tag of any VLAN is what a priority without a VLAN says.
    if (mask.low == kTagPresent && value.low == kTagPresent) return true;
    if (mask.low != kWholeVid || (value.low != 0 && (value.low & kTagPresent) == 0)) return false;
    put.low = value.low == 0 ? kNoTag10 : value.low & 0xfff;
  } else if (mask != key_field_ones(field)) {
    return false;
  }
  if (field.oxm == oxm::kInPort) {
    if (value.low >= port::kMax10 && value.low < (0xffff0000u | port::kMax10)) return false;
    put.low &= 0xffff;
  }
  if (field.oxm == oxm::kArpOp && value.low > 0xff) return false;
  if (field.oxm == oxm::kDscp) put.low <<= 2;
  to.wildcards &= ~(1u << wildcard);
  to.values[wildcard] = put;
  return true;
}

/// Clears `exact` if 1.0 cannot say it all.
Match10 to_match_10(const KeyMatch& match, bool& exact) {
  Match10 to;
  std::array<uint32_t, key_word::kCount> left = bits_of(match);
  for (const KeyField& field : key_fields()) {
    const KeyValue mask = get_key_field(left, field);
    if (field.wildcard_1_0 < 0 || is_zero(mask) || !requirements_met(match, field)) continue;
    if (put_value_10(to, field, get_key_field(match.value, field), mask)) set_key_field(left, field, {});
  }
  const KeyField& vid = key_fields()[oxm::kVlanVid];
  const bool any_tag = get_key_field(match.mask, vid).low == kTagPresent;
  if (any_tag && (to.wildcards >> 20 & 1) != 0) exact = false;
  if (left != std::array<uint32_t, key_word::kCount>{} || match.low != 0 || match.high != 0xffffffff) exact = false;
  return to;
}

void write_match_10(Writer& io, const Match& match) {
  bool exact = true;
  const Match10 to = to_match_10(match.key, exact);
  if (!exact) io.inexact();
  io.u32(match.exact_1_0 ? 0 : to.wildcards);
  match_10_fields(io, [&](uint32_t wildcard, size_t size) { io.number(to.values[wildcard].low, size); });
}

void read_match_10(Reader& io, Match& match) {
  Match10 from;
  io.u32(from.wildcards);
  match_10_fields(io, [&](uint32_t wildcard, size_t size) { from.values[wildcard].low = io.number(size); });
  match.exact_1_0 = io.ok() && (from.wildcards & kAllWildcards10) == 0;
  match.key = from_match_10(from);
}

/// Keeps the bytes if the match would not be written in the same way.
void keep_as_written(std::span<const uint8_t> bytes, bool readable, Version version, Match& match) {
  match.written_in = Version::k1_3;
  std::vector<uint8_t> again;
  Writer writer(again, version);
  if (version == Version::k1_0) {
    write_match_10(writer, match);
  } else if (readable) {
    write_oxm_fields(writer, match.key);
  }
  if (readable && std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) return;
  match.as_written.assign(bytes.begin(), bytes.end());
  match.written_in = version;
}

}  // namespace

uint32_t oxm_header(const KeyField& field, bool has_mask) {
  const auto size = static_cast<uint32_t>(oxm_bytes(field));
  return uint32_t{kOxmBasic} << 16 | uint32_t{field.oxm} << 9 | (has_mask ? 0x100u | 2 * size : size);
}

// Labels of 20 bits have 4 bytes, service identifiers of 24 have 3.
size_t oxm_bytes(const KeyField& field) { return field.bits == 20 ? 4 : (field.bits + 7u) / 8; }

size_t oxm_size(std::span<const uint8_t> bytes) {
  if (bytes.size() < 4) return 0;
  const size_t size = 4u + bytes[3];
  return size <= bytes.size() ? size : 0;
}

ErrorCode read_oxm(std::span<const uint8_t> bytes, OxmField& one) {
  const size_t size = oxm_size(bytes);
  if (size == 0) return ErrorCode::kMatchBadLen;
  const KeyField* const field = field_numbered(bytes[2] >> 1);
  if ((bytes[0] << 8 | bytes[1]) != kOxmBasic || field == nullptr) return ErrorCode::kMatchBadField;
  one.field = field;
  one.has_mask = (bytes[2] & 1) != 0;
  const size_t value_bytes = oxm_bytes(*field);
  if (size != 4 + value_bytes * (one.has_mask ? 2 : 1)) return ErrorCode::kMatchBadLen;
  const KeyValue ones = key_field_ones(*field);
  one.value = number_at(bytes.subspan(4, value_bytes));
  one.mask = one.has_mask ? number_at(bytes.subspan(4 + value_bytes, value_bytes)) : ones;
  if (!is_zero(without(one.value, ones))) return ErrorCode::kMatchBadValue;
  if (!is_zero(without(one.mask, ones))) return ErrorCode::kMatchBadMask;
  if (!is_zero(without(one.value, one.mask))) return ErrorCode::kMatchBadWildcards;
  if (!field->maskable && one.mask != ones && !is_zero(one.mask)) return ErrorCode::kMatchBadMask;
  return ErrorCode::kNone;
}

void write_oxm(Writer& io, const KeyField& field, const KeyValue& value, const KeyValue* mask) {
  io.u32(oxm_header(field, mask != nullptr));
  const size_t size = oxm_bytes(field);
  const auto put = [&](const KeyValue& v) {
    if (size == 16) io.u64(v.high);
    io.number(v.low, std::min<size_t>(size, 8));
  };
  put(value);
  if (mask != nullptr) put(*mask);
}

bool requirements_met(const KeyMatch& match, const KeyField& field) {
  for (const Requirement& r : requirements()[field.oxm]) {
    if (r.field == nullptr) continue;
    const KeyValue mask = get_key_field(match.mask, *r.field), value = get_key_field(match.value, *r.field);
    if (r.field->oxm == oxm::kVlanVid) {
      if ((mask.low & value.low & kTagPresent) == 0) return false;
      continue;
    }
    if (mask != key_field_ones(*r.field)) return false;
    if (r.value == 0) continue;
    if (value.low != r.value && (r.other == 0 || value.low != r.other)) return false;
  }
  return true;
}

void match(Reader& io, Match& match) {
  if (io.is_1_0()) {
    Reader ahead = io;
    read_match_10(io, match);
    if (io.ok() && !io.strict()) keep_as_written(ahead.take(kMatch10Bytes), true, io.version, match);
    return;
  }
  const uint16_t type = io.peek_u16(0), length = io.peek_u16(2);
  if (io.left() < 4) return io.fail(io.bad_length());
  if (type != kOxmMatch) return io.fail(ErrorCode::kMatchBadType);
  if (length < 4 || (length + 7u) / 8 * 8 > io.left()) return io.fail(ErrorCode::kMatchBadLen);
  io.pad(4);
  const auto bytes = io.take(length - 4u);
  io.pad((length + 7u) / 8 * 8 - length);
  const ErrorCode error = read_oxm_fields(bytes, match.key);
  if (error != ErrorCode::kNone) io.object(error);
  if (io.ok() && !io.strict()) {
    if (error != ErrorCode::kNone) match.key = {};
    keep_as_written(bytes, error == ErrorCode::kNone, io.version, match);
  }
}

void match(Writer& io, const Match& match) {
  const bool as_written = !match.as_written.empty() && match.written_in == io.version;
  if (io.is_1_0()) return as_written ? io.bytes(match.as_written) : write_match_10(io, match);
  const size_t start = io.at();
  io.u16(kOxmMatch);
  io.pad(2);
  if (as_written) {
    io.bytes(match.as_written);
  } else {
    write_oxm_fields(io, match.key);
  }
  const size_t length = io.at() - start;
  io.put_u16(start + 2, length);
  io.pad((length + 7) / 8 * 8 - length);
}

}  // namespace headrace::openflow
