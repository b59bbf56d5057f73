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

bool Switch::excludes() const {
  return !postponed_.empty() ||
         std::any_of(underway_.begin(), underway_.end(), [](const Underway& one) { return excludes(one.change); });
}

bool Switch::must_wait(const FlowMod& body) const {
  return body.command == FlowCommand::kModify && !postponed_.empty();
}

template <typename Mod>
void Switch::obey_or_postpone(Request& request, Mod& body) {
  if (!must_wait(body)) return obey(request, body);
  request.connection.hold();
  postponed_.push_back(
      {request.connection.id(), request.xid, std::move(body), {request.bytes.begin(), request.bytes.end()}});
}

void Switch::handle(Request& request, FlowMod& body) { obey_or_postpone(request, body); }
void Switch::handle(Request& request, GroupMod& body) { obey_or_postpone(request, body); }
void Switch::handle(Request& request, MeterMod& body) { obey_or_postpone(request, body); }

bool Switch::go_on(Change& change) {
  changed_ = true;
  const std::lock_guard guard(datapath_->lock());
  try {
    std::visit(
        [&](auto& one) {
          if constexpr (requires { pipeline_.go_on(one, Time()); }) {
            pipeline_.go_on(one, datapath_->now());
          } else {
            pipeline_.go_on(one);
          }
        },
        change);
  } catch (const std::bad_alloc&) {
    return false;  // later there may be memory
  }
  return true;
}

bool Switch::is_done(const Change& change) {
  return std::visit([](const auto& one) { return one.done(); }, change);
}

void Switch::begin(Request& request, Change change, uint32_t buffer) {
  if (!is_done(change)) (void)go_on(change);
  if (is_done(change)) {
    if (buffer != kNoBuffer) request.refuse(release_buffer(buffer));
    return;
  }
  request.connection.hold();
  underway_.push_back(
      {request.connection.id(), std::move(change), buffer, {request.bytes.begin(), request.bytes.end()}});
}

void Switch::obey(Request& request, FlowMod& body) {
  ErrorCode error = ErrorCode::kNone;
  // As with Open vSwitch a change stays if only the buffer is wrong.
  uint32_t buffer = kNoBuffer;
  Change change;
  {
    const std::lock_guard guard(datapath_->lock());
    try {
      switch (body.command) {
        case FlowCommand::kDelete:
        case FlowCommand::kDeleteStrict:
          error = pipeline_.begin_removal(body, request.version(), change.emplace<OpenFlowPipeline::Removal>());
          break;
        case FlowCommand::kModify:
        case FlowCommand::kModifyStrict:
          error = pipeline_.begin_modification(body, request.version(), datapath_->now(),
                                               change.emplace<OpenFlowPipeline::Modification>());
          buffer = body.buffer;
          break;
        default:
          error = pipeline_.flow_mod(body, request.version(), datapath_->now());
          buffer = body.buffer;
          break;
      }
    } catch (const std::bad_alloc&) {
      error = ErrorCode::kFlowModTableFull;
    }
  }
  if (error != ErrorCode::kNone) return request.refuse(error);
  changed_ = true;
  begin(request, std::move(change), buffer);
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

void Switch::obey(Request& request, GroupMod& body) {
  OpenFlowPipeline::Departure departure;
  ErrorCode error;
  {
    const std::lock_guard guard(datapath_->lock());
    error = body.command == GroupCommand::kDelete ? pipeline_.begin_departure(body, departure)
                                                  : pipeline_.group_mod(body, datapath_->now());
  }
  if (error != ErrorCode::kNone) return request.refuse(error);
  changed_ = true;
  begin(request, std::move(departure), kNoBuffer);
}

void Switch::obey(Request& request, MeterMod& body) {
  OpenFlowPipeline::Departure departure;
  ErrorCode error;
  {
    const std::lock_guard guard(datapath_->lock());
    error = body.command == MeterCommand::kDelete ? pipeline_.begin_departure(body, departure)
                                                  : pipeline_.meter_mod(body, datapath_->now());
  }
  if (error != ErrorCode::kNone) return request.refuse(error);
  changed_ = true;
  begin(request, std::move(departure), kNoBuffer);
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
