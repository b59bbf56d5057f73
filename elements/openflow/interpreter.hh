#pragma once
/// \file
/// Does with a packet all that entries, groups and packet-outs of an OpenFlow switch can want, on the host.

#include <cstdint>
#include <headrace/element.hh>
#include <headrace/packet.hh>

#include "tables/openflow/datapath.hh"

namespace headrace::openflow {

/// Where packets leave, and what happened to others.
class PacketSink {
 public:
  enum class Loss : uint8_t {
    kNoEntry,     ///< no entry matches
    kNoAction,    ///< no action sends it anywhere
    kNoRoom,      ///< no room for a header in front
    kMetered,     ///< above a meter's rate
    kNoBuffer,    ///< the pool has no buffer for a copy
    kTooDeep,     ///< groups nested, or tables asked again, too often
    kInvalidTtl,  ///< dropped by a decrement
  };

  virtual ~PacketSink() = default;
  /// Takes a packet that leaves by a port: a real one or LOCAL.
  virtual void send(uint32_t port, Packet* packet) = 0;
  /// Ports are 1 to this one, and LOCAL if has_local().
  virtual uint32_t ports() const = 0;
  virtual bool has_local() const = 0;
  /// Counts; the packet is still its owner's.
  virtual void lose(Loss loss) = 0;
};

/// Interprets programs of one packet at a time. It needs no memory but buffers for copies.
class Interpreter {
 public:
  /// Groups within groups, and lookups that actions start anew.
  static constexpr int kMostDepth = 8;

  Interpreter(Datapath& datapath, PacketSink& sink) : datapath_(datapath), view_(datapath.view()), sink_(sink) {}

  /// Lets a packet walk through the tables, and takes it.
  void process(Packet* packet, uint32_t in_port);
  /// Sends a packet where the learning switch wants it, as if the tables had one entry with output to NORMAL, and takes it.
  void process_as_normal(Packet* packet, uint32_t in_port);
  /// Does the actions of a packet-out, and takes the packet.
  void act(Packet* packet, uint32_t in_port, const OpRange& actions);

 private:
  using Loss = PacketSink::Loss;

  /// A packet and what is known of it. Whoever sends or drops the packet itself sets it to null.
  struct Work {
    Packet* packet;
    PacketKeyContext context;
    uint8_t table = 0;
    uint32_t entry = Visits::kNone;
    PacketForController::Reason reason = PacketForController::Reason::kAction;
    bool sent = false;  ///< it, or a copy, has left
  };
  /// True: the packet is not needed any more after this.
  enum class Last : bool { kNo, kYes };

  void walk(Work& work, int depth);
  void finish(Work& work);
  /// False: the packet is dropped, and what would follow does not happen.
  bool act_on(Work& work, const uint32_t* op, Last last, int depth);
  bool run(Work& work, const OpRange& ops, Last last, int depth);
  void output(Work& work, uint32_t port, uint32_t max_length, Last last, int depth);
  void send(Work& work, uint32_t port, Last last);
  void flood(Work& work, bool all, Last last);
  void packet_in(Work& work, PacketForController::Reason reason, uint32_t max_length);
  void group(Work& work, uint32_t slot, Last last, int depth);
  void bucket(Work& work, const GroupView& group, uint32_t number, Last last, int depth);
  void lose(Work& work, Loss loss);
  /// The packet itself or a copy; null, and counted: no buffer.
  Packet* take(Work& work, Last last);
  void count(const Visits& visits) { datapath_.count(visits); }

  Datapath& datapath_;
  OpenFlowView view_;
  PacketSink& sink_;
  uint32_t length_ = 0;  // as the packet came
};

}  // namespace headrace::openflow
