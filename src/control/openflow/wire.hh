#pragma once
/// \file
/// Readers and writers of messages. Both have the same functions, so that one description of a structure serves both
/// directions: `io.u16(port.number)` reads or writes.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "control/openflow/definitions.hh"
#include "control/openflow/errors.hh"

namespace headrace::openflow {

inline constexpr size_t kHeaderBytes = 8;
inline constexpr size_t kMaxMessageBytes = 0xffff;

/// What decode() does with things that a switch must refuse.
enum class Reading : uint8_t {
  kStrict,     ///< an error, as the specification names it
  kAsWritten,  ///< keeps them as bytes where the structure allows it, for programs that only show messages
};

/// Reads within bounds. The first failure sticks; what is read after it is 0.
class Reader {
 public:
  static constexpr bool kReads = true;

  Reader(std::span<const uint8_t> bytes, Version version, Reading reading)
      : version(version), reading(reading), bytes_(bytes), end_(bytes.size()) {}

  const Version version;
  const Reading reading;

  bool is_1_0() const { return version == Version::k1_0; }
  bool strict() const { return reading == Reading::kStrict; }
  ErrorCode error() const { return error_; }
  bool ok() const { return error_ == ErrorCode::kNone; }
  void fail(ErrorCode code) {
    if (ok()) error_ = code;
    at_ = end_;
  }
  /// A failure unless the message is only to be shown.
  void object(ErrorCode code) {
    if (strict()) fail(code);
  }
  /// What a structure that is too short or too long means.
  ErrorCode bad_length() const { return bad_length_; }

  size_t at() const { return at_; }
  size_t left() const { return end_ - at_; }

  uint64_t number(size_t size) {
    if (left() < size) {
      fail(bad_length_);
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes_[at_ + i];
    at_ += size;
    return value;
  }
  /// Looks ahead; 0 past the end.
  uint16_t peek_u16(size_t offset) const {
    if (left() < offset + 2) return 0;
    return static_cast<uint16_t>(bytes_[at_ + offset] << 8 | bytes_[at_ + offset + 1]);
  }
  uint32_t peek_u32(size_t offset) const { return uint32_t{peek_u16(offset)} << 16 | peek_u16(offset + 2); }

  template <typename T>
  void u8(T& value) {
    value = static_cast<T>(number(1));
  }
  template <typename T>
  void u16(T& value) {
    value = static_cast<T>(number(2));
  }
  template <typename T>
  void u32(T& value) {
    value = static_cast<T>(number(4));
  }
  void u64(uint64_t& value) { value = number(8); }
  void pad(size_t size) { (void)take(size); }

  template <size_t N>
  void bytes(std::array<uint8_t, N>& value) {
    const auto from = take(N);
    if (from.size() == N) std::copy(from.begin(), from.end(), value.begin());
  }
  /// Text in a field of fixed size, filled up with zeros.
  void text(std::string& value, size_t size) {
    const auto from = take(size);
    value.assign(from.begin(), std::find(from.begin(), from.end(), 0));
  }
  /// All that is left.
  void rest(std::vector<uint8_t>& value) {
    const auto from = take(left());
    value.assign(from.begin(), from.end());
  }
  /// The next bytes as they are; none if there are not so many.
  std::span<const uint8_t> take(size_t size) {
    if (left() < size) {
      fail(bad_length_);
      return {};
    }
    at_ += size;
    return bytes_.subspan(at_ - size, size);
  }

  /// A port's number: 16 bits in 1.0.
  void port(uint32_t& number) {
    if (!is_1_0()) return u32(number);
    uint16_t narrow = 0;
    u16(narrow);
    number = narrow >= port::kMax10 ? 0xffff0000u | narrow : narrow;
  }
  /// 1.0 pads port numbers to as many bytes.
  void port(uint32_t& number, size_t pad_1_0, size_t pad_1_3) {
    port(number);
    pad(is_1_0() ? pad_1_0 : pad_1_3);
  }
  void flags32(std::span<const Definition> rows, uint64_t& flags) {
    flags = flags_from_wire(rows, version, static_cast<uint32_t>(number(4)));
  }
  void flags16(std::span<const Definition> rows, uint64_t& flags) {
    flags = flags_from_wire(rows, version, static_cast<uint32_t>(number(2)));
  }
  /// The 16 bits of a length, which sized() has checked.
  void length() { number(2); }

  /// A structure whose length, from its beginning, is a 16-bit number `length_at` bytes behind it. `body` must read all
  /// of it. A length that does not fit, or is no multiple of `multiple`, is `bad`; so is what is short inside of it.
  template <typename Body>
  void sized(size_t length_at, size_t multiple, ErrorCode bad, const Body& body) {
    const size_t size = peek_u16(length_at);
    if (left() < length_at + 2 || size < length_at + 2 || size > left() || size % multiple != 0) return fail(bad);
    within(size, bad, body);
  }
  /// The same with a size that is known.
  template <typename Body>
  void within(size_t size, ErrorCode bad, const Body& body) {
    if (size > left()) return fail(bad);
    const size_t end = end_;
    const ErrorCode outer = bad_length_;
    end_ = at_ + size;
    bad_length_ = bad;
    body();
    if (ok() && at_ != end_) fail(bad);
    end_ = end;
    bad_length_ = outer;
    if (!ok()) at_ = end_;
  }
  /// Elements up to the end.
  template <typename List, typename Element>
  void list(List& elements, const Element& element) {
    while (left() > 0 && ok()) {
      const size_t before = at_;
      element(elements.emplace_back());
      if (ok() && at_ == before) fail(bad_length_);
    }
    if (!ok()) elements.clear();
  }
  /// A list of a multipart message, which may go on in the next one.
  template <typename List, typename Element>
  void parts(List& elements, const Element& element) {
    list(elements, element);
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
  size_t end_;
  ErrorCode error_ = ErrorCode::kNone;
  ErrorCode bad_length_ = ErrorCode::kRequestBadLen;
};

/// Appends to a buffer. `exact()` tells whether the version could express everything.
class Writer {
 public:
  static constexpr bool kReads = false;

  Writer(std::vector<uint8_t>& out, Version version) : version(version), out_(out), start_(out.size()) {}

  const Version version;

  bool is_1_0() const { return version == Version::k1_0; }
  bool exact() const { return exact_; }
  void inexact() { exact_ = false; }
  /// The version has no such message.
  void refuse() { refused_ = true; }
  bool refused() const { return refused_; }

  size_t at() const { return out_.size(); }

  void number(uint64_t value, size_t size) {
    for (size_t i = size; i-- > 0;) out_.push_back(static_cast<uint8_t>(value >> 8 * i));
  }
  void put_u16(size_t at, size_t value) {
    out_[at] = static_cast<uint8_t>(value >> 8);
    out_[at + 1] = static_cast<uint8_t>(value);
  }
  template <typename T>
  void u8(T value) {
    number(static_cast<uint64_t>(value), 1);
  }
  template <typename T>
  void u16(T value) {
    number(static_cast<uint64_t>(value), 2);
  }
  template <typename T>
  void u32(T value) {
    number(static_cast<uint64_t>(value), 4);
  }
  void u64(uint64_t value) { number(value, 8); }
  void pad(size_t size) { out_.insert(out_.end(), size, 0); }

  void bytes(std::span<const uint8_t> value) { out_.insert(out_.end(), value.begin(), value.end()); }
  void text(const std::string& value, size_t size) {
    const size_t used = std::min(value.size(), size);
    out_.insert(out_.end(), value.begin(), value.begin() + static_cast<std::ptrdiff_t>(used));
    pad(size - used);
  }
  void rest(std::span<const uint8_t> value) { bytes(value); }

  void port(uint32_t value) {
    if (!is_1_0()) return number(value, 4);
    if (value >= port::kMax10 && value < (0xffff0000u | port::kMax10)) {
      inexact();
      value = port::kAny;
    }
    number(value & 0xffff, 2);
  }
  void port(uint32_t value, size_t pad_1_0, size_t pad_1_3) {
    port(value);
    pad(is_1_0() ? pad_1_0 : pad_1_3);
  }
  void flags32(std::span<const Definition> rows, uint64_t flags) { number(flags_to_wire(rows, version, flags), 4); }
  void flags16(std::span<const Definition> rows, uint64_t flags) { number(flags_to_wire(rows, version, flags), 2); }
  void length() { pad(2); }

  template <typename Body>
  void sized(size_t length_at, size_t /*multiple*/, ErrorCode /*bad*/, const Body& body) {
    const size_t start = at();
    body();
    put_u16(start + length_at, at() - start);
    if (at() - start > kMaxMessageBytes) too_long_ = true;
  }
  template <typename List, typename Element>
  void list(const List& elements, const Element& element) {
    for (const auto& e : elements) element(e);
  }
  /// Remembers where parts end, for messages that must be split. Leaves out parts that fit no message.
  template <typename List, typename Element>
  void parts(const List& elements, const Element& element) {
    parts_at_ = at();
    for (const auto& e : elements) {
      const size_t before = at();
      too_long_ = false;
      element(e);
      if (too_long_ || parts_at_ - start_ + at() - before > kMaxMessageBytes) {
        out_.resize(before);
        inexact();
        continue;
      }
      part_ends_.push_back(at());
    }
  }
  /// Where the first part begins, and where each ends.
  size_t parts_at() const { return parts_at_; }
  const std::vector<size_t>& part_ends() const { return part_ends_; }

 private:
  std::vector<uint8_t>& out_;
  const size_t start_;
  size_t parts_at_ = 0;
  std::vector<size_t> part_ends_;
  bool refused_ = false;
  bool exact_ = true;
  bool too_long_ = false;
};

}  // namespace headrace::openflow
