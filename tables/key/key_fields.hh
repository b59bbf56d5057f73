#pragma once
/// \file
/// The fields that entries match on: one table for text, codecs and documentation.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

/// How a field's values are written.
enum class KeyFieldForm : uint8_t { kDecimal, kHex, kEther, kIp4, kIp6 };

/// A field that must have a value for another one to exist; several values for one field are alternatives.
struct KeyPrerequisite {
  const char* field = nullptr;  ///< null: none
  uint32_t value = 0;
  uint32_t other = 0;  ///< a second value that does as well; 0: none
};

struct KeyField {
  const char* name;     ///< in ovs-ofctl's syntax; the one that is printed
  const char* aliases;  ///< other names, between blanks
  uint8_t oxm;          ///< number in OpenFlow's basic class (ONF TS-012, enum oxm_ofb_match_fields)
  uint16_t place;       ///< first bit of a PacketKey: bit 0 is the highest one of word 0
  uint8_t bits;
  bool maskable;  ///< by OpenFlow 1.3; tables of this tree take any mask
  KeyFieldForm form;
  KeyPrerequisite prerequisites[2];
  /// The bit of `wildcards` in OpenFlow 1.0 (enum ofp_flow_wildcards), for addresses the lowest of six; -1: the field is
  /// not in 1.0. Ports are those of TCP, UDP and ICMP there.
  int8_t wildcard_1_0;

  uint32_t word() const { return place / 32u; }
  uint32_t words() const { return (place + bits - 1u) / 32u - word() + 1; }
};

/// All fields, by OXM number.
std::span<const KeyField> key_fields();
/// A field by its name or an alias; null if there is none.
const KeyField* find_key_field(std::string_view name);

/// A value or mask of a field: up to 128 bits, right-aligned.
struct KeyValue {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const KeyValue&) const = default;
};
/// All ones.
KeyValue key_field_ones(const KeyField& field);
KeyValue get_key_field(std::span<const uint32_t> words, const KeyField& field);
void set_key_field(std::span<uint32_t> words, const KeyField& field, const KeyValue& value);

/// Reads a value in the field's form; other forms of numbers do for numbers.
std::optional<KeyValue> parse_key_value(const KeyField& field, std::string_view text);
/// Addresses take a prefix length as well.
std::optional<KeyValue> parse_key_mask(const KeyField& field, std::string_view text);
std::string unparse_key_value(const KeyField& field, const KeyValue& value);
/// "/24", "/0xff00", or nothing for all ones.
std::string unparse_key_mask(const KeyField& field, const KeyValue& mask);

/// The table of fields as a documentation page has it, in Markdown.
std::string key_fields_page();

}  // namespace headrace
