#pragma once
/// \file
/// Packets that wait in the switch for what a controller says (ONF TS-023, sections 6.1.2 and 7.4.1).

#include <cstdint>
#include <list>
#include <vector>

#include "control/openflow/definitions.hh"
#include "control/openflow/errors.hh"
#include "headrace/packet.hh"

namespace headrace::openflow {

/// The packets behind buffer ids. Each can be taken once, by any controller. Control thread only.
///
/// An id is the number of a place and, above it, how often the place was used before, so that an id means the same packet
/// until the place was used 2^(32 - b) times, b bits being the number of places. A place is used again when its packet
/// was taken or is older than the age limit. While no place is free, packets are not stored and go to controllers whole.
class PacketBuffers {
 public:
  struct Options {
    uint32_t places = 256;              ///< from 1 to kMostPlaces
    int64_t age_limit = 5'000'000'000;  ///< nanoseconds for which a packet waits at least
  };
  static constexpr uint32_t kMostPlaces = 1u << 16;

  /// A packet, and the port that it came by.
  struct Buffered {
    Packet* packet = nullptr;
    uint32_t in_port = 0;
  };

  explicit PacketBuffers(const Options& options);
  ~PacketBuffers();
  PacketBuffers(const PacketBuffers&) = delete;
  PacketBuffers& operator=(const PacketBuffers&) = delete;

  /// Keeps a packet and returns its id; or kNoBuffer, and the packet stays the caller's. \param now in nanoseconds
  uint32_t store(Packet* packet, uint32_t in_port, int64_t now);
  /// Gives the packet of an id to the caller. Errors: BAD_REQUEST/BUFFER_EMPTY if somebody has taken it,
  /// BAD_REQUEST/BUFFER_UNKNOWN if the id was never given out, or has expired.
  ErrorCode take(uint32_t id, Buffered& buffered);
  /// Gives packets older than the age limit back to the pool, which needs their memory.
  void expire(int64_t now);
  /// When expire() has something to do next; INT64_MAX: never.
  int64_t next_expiry() const;

  /// As messages give it (`n_buffers`).
  uint32_t places() const { return static_cast<uint32_t>(places_.size()); }
  uint32_t waiting() const { return static_cast<uint32_t>(used_.size()); }
  /// Packets that nobody has asked for in time, and those for which no place was free.
  uint64_t expired() const { return expired_; }
  uint64_t refused() const { return refused_; }

 private:
  struct Place {
    Buffered buffered;  // no packet: taken, or never stored
    int64_t stored = 0;
    uint32_t id = 0;                   // the last one; the place's number if there was none
    bool given_out = false;            // whether the id names what is, or was, here
    std::list<uint32_t>::iterator at;  // in free_ or used_
  };

  uint32_t next_id(const Place& place) const;

  const int64_t age_limit_;
  uint32_t number_bits_ = 0;
  std::vector<Place> places_;
  std::list<uint32_t> free_;  // the longest free first, so that BUFFER_EMPTY is known as long as possible
  std::list<uint32_t> used_;  // the oldest first
  uint64_t expired_ = 0, refused_ = 0;
};

}  // namespace headrace::openflow
