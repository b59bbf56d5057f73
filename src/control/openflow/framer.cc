#include "control/openflow/framer.hh"

namespace headrace::openflow {

void Framer::add(std::span<const uint8_t> bytes) {
  if (broken_) return;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(at_));
  at_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::span<const uint8_t> Framer::next() {
  const std::span<const uint8_t> left = std::span(buffer_).subspan(at_);
  if (broken_ || left.size() < kHeaderBytes) return {};
  const size_t length = read_header(left).length;
  if (length < kHeaderBytes) {
    broken_ = true;
    return {};
  }
  if (left.size() < length) return {};
  at_ += length;
  return left.first(length);
}

std::span<const uint8_t> Framer::offending() const {
  if (!broken_) return {};
  return std::span(buffer_).subspan(at_, kHeaderBytes);
}

}  // namespace headrace::openflow
