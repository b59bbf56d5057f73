#pragma once
/// \file
/// What the tables of an OpenFlow switch need from the rest of the switch.

#include <cstdint>
#include <headrace/mirror.hh>
#include <headrace/packet.hh>
#include <memory>
#include <string>

#include "tables/openflow/entry_counters.hh"
#include "tables/openflow/port_counters.hh"
#include "tables/openflow/port_set_view.hh"
#include "tables/openflow/walk_view.hh"

namespace headrace::openflow {

/// What becomes a packet-in message. The packet stays the caller's.
struct PacketForController {
  enum class Reason : uint8_t { kNoMatch, kAction, kInvalidTtl };

  const Packet& packet;
  Reason reason;
  uint8_t table;
  uint16_t max_length;  ///< bytes to send at most; 0xffff: all
  uint32_t entry;       ///< number of the entry that sends it; Visits::kNone: none
  uint32_t in_port;
  uint64_t metadata;
  uint64_t tunnel_id;
};

/// Functions are called by workers, at the same time, and must not block.
class Datapath {
 public:
  virtual ~Datapath() = default;

  virtual OpenFlowView view() const = 0;
  /// An entry or a group changes frames; or there is no entry, and nobody knows. Control thread.
  virtual bool may_change_frames() const = 0;
  /// The view of a device's copy.
  virtual OpenFlowView mirror(Mirror& mirror) const = 0;
  /// Fragments of IP are dropped (OFPC_FRAG_DROP).
  virtual bool drops_fragments() const = 0;
  /// No controller is there, and all packets go to NORMAL.
  virtual bool stands_alone() const = 0;
  virtual ClosedPorts closed_ports() const = 0;
  /// Packets whose TTL is not valid go to the controllers.
  virtual bool wants_invalid_ttl() const = 0;
  /// FLOOD sends packets to the port: it has no OFPPC_NO_FLOOD. Ports as in OpenFlow; LOCAL is one.
  virtual bool floods(uint32_t port) const = 0;

  /// Where entries that packets have met are counted.
  virtual EntryCounters& entry_counters() = 0;
  /// The time of entry_counters(), in nanoseconds.
  virtual int64_t now() const = 0;
  /// Counts what a packet has met that is not simple (Visits::is_simple()), except its first entry.
  virtual void count_more(const Visits& met) = 0;
  /// Counts what a packet has met.
  void count(const Visits& met);

  /// What a meter says about a packet.
  struct Verdict {
    bool drop = false;
    uint32_t drop_precedence = 0;  ///< if not 0: by how much the DSCP's rises
  };
  /// \param place that of the meter
  virtual Verdict meter(uint32_t place, uint32_t length) = 0;

  virtual void packet_in(const PacketForController& in) = 0;
  /// The port that the learning switch behind NORMAL chooses, after it has learned from the frame; kFlood: those that
  /// FLOOD means; 0: none.
  virtual uint32_t normal(const Packet& frame, uint32_t in_port) = 0;

  PortCounters& port_counters() { return port_counters_; }

 private:
  PortCounters port_counters_;
};

/// Makes a datapath known by a name as long as it lives. False if there is another one of that name.
bool publish_datapath(const std::string& name, const std::shared_ptr<Datapath>& datapath);
/// Null if there is none.
std::shared_ptr<Datapath> find_datapath(const std::string& name);

}  // namespace headrace::openflow
