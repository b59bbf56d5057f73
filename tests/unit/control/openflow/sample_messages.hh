#pragma once
/// \file
/// A message of every kind in both versions, with numbers that differ from each other.

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "control/openflow/codec.hh"
#include "support/openflow_messages.hh"

namespace headrace::openflow::samples {

inline Match match_of(std::string_view text) {
  Match match;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    EXPECT_EQ(add_to_match(match.key, text.substr(0, comma)), "") << text;
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return match;
}

inline Action action(ActionType type, uint32_t value = 0, uint16_t number = 0) {
  Action action;
  action.type = type;
  action.value = value;
  action.number = number;
  return action;
}
inline Action output(uint32_t port, uint16_t max_len = 0) { return action(ActionType::kOutput, port, max_len); }
inline Action set_field(const char* name, const char* value) {
  const KeyField& field = *find_key_field(name);
  Action action;
  action.type = ActionType::kSetField;
  action.field = field.oxm;
  action.set = *parse_key_value(field, value);
  if (field.oxm == 6) action.set.low |= 0x1000;
  return action;
}
inline Instruction apply(std::vector<Action> actions) {
  Instruction instruction;
  instruction.actions = std::move(actions);
  return instruction;
}
inline Instruction instruction(InstructionType type) {
  Instruction instruction;
  instruction.type = type;
  return instruction;
}

/// Actions of 1.3 that Open vSwitch knows.
inline std::vector<Action> all_actions() {
  return {action(ActionType::kPushVlan, 0, 0x88a8),
          set_field("vlan_vid", "10"),
          action(ActionType::kPopVlan),
          action(ActionType::kPushMpls, 0, 0x8847),
          action(ActionType::kSetMplsTtl, 63),
          action(ActionType::kDecMplsTtl),
          action(ActionType::kPopMpls, 0, 0x0800),
          action(ActionType::kSetNwTtl, 62),
          action(ActionType::kDecNwTtl),
          set_field("nw_dst", "10.9.8.7"),
          action(ActionType::kSetQueue, 4),
          action(ActionType::kGroup, 5),
          output(port::kInPort),
          output(port::kController, 128)};
}

inline std::vector<Instruction> all_instructions() {
  std::vector<Instruction> list{
      instruction(InstructionType::kMeter),         apply(all_actions()),
      instruction(InstructionType::kClearActions),  instruction(InstructionType::kWriteActions),
      instruction(InstructionType::kWriteMetadata), instruction(InstructionType::kGotoTable)};
  list[0].meter = 6;
  list[3].actions = {output(7)};
  list[4].metadata = 0x1200;
  list[4].metadata_mask = 0xff00;
  list[5].table = 9;
  return list;
}

inline Port port_of(Version version) {
  Port port;
  port.number = 3;
  port.address = {2, 0, 0, 0, 0, 3};
  port.name = "eth3";
  port.config = port_config::kNoForward;
  port.state = version == Version::k1_3 ? port_state::kLive : port_state::kLinkDown;
  port.current = 1 << 6 | 1 << 12;
  port.advertised = 1 << 5 | 1 << 13;
  port.supported = 1 << 4 | 1 << 11;
  port.peer = 1 << 3 | 1 << 14;
  if (version == Version::k1_3) {
    port.current_speed = 10000000;
    port.max_speed = 40000000;
  }
  return port;
}

inline FlowStats flow_stats(const char* match, std::vector<Instruction> instructions) {
  FlowStats flow;
  flow.duration_s = 11;
  flow.duration_ns = 12000000;
  flow.priority = 13;
  flow.idle_timeout = 14;
  flow.hard_timeout = 15;
  flow.cookie = 0x16;
  flow.packets = 17;
  flow.bytes = 18;
  flow.match = match_of(match);
  flow.instructions = std::move(instructions);
  return flow;
}

inline PortStats port_stats() {
  PortStats stats;
  stats.port = 3;
  stats.rx_packets = 101;
  stats.tx_packets = 102;
  stats.rx_bytes = 103;
  stats.tx_bytes = 104;
  stats.rx_dropped = 105;
  stats.tx_dropped = 106;
  stats.rx_errors = 107;
  stats.tx_errors = 108;
  stats.rx_frame_errors = 109;
  stats.rx_overruns = 110;
  stats.rx_crc_errors = 111;
  stats.collisions = 112;
  return stats;
}

inline const Bytes& frame() {
  static const Bytes bytes =
      from_hex("020000000002 020000000001 0800 4500001c000100004011 665a 0a000001 0a000002 03e8 07d0 0008 0000");
  return bytes;
}

inline FlowMod flow_mod(const char* match, std::vector<Instruction> instructions) {
  FlowMod mod;
  mod.cookie = 0x21;
  mod.idle_timeout = 22;
  mod.hard_timeout = 23;
  mod.priority = 24;
  mod.flags = flow_flag::kSendFlowRemoved | flow_flag::kCheckOverlap;
  mod.match = match_of(match);
  mod.instructions = std::move(instructions);
  return mod;
}

inline RoleReply role_of(Role role, uint64_t generation) {
  RoleReply reply;
  reply.role = role;
  reply.generation = generation;
  return reply;
}

/// What both versions have.
inline std::vector<Body> common_bodies(Version version) {
  const std::vector<Instruction> out{apply({output(2)})};
  FeaturesReply features;
  features.datapath = 0x0102030405060708;
  features.buffers = 256;
  features.tables = 4;
  features.capabilities = 0x47;
  SetConfig config;
  config.flags = 1;
  config.miss_send_len = 99;
  GetConfigReply config_reply;
  config_reply.miss_send_len = 98;
  PacketIn packet_in;
  packet_in.buffer = 31;
  packet_in.total_len = static_cast<uint16_t>(frame().size());
  packet_in.reason = PacketInReason::kAction;
  packet_in.match = match_of("in_port=32");
  packet_in.data = frame();
  FlowRemoved removed;
  removed.match = match_of("in_port=41");
  removed.cookie = 0x42;
  removed.priority = 43;
  removed.reason = FlowRemovedReason::kHardTimeout;
  removed.duration_s = 44;
  removed.duration_ns = 45000000;
  removed.idle_timeout = 46;
  removed.packets = 47;
  removed.bytes = 48;
  PacketOut packet_out;
  packet_out.in_port = 51;
  packet_out.actions = {output(52), output(port::kFlood)};
  packet_out.data = frame();
  PortMod port_mod;
  port_mod.port = 3;
  port_mod.address = {2, 0, 0, 0, 0, 3};
  port_mod.config = port_config::kPortDown;
  port_mod.mask = port_config::kPortDown | port_config::kNoReceive;
  port_mod.advertise = 1 << 6;
  FlowMod strict = flow_mod("dl_vlan=10", {});
  strict.command = FlowCommand::kDeleteStrict;
  strict.out_port = 25;
  strict.flags = 0;
  QueueGetConfigReply queues;
  queues.port = 3;
  queues.queues.emplace_back().queue = 61;
  queues.queues[0].port = version == Version::k1_3 ? 3 : 0;
  queues.queues[0].properties.push_back({queue_property::kMinRate, 500, 0, {}});
  const AggregateStats aggregate{71, 72, 73};
  TableStats table;
  table.table = 1;
  table.active = 81;
  table.lookups = 82;
  table.matches = 83;
  QueueStats queue;
  queue.port = 3;
  queue.queue = 61;
  queue.tx_bytes = 91;
  queue.tx_packets = 92;
  queue.tx_errors = 93;
  if (version == Version::k1_0) {
    features.ports = {port_of(version)};
    features.actions_1_0 = 0xfff;
    table.name = "classifier";
    table.wildcards = 0x3fffff;
    table.max_entries = 84;
  }
  FlowRequest<MultipartType::kFlow> request;
  request.table = 0;
  request.out_port = 2;
  request.match = match_of("tcp,tp_dst=80");
  FlowRequest<MultipartType::kAggregate> aggregate_request;
  Error error;
  error.type = 1;
  error.code = 6;
  error.data = from_hex("0402000900000000");
  RoleRequest master;
  master.role = Role::kMaster;
  master.generation = version == Version::k1_3 ? 95 : 0;
  const bool is_10 = version == Version::k1_0;
  return {
      Hello{{0x12}},
      error,
      EchoRequest{{'h', 'i'}},
      EchoReply{{'h', 'o'}},
      FeaturesRequest{},
      features,
      GetConfigRequest{},
      config_reply,
      config,
      packet_in,
      removed,
      PortStatus{PortReason::kModify, port_of(version)},
      packet_out,
      flow_mod("in_port=1,dl_vlan=10,dl_vlan_pcp=2,tcp,nw_src=10.0.0.0/8,nw_dst=10.1.2.3,nw_tos=184,tp_src=1,tp_dst=2",
               out),
      flow_mod("", {}),
      strict,
      port_mod,
      MultipartRequest{0, EmptyRequest<MultipartType::kDesc>{}},
      MultipartRequest{0, request},
      MultipartRequest{0, aggregate_request},
      MultipartRequest{0, EmptyRequest<MultipartType::kTable>{}},
      MultipartRequest{0, PortStatsRequest{}},
      MultipartRequest{0, QueueStatsRequest{3, kAllQueues}},
      MultipartReply{0, Description{"Headrace", "CPU", "0.1.0", "42", "br0"}},
      MultipartReply{multipart_flag::kMore, std::vector{flow_stats("arp,arp_tpa=10.0.0.9", out), flow_stats("", {})}},
      MultipartReply{0, aggregate},
      MultipartReply{0, std::vector{table}},
      MultipartReply{0, std::vector{port_stats()}},
      MultipartReply{0, std::vector{queue}},
      BarrierRequest{},
      BarrierReply{},
      QueueGetConfigRequest{3},
      queues,
      master,
      role_of(Role::kSlave, is_10 ? 0 : 96),
  };
}

inline std::vector<Body> bodies_1_0() {
  std::vector<Body> bodies = common_bodies(Version::k1_0);
  std::vector<Action> actions{action(ActionType::kSetVlanVid, 10),
                              action(ActionType::kSetVlanPcp, 3),
                              action(ActionType::kPopVlan),
                              set_field("dl_src", "02:00:00:00:00:07"),
                              set_field("dl_dst", "02:00:00:00:00:08"),
                              set_field("nw_src", "10.0.0.7"),
                              set_field("nw_dst", "10.0.0.8"),
                              set_field("ip_dscp", "46"),
                              action(ActionType::kSetTransport, 7),
                              action(ActionType::kSetTransport, 8),
                              action(ActionType::kEnqueue, 9),
                              output(10)};
  actions[8].field = kTransportSource;
  actions[9].field = kTransportDestination;
  actions[10].queue = 11;
  bodies.emplace_back(flow_mod("udp,in_port=4294967294", {}));
  std::get<FlowMod>(bodies.back()).instructions = {apply(actions)};
  Match exact = match_of(
      "in_port=4,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,vlan_vid=0,tcp,nw_src=10.0.0.1,"
      "nw_dst=10.0.0.2,nw_tos=0,tp_src=3,tp_dst=4");
  exact.exact_1_0 = true;
  bodies.emplace_back(flow_mod("", {apply({output(port::kNormal)})}));
  std::get<FlowMod>(bodies.back()).match = exact;
  return bodies;
}

inline std::vector<Body> bodies_1_3() {
  std::vector<Body> bodies = common_bodies(Version::k1_3);
  bodies.emplace_back(flow_mod("in_port=1,ip", all_instructions()));
  for (const char* const match :
       {"in_port=1,metadata=0x30/0xf0,tun_id=4/7,dl_src=02:00:00:00:00:05/ff:00:00:00:00:ff",
        "vlan_vid=0x1000/0x1000,dl_vlan_pcp=3,icmp,nw_ecn=2,icmp_type=8,icmp_code=1", "udp,udp_src=1,udp_dst=2",
        "sctp,sctp_src=3,sctp_dst=4",
        "arp,arp_op=2,arp_spa=10.0.0.1,arp_tpa=10.0.0.0/24,arp_sha=02:00:00:00:00:06,"
        "arp_tha=02:00:00:00:00:07",
        "tcp6,ipv6_src=2001:db8::/32,ipv6_dst=2001:db8::1,ipv6_label=0x12345,tcp_src=5,tcp_dst=6",
        "icmp6,icmpv6_type=135,icmpv6_code=0,nd_target=fe80::1,nd_sll=02:00:00:00:00:08",
        "icmp6,icmpv6_type=136,nd_tll=02:00:00:00:00:09", "mpls,mpls_label=100,mpls_tc=1,mpls_bos=1"})
    bodies.emplace_back(flow_mod(match, {apply({output(2)})}));
  GroupMod group;
  group.command = GroupCommand::kModify;
  group.type = GroupType::kSelect;
  group.group = 111;
  group.buckets = {{112, port::kAny, group::kAny, {output(1)}},
                   {113, 114, 115, {set_field("dl_dst", "02:00:00:00:00:0a"), output(2)}}};
  bodies.emplace_back(group);
  bodies.emplace_back(TableMod{5, 3});
  const MeterBand drop{MeterBandType::kDrop, 121, 122, 0, 0, {}}, dscp{MeterBandType::kDscpRemark, 123, 124, 1, 0, {}};
  bodies.emplace_back(MeterMod{MeterCommand::kAdd, meter_flag::kKbps | meter_flag::kBurst, 125, {drop, dscp}});
  SetAsync async;
  async.packet_in = {3, 4};
  async.port_status = {7, 1};
  async.flow_removed = {15, 2};
  bodies.emplace_back(GetAsyncRequest{});
  bodies.emplace_back(async);
  GetAsyncReply async_reply;
  async_reply.packet_in = {3, 4};
  bodies.emplace_back(async_reply);

  const auto request = [&](RequestBody body) { bodies.emplace_back(MultipartRequest{0, std::move(body)}); };
  const auto reply = [&](ReplyBody body) { bodies.emplace_back(MultipartReply{0, std::move(body)}); };
  request(NumberRequest<MultipartType::kGroup>{111});
  request(EmptyRequest<MultipartType::kGroupDesc>{});
  request(EmptyRequest<MultipartType::kGroupFeatures>{});
  request(NumberRequest<MultipartType::kMeter>{meter::kAll});
  request(NumberRequest<MultipartType::kMeterConfig>{125});
  request(EmptyRequest<MultipartType::kMeterFeatures>{});
  request(std::vector<TableFeatures>{});
  request(EmptyRequest<MultipartType::kPortDesc>{});
  reply(std::vector{flow_stats("in_port=1,ip", all_instructions())});
  reply(std::vector{GroupStats{111, 131, 132, 133, 134, 135000000, {{136, 137}, {138, 139}}}});
  reply(std::vector{GroupDescription{GroupType::kFastFailover, 111, group.buckets}});
  reply(GroupFeatures{15, 7, {141, 142, 143, 144}, {1, 1 | 1 << 25, 1 | 1 << 22, 1 | 1 << 18}});
  reply(std::vector{MeterStats{125, 151, 152, 153, 154, 155000000, {{156, 157}, {158, 159}}}});
  reply(std::vector{MeterConfig{meter_flag::kPktps | meter_flag::kStats, 125, {drop, dscp}}});
  reply(MeterFeatures{161, 6, 15, 2, 3});
  TableFeatures features;
  features.table = 1;
  features.name = "table1";
  features.metadata_match = 0x171;
  features.metadata_write = 0x172;
  features.config = 3;
  features.max_entries = 173;
  const std::vector<uint32_t> output_and_group{0, 22},
      ports_and_types{oxm_header(key_fields()[0], false), oxm_header(key_fields()[3], false)};
  features.properties = {{table_property::kInstructions, {1, 3, 4}, {}},
                         {table_property::kInstructionsMiss, {4}, {}},
                         {table_property::kNextTables, {2, 3, 4}, {}},
                         {table_property::kNextTablesMiss, {2}, {}},
                         {table_property::kWriteActions, output_and_group, {}},
                         {table_property::kWriteActionsMiss, {0}, {}},
                         {table_property::kApplyActions, output_and_group, {}},
                         {table_property::kApplyActionsMiss, {0}, {}},
                         {table_property::kMatch, {ports_and_types[0], oxm_header(key_fields()[3], true)}, {}},
                         {table_property::kWildcards, ports_and_types, {}},
                         {table_property::kWriteSetField, {ports_and_types[1]}, {}},
                         {table_property::kWriteSetFieldMiss, {}, {}},
                         {table_property::kApplySetField, {ports_and_types[1]}, {}},
                         {table_property::kApplySetFieldMiss, {}, {}}};
  reply(std::vector{features});
  reply(std::vector{port_of(Version::k1_3)});
  return bodies;
}

/// What 1.3 has and Open vSwitch does not know.
inline std::vector<Body> more_bodies_1_3() {
  std::vector<Body> bodies{flow_mod(
      "in_port=1", {apply({action(ActionType::kCopyTtlOut), action(ActionType::kCopyTtlIn),
                           action(ActionType::kPushPbb, 0, 0x88e7), action(ActionType::kPopPbb), output(2)})})};
  for (const char* const match :
       {"in_port=1,in_phy_port=2", "dl_type=0x88e7,pbb_isid=0x123456", "ipv6,ipv6_exthdr=0x10/0x11"})
    bodies.emplace_back(flow_mod(match, {apply({output(2)})}));
  bodies.emplace_back(Experimenter{0x00abcdef, 181, {1, 2, 3, 4}});
  bodies.emplace_back(MultipartRequest{0, ExperimenterMultipart{0x00abcdef, 182, {5, 6, 7, 8}}});
  bodies.emplace_back(MultipartReply{0, ExperimenterMultipart{0x00abcdef, 182, {9, 10, 11, 12}}});
  return bodies;
}

}  // namespace headrace::openflow::samples
