/// \file
/// What a switch answers to multipart requests.

#include "control/openflow/switch/request.hh"
#include "headrace/version.hh"

namespace headrace::openflow {

namespace {

/// Entries of one message, and bytes that may wait in a connection before the next ones follow.
constexpr size_t kDumpEntries = 200;
constexpr size_t kDumpUnsent = 256u << 10;

}  // namespace

void Switch::handle(Request& request, MultipartRequest& body) {
  const std::lock_guard guard(datapath_->lock());
  std::visit([&](auto& of_type) { answer(request, of_type); }, body.body);
}

void Switch::answer(Request& request, EmptyRequest<MultipartType::kDesc>&) {
  Description reply;
  reply.manufacturer = "Headrace";
  reply.hardware = "Headrace";
  reply.software = kVersion;
  reply.serial = "None";
  reply.datapath = description_;
  request.reply_part(std::move(reply));
}

void Switch::answer(Request& request, FlowRequest<MultipartType::kFlow>& body) {
  begin(request, FlowWalk{std::move(body)});
}

void Switch::begin(Request& request, decltype(Dump::walk) walk) {
  if (std::visit([&](auto& one) { return go_on(request, one); }, walk)) return;
  request.connection.hold();
  dumps_.push_back({request.connection.id(), request.xid, std::move(walk)});
}

bool Switch::go_on(Request& request, FlowWalk& walk) {
  while (request.connection.unsent() < kDumpUnsent) {
    std::vector<FlowStats> stats;
    const bool more = pipeline_.flow_stats(walk.request, datapath_->now(), walk.cursor, kDumpEntries, stats);
    const bool full = stats.size() == kDumpEntries;
    if (!more || !stats.empty()) request.reply_part(std::move(stats), more);
    if (!more) return true;
    if (!full) return false;  // others have their turn before it looks on
  }
  return false;
}

void Switch::answer(Request& request, FlowRequest<MultipartType::kAggregate>& body) {
  begin(request, OpenFlowPipeline::AggregateWalk{std::move(body), 0, {}});
}

bool Switch::go_on(Request& request, OpenFlowPipeline::AggregateWalk& walk) {
  if (pipeline_.aggregate(walk)) return false;
  request.reply_part(walk.stats);
  return true;
}

void Switch::answer(Request& request, EmptyRequest<MultipartType::kTable>&) {
  begin(request, std::make_unique<OpenFlowPipeline::TableWalk>(pipeline_));
}

bool Switch::go_on(Request& request, std::unique_ptr<OpenFlowPipeline::TableWalk>& walk) {
  if (walk->step()) return false;
  request.reply_part(walk->statistics());
  return true;
}

void Switch::answer(Request& request, PortStatsRequest& body) {
  std::vector<PortStats> stats;
  const ErrorCode error = datapath_->ports().statistics(body, datapath_->now(), stats);
  if (error != ErrorCode::kNone) return request.refuse(error);
  request.reply_part(std::move(stats));
}

void Switch::answer(Request& request, QueueStatsRequest& body) {
  const bool all_ports = body.port == port::kAny || body.port == port::kAll;
  if (!all_ports && !has_port(body.port)) return request.refuse(ErrorCode::kQueueBadPort);
  if (body.queue != kAllQueues) return request.refuse(ErrorCode::kQueueBadQueue);
  request.reply_part(std::vector<QueueStats>());
}

void Switch::answer(Request& request, NumberRequest<MultipartType::kGroup>& body) {
  request.reply_part(pipeline_.group_stats(body.number, datapath_->now()));
}

void Switch::answer(Request& request, EmptyRequest<MultipartType::kGroupDesc>&) {
  request.reply_part(pipeline_.group_descriptions());
}

void Switch::answer(Request& request, EmptyRequest<MultipartType::kGroupFeatures>&) {
  request.reply_part(Groups::features());
}

void Switch::answer(Request& request, NumberRequest<MultipartType::kMeter>& body) {
  std::vector<MeterStats> stats;
  const ErrorCode error = pipeline_.meter_stats(body.number, datapath_->now(), stats);
  if (error != ErrorCode::kNone) return request.refuse(error);
  request.reply_part(std::move(stats));
}

void Switch::answer(Request& request, NumberRequest<MultipartType::kMeterConfig>& body) {
  std::vector<MeterConfig> configs;
  const ErrorCode error = pipeline_.meter_configurations(body.number, configs);
  if (error != ErrorCode::kNone) return request.refuse(error);
  request.reply_part(std::move(configs));
}

void Switch::answer(Request& request, EmptyRequest<MultipartType::kMeterFeatures>&) {
  request.reply_part(Meters::features());
}

void Switch::answer(Request& request, std::vector<TableFeatures>& body) {
  if (!body.empty())
    if (const ErrorCode error = pipeline_.set_table_features(body); error != ErrorCode::kNone)
      return request.refuse(error);
  request.reply_part(pipeline_.table_features());
}

void Switch::answer(Request& request, EmptyRequest<MultipartType::kPortDesc>&) {
  request.reply_part(datapath_->ports().descriptions());
}

void Switch::answer(Request& request, ExperimenterMultipart&) { request.refuse(ErrorCode::kRequestBadExperimenter); }

}  // namespace headrace::openflow
