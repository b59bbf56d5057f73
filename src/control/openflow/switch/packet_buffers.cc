#include "control/openflow/switch/packet_buffers.hh"

#include <algorithm>
#include <bit>

namespace headrace::openflow {

PacketBuffers::PacketBuffers(const Options& options) : age_limit_(options.age_limit) {
  const uint32_t count = std::clamp<uint32_t>(options.places, 1, kMostPlaces);
  number_bits_ = static_cast<uint32_t>(std::bit_width(count - 1));
  places_.resize(count);
  for (uint32_t number = 0; number < count; ++number) {
    places_[number].id = number;
    places_[number].at = free_.insert(free_.end(), number);
  }
}

PacketBuffers::~PacketBuffers() {
  for (const uint32_t number : used_) places_[number].buffered.packet->kill();
}

uint32_t PacketBuffers::next_id(const Place& place) const {
  const uint32_t use = 1u << number_bits_;
  const uint32_t id = place.id + use;
  return id == kNoBuffer ? id + use : id;
}

uint32_t PacketBuffers::store(Packet* packet, uint32_t in_port, int64_t now) {
  expire(now);
  if (free_.empty()) {
    ++refused_;
    return kNoBuffer;
  }
  Place& place = places_[free_.front()];
  used_.splice(used_.end(), free_, place.at);
  place.id = next_id(place);
  place.given_out = true;
  place.stored = now;
  place.buffered = {packet, in_port};
  return place.id;
}

ErrorCode PacketBuffers::take(uint32_t id, Buffered& buffered) {
  const uint32_t number = id & ((1u << number_bits_) - 1);
  if (number >= places_.size()) return ErrorCode::kRequestBufferUnknown;
  Place& place = places_[number];
  if (!place.given_out || place.id != id) return ErrorCode::kRequestBufferUnknown;
  if (place.buffered.packet == nullptr) return ErrorCode::kRequestBufferEmpty;
  buffered = place.buffered;
  place.buffered = {};
  free_.splice(free_.end(), used_, place.at);
  return ErrorCode::kNone;
}

void PacketBuffers::expire(int64_t now) {
  while (next_expiry() <= now) {
    Place& place = places_[used_.front()];
    place.buffered.packet->kill();
    place.buffered = {};
    place.given_out = false;
    free_.splice(free_.end(), used_, place.at);
    ++expired_;
  }
}

int64_t PacketBuffers::next_expiry() const {
  return used_.empty() ? INT64_MAX : places_[used_.front()].stored + age_limit_;
}

}  // namespace headrace::openflow
