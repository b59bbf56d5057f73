/// \file
/// What a switch does for requests, except for statistics.

#include <algorithm>
#include <new>

#include "control/openflow/switch/request.hh"

namespace headrace::openflow {

namespace {

/// Treatment of fragments (enum ofp_config_flags).
constexpr uint16_t kFragmentsNormal = 0, kFragmentsDrop = 1;

/// Bits of enum ofp_capabilities: statistics of flows, tables, ports and groups; in 1.0 matches on addresses of ARP.
constexpr uint64_t kCapabilities = 1 | 2 | 4 | 8 | uint64_t{128} << 32;
/// Actions of 1.0, by number: all but ENQUEUE.
constexpr uint32_t kActions10 = (1u << 11) - 1;
/// An Ethernet header.
constexpr size_t kShortestFrame = 14;

}  // namespace

void Switch::on_message(Connection& connection, Message&& message, std::span<const uint8_t> bytes) {
  Request request{connection, message.xid, bytes};
  std::visit(
      [&](auto& body) {
        if constexpr (requires { handle(request, body); }) {
          handle(request, body);
        } else {
          request.refuse(ErrorCode::kRequestBadType);
        }
      },
      message.body);
}

void Switch::handle(Request& request, FeaturesRequest&) {
  FeaturesReply reply;
  reply.datapath = number_;
  reply.buffers = buffers_.places();
  reply.tables = static_cast<uint8_t>(pipeline_.tables());
  reply.capabilities = kCapabilities;
  reply.actions_1_0 = kActions10;
  reply.ports = datapath_->ports().descriptions();
  request.reply(std::move(reply));
}

void Switch::handle(Request& request, GetConfigRequest&) {
  GetConfigReply reply;
  reply.flags = fragments_;
  reply.miss_send_len = request.connection.miss_send_len();
  request.reply(std::move(reply));
}

void Switch::handle(Request& request, SetConfig& body) {
  if (body.flags != kFragmentsNormal && body.flags != kFragmentsDrop) return request.refuse(ErrorCode::kConfigBadFlags);
  request.connection.set_miss_send_len(body.miss_send_len);
  changed_ |= fragments_ != body.flags;
  fragments_ = body.flags;
  datapath_->set_drops_fragments(fragments_ == kFragmentsDrop);
}

void Switch::handle(Request& request, FlowMod& body) {
  ErrorCode error;
  if (body.command == FlowCommand::kDelete || body.command == FlowCommand::kDeleteStrict) {
    Leaving leaving{request.connection.id(), {}};
    const std::lock_guard guard(datapath_->lock());
    try {
      error = pipeline_.begin_removal(body, request.version(), leaving.removal);
      if (!leaving.removal.done()) pipeline_.go_on(leaving.removal, datapath_->now());
    } catch (const std::bad_alloc&) {
      error = ErrorCode::kFlowModTableFull;
    }
    if (error == ErrorCode::kNone && !leaving.removal.done()) {
      request.connection.hold();
      removals_.push_back(std::move(leaving));
    }
  } else {
    const std::lock_guard guard(datapath_->lock());
    error = pipeline_.flow_mod(body, request.version(), datapath_->now());
  }
  changed_ |= error == ErrorCode::kNone;
  // As with Open vSwitch the change stays if only the buffer is wrong.
  if (error == ErrorCode::kNone && body.buffer != kNoBuffer && body.command <= FlowCommand::kModifyStrict)
    error = release_buffer(body.buffer);
  request.refuse(error);
}

ErrorCode Switch::release_buffer(uint32_t buffer) {
  PacketBuffers::Buffered buffered;
  if (const ErrorCode error = buffers_.take(buffer, buffered); error != ErrorCode::kNone) return error;
  Action to_table;
  to_table.value = port::kTable;
  std::vector<uint32_t> program;
  {
    const std::lock_guard guard(datapath_->lock());
    pipeline_.commit();
    (void)pipeline_.packet_out({to_table}, program);
  }
  if (!inject(buffered.packet, buffered.in_port, std::move(program))) buffered.packet->kill();
  return ErrorCode::kNone;
}

void Switch::handle(Request& request, GroupMod& body) {
  const std::lock_guard guard(datapath_->lock());
  const ErrorCode error = pipeline_.group_mod(body, datapath_->now());
  changed_ |= error == ErrorCode::kNone;
  request.refuse(error);
}

void Switch::handle(Request& request, MeterMod& body) {
  const std::lock_guard guard(datapath_->lock());
  const ErrorCode error = pipeline_.meter_mod(body, datapath_->now());
  changed_ |= error == ErrorCode::kNone;
  request.refuse(error);
}

void Switch::handle(Request& request, TableMod& body) {
  const std::lock_guard guard(datapath_->lock());
  request.refuse(pipeline_.table_mod(body));
}

bool Switch::has_port(uint32_t number) const { return datapath_->ports().has(number); }

void Switch::handle(Request& request, PortMod& body) {
  std::vector<PortStatus> changes;
  {
    const std::lock_guard guard(datapath_->lock());
    request.refuse(datapath_->ports().port_mod(body, request.version(), changes));
  }
  tell(changes);
}

bool Switch::inject(Packet* packet, uint32_t in_port, std::vector<uint32_t>&& program) {
  if (!datapath_->injections().offer(packet, in_port, std::move(program))) {
    ++injections_lost_;
    return false;
  }
  if (host_ != nullptr) host_->packets_wait();
  return true;
}

void Switch::handle(Request& request, PacketOut& body) {
  const bool from_port = has_port(body.in_port);
  if (!from_port && body.in_port != port::kController && body.in_port != port::kAny)
    return request.refuse(ErrorCode::kRequestBadPort);
  std::vector<uint32_t> program;
  {
    const std::lock_guard guard(datapath_->lock());
    // What came before is there for the packet.
    pipeline_.commit();
    if (const ErrorCode error = pipeline_.packet_out(body.actions, program); error != ErrorCode::kNone)
      return request.refuse(error);
  }
  Packet* packet = nullptr;
  if (body.buffer != kNoBuffer) {
    PacketBuffers::Buffered buffered;
    if (const ErrorCode error = buffers_.take(body.buffer, buffered); error != ErrorCode::kNone)
      return request.refuse(error);
    packet = buffered.packet;
  } else {
    if (body.data.size() < kShortestFrame) return request.refuse(ErrorCode::kRequestBadPacket);
    packet = Packet::make(body.data.data(), static_cast<uint32_t>(body.data.size()));
  }
  if (packet == nullptr) {
    ++injections_lost_;
  } else if (!inject(packet, body.in_port, std::move(program))) {
    packet->kill();
  }
}

void Switch::handle(Request& request, BarrierRequest&) {
  request.connection.hold();
  barriers_.push_back({request.connection.id(), request.xid});
}

void Switch::handle(Request& request, QueueGetConfigRequest& body) {
  if (body.port != port::kAny && !has_port(body.port)) return request.refuse(ErrorCode::kQueueBadPort);
  QueueGetConfigReply reply;
  reply.port = body.port;
  request.reply(std::move(reply));
}

}  // namespace headrace::openflow
