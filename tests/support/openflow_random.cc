#include "support/openflow_random.hh"

#include <algorithm>

#include "tables/key/key_fields.hh"

namespace headrace::testing {

namespace {

using openflow::GroupKind;
using openflow::Op;
namespace reserved_port = openflow::reserved_port;

uint32_t below(std::mt19937& random, uint32_t n) { return static_cast<uint32_t>(random() % n); }
bool one_in(std::mt19937& random, uint32_t n) { return below(random, n) == 0; }

uint64_t some_mac(std::mt19937& random) { return 0x020000000000 | (one_in(random, 4) ? random() : below(random, 3)); }
uint32_t some_ip(std::mt19937& random) {
  return 0x0a000000 | (one_in(random, 4) ? below(random, 0x1000000) : below(random, 3));
}
uint16_t some_port(std::mt19937& random) {
  static constexpr uint16_t kPorts[] = {53, 80, 443, 0, 65535};
  return one_in(random, 4) ? static_cast<uint16_t>(random()) : kPorts[below(random, 5)];
}
Address6 some_ip6(std::mt19937& random) {
  return {0x20010db8, 0, one_in(random, 3) ? static_cast<uint32_t>(random()) : 0, below(random, 3)};
}
uint8_t some_ttl(std::mt19937& random) {
  static constexpr uint8_t kTtls[] = {64, 64, 255, 2, 1, 0};
  return kTtls[below(random, 6)];
}
uint32_t some_label(std::mt19937& random) { return below(random, 4) + 16; }  // see below

std::string some_bytes(std::mt19937& random, uint32_t n) {
  std::string s;
  for (uint32_t i = 0; i < n; ++i) s += static_cast<char>(random());
  return s;
}

}  // namespace

OpenFlowFrame random_openflow_frame(std::mt19937& random) {
  OpenFlowFrame f;
  f.dst = some_mac(random);
  f.src = some_mac(random);
  for (uint32_t tags = one_in(random, 3) ? 1 + below(random, 2) : 0; tags > 0; --tags)
    f.tags.push_back({static_cast<uint16_t>(one_in(random, 2) ? 0x8100 : 0x88a8), static_cast<uint16_t>(random())});
  const uint32_t kind = below(random, 20);
  f.payload = some_bytes(random, 8 + below(random, 30));
  if (kind == 0) {
    f.type = one_in(random, 2) ? 0x9000 : 0x0040;
    return f;
  }
  if (kind < 3) {
    f.network = OpenFlowFrame::Network::kArp;
    f.type = 0x0806;
    f.arp_op = static_cast<uint16_t>(1 + below(random, 2));
    f.src4 = some_ip(random);
    f.dst4 = some_ip(random);
    f.sha = some_mac(random);
    f.tha = some_mac(random);
    return f;
  }
  f.tos = static_cast<uint8_t>(random());
  f.ttl = some_ttl(random);
  static constexpr uint8_t kProtocols[] = {6, 6, 6, 17, 17, 17, 132, 1, 58, 47};
  f.protocol = kProtocols[below(random, 10)];
  f.sport = some_port(random);
  f.dport = some_port(random);
  f.no_checksum = one_in(random, 4);
  const bool ip6 = f.protocol == 58 || (f.protocol != 1 && one_in(random, 3));
  const bool fragment = one_in(random, 10), later = one_in(random, 2);
  if (ip6) {
    f.network = OpenFlowFrame::Network::kIp6;
    f.type = 0x86dd;
    f.flow_label = below(random, 0x100000);
    f.src6 = some_ip6(random);
    f.dst6 = some_ip6(random);
    f.hop_by_hop = one_in(random, 8);
    f.has_fragment_header = fragment;
    if (fragment) f.fragment = later ? 0x0100 : 0x0001;
    if (f.protocol == 58) {
      static constexpr uint8_t kTypes[] = {128, 135, 136};
      f.icmp_type = kTypes[below(random, 3)];
      // Too short for a neighbor discovery message, whatever its type becomes.
      f.payload.resize(8);
      if (f.icmp_type != 128) {
        f.target = some_ip6(random);
        if (f.icmp_type == 135 && !one_in(random, 4)) f.sll = some_mac(random);
        if (f.icmp_type == 136 && !one_in(random, 4)) f.tll = some_mac(random);
        f.payload.clear();
      }
    }
  } else {
    f.network = OpenFlowFrame::Network::kIp4;
    f.type = 0x0800;
    f.src4 = some_ip(random);
    f.dst4 = some_ip(random);
    f.options = one_in(random, 8) ? 1 + static_cast<int>(below(random, 3)) : 0;
    if (fragment) f.fragment = later ? 0x0020 : 0x2000;
    f.icmp_type = one_in(random, 2) ? 8 : 0;
  }
  if (one_in(random, 4)) f.padding = std::string(1 + below(random, 9), '\0');
  if (kind > 16) {
    // The first byte of a label, where IP would have its version, is 0: no label looks like IP.
    f.type = one_in(random, 4) ? 0x8848 : 0x8847;
    for (uint32_t n = 1 + below(random, 2); n > 0; --n)
      f.labels.push_back(some_label(random) << 12 | below(random, 8) << 9 | (n == 1 ? 0x100u : 0u) | some_ttl(random));
  } else if (kind == 16) {
    const uint32_t op = static_cast<uint32_t>(Op::kPushPbb) | 0x88e7u << 16;
    f.act(&op);
    f.pbb_tci |= below(random, 0x1000000);
    f.dst = some_mac(random);
    f.src = some_mac(random);
  }
  return f;
}

namespace {

OpenFlowOp random_edit(std::mt19937& random, bool simple) {
  const auto of = [&](std::initializer_list<uint32_t> list) {
    return *(list.begin() + below(random, static_cast<uint32_t>(list.size())));
  };
  const auto address = [&](uint32_t field) {
    const Address6 a = some_ip6(random);
    return op_set(field, uint64_t{a[2]} << 32 | a[3], uint64_t{a[0]} << 32 | a[1]);
  };
  switch (below(random, simple ? 14 : 26)) {
    case 0:
      return op_set(of({3, 4}), some_mac(random));
    case 1:
      return op_set(6, 0x1000 | below(random, 4));
    case 2:
      return op_set(7, below(random, 8));
    case 3:
      return op_set(8, below(random, 64));
    case 4:
      return op_set(9, below(random, 4));
    case 5:
    case 6:
      return op_set(of({11, 12}), some_ip(random));
    case 7:
    case 8:
      return op_set(of({13, 14, 15, 16}), some_port(random));
    case 9:
      return one_in(random, 3) ? op_set(28, below(random, 0x100000)) : address(of({26, 27}));
    case 10:
      return op_plain(Op::kSetNwTtl, some_ttl(random));
    case 11:
      return op_plain(Op::kDecNwTtl);
    case 12:
      return op_plain(Op::kPushVlan, of({0x8100, 0x88a8}));
    case 13:
      return one_in(random, 3)   ? op_plain(Op::kSetVlanVid, below(random, 4))
             : one_in(random, 2) ? op_plain(Op::kSetVlanPcp, below(random, 8))
                                 : op_plain(Op::kPopVlan);
    case 14:
      return op_set(of({17, 18}), some_port(random));
    case 15:
      return op_set(of({19, 20}), below(random, 20));
    case 16:
      return one_in(random, 2) ? op_set(21, below(random, 4)) : op_set(of({24, 25, 32, 33}), some_mac(random));
    case 17:
      return op_set(of({22, 23}), some_ip(random));
    case 18:
      return one_in(random, 2) ? address(31) : op_set(of({29, 30}), of({0, 135, 136}));
    case 19:
      return one_in(random, 2) ? op_set(34, some_label(random)) : op_set(35, below(random, 8));
    case 20:
      return op_plain(Op::kSetPort, some_port(random) | 0u);
    case 21:
      return op_plain(of({0, 1}) != 0 ? Op::kSetMplsTtl : Op::kDecMplsTtl, 9);
    case 22:
      return one_in(random, 2) ? op_plain(Op::kPushMpls, 0x8847) : op_plain(Op::kPopMpls, of({0x0800, 0x86dd, 0x8847}));
    case 23:
      return one_in(random, 2) ? op_plain(Op::kPushPbb, 0x88e7) : op_plain(Op::kPopPbb);
    case 24:
      return op_plain(of({0, 1}) != 0 ? Op::kCopyTtlOut : Op::kCopyTtlIn);
    default:
      return op_set(37, below(random, 0x1000000));
  }
}

uint32_t random_output(std::mt19937& random, uint32_t ports, bool simple) {
  const uint32_t kind = below(random, simple ? 10 : 14);
  if (kind < 9) return 1 + below(random, ports);
  return kind == 9    ? reserved_port::kInPort
         : kind == 10 ? reserved_port::kController
         : kind == 11 ? reserved_port::kAll
         : kind == 12 ? reserved_port::kFlood
                      : 77;  // there is none
}

AclRule random_match(std::mt19937& random, uint32_t ports) {
  AclRule rule;
  const auto add = [&](const char* name, uint64_t value, uint64_t mask = ~uint64_t{0}) {
    const KeyField& field = *find_key_field(name);
    KeyValue ones = key_field_ones(field);
    ones.low &= mask;
    set_key_field(rule.value, field, {0, value & ones.low});
    set_key_field(rule.mask, field, ones);
  };
  rule.priority = below(random, 5);
  if (rule.priority == 0) return rule;
  for (int conditions = 1 + static_cast<int>(below(random, 2)); conditions > 0; --conditions) {
    static constexpr uint16_t kTypes[] = {0x0800, 0x0800, 0x86dd, 0x0806, 0x8847, 0x88e7};
    switch (below(random, 10)) {
      case 0:
        add(one_in(random, 2) ? "in_port" : "in_phy_port", 1 + below(random, ports));
        break;
      case 1:
        add("dl_type", kTypes[below(random, 6)]);
        break;
      case 2:
        add("vlan_vid", one_in(random, 2) ? 0x1000 : 0, 0x1000);
        break;
      case 3:
        add("vlan_vid", 0x1000 | below(random, 4));
        break;
      case 4:
        add("dl_type", 0x0800);
        add("nw_dst", 0x0a000000 | below(random, 3));
        break;
      case 5:
        add("nw_proto", one_in(random, 2) ? 6 : 17);
        add("tcp_dst", some_port(random));
        break;
      case 6:
        add("metadata", random(), one_in(random, 2) ? 1 : 0x100000000);
        break;
      case 7:
        add("dl_dst", some_mac(random));
        break;
      case 8:
        add("ip_dscp", random(), 1);
        break;
      default:
        add("mpls_label", some_label(random));
        add("dl_type", 0x8847);
    }
  }
  return rule;
}

}  // namespace

OpenFlowRules random_openflow_rules(std::mt19937& random, uint32_t ports, const RandomRulesOptions& options) {
  OpenFlowRules rules;
  rules.miss_to_controller = !options.simple && one_in(random, 2);
  rules.dead_ports = {1 + below(random, ports)};
  for (int i = 0; i < options.groups; ++i) {
    OpenFlowGroup group;
    group.kind = static_cast<GroupKind>(options.simple ? 1 + below(random, 3) : below(random, 4));
    for (uint32_t n = group.kind == GroupKind::kIndirect ? 1 : 1 + below(random, 3); n > 0; --n) {
      OpenFlowGroup::Bucket bucket;
      bucket.weight = 1 + below(random, 4);
      for (uint32_t edits = below(random, 3); edits > 0; --edits)
        bucket.actions.push_back(random_edit(random, options.simple));
      if (i > 0 && !options.simple && one_in(random, 5)) {
        bucket.actions.push_back(op_group(below(random, static_cast<uint32_t>(i))));
      } else if (!one_in(random, 8)) {
        bucket.actions.push_back(op_output(random_output(random, ports, options.simple)));
      }
      if (group.kind == GroupKind::kFastFailover) bucket.watch = 1 + below(random, ports);
      group.buckets.push_back(bucket);
    }
    rules.groups.push_back(group);
  }
  const auto leave = [&] {
    return options.groups > 0 && one_in(random, 4) ? op_group(below(random, static_cast<uint32_t>(options.groups)))
                                                   : op_output(random_output(random, ports, options.simple));
  };
  for (int i = 0; i < options.entries; ++i) {
    OpenFlowEntry entry;
    entry.table = static_cast<int>(below(random, static_cast<uint32_t>(options.tables)));
    entry.match = random_match(random, ports);
    OpenFlowProgram& program = entry.program;
    if (one_in(random, 4)) {
      // Of a switch, or of a router.
      if (one_in(random, 2))
        for (uint32_t n = 1 + below(random, 3); n > 0; --n)
          program.apply.push_back(one_in(random, 2) ? op_plain(Op::kDecNwTtl)
                                                    : op_set(one_in(random, 2) ? 3 : 4, some_mac(random)));
      program.apply.push_back(op_output(random_output(random, ports, options.simple)));
    } else {
      if (entry.table + 1 < options.tables && !one_in(random, 4))
        program.goto_table =
            entry.table + 1 + static_cast<int>(below(random, static_cast<uint32_t>(options.tables - entry.table - 1)));
      for (uint32_t n = below(random, 4); n > 0; --n) program.apply.push_back(random_edit(random, options.simple));
      if (!options.simple && one_in(random, 3)) {
        program.apply.push_back(leave());
        if (one_in(random, 2)) program.apply.push_back(random_edit(random, false));
      }
      program.clears = one_in(random, 8);
      for (uint32_t n = below(random, 3); n > 0; --n) {
        const OpenFlowOp op = random_edit(random, options.simple);
        // An action set has each type once.
        const bool there = std::any_of(program.write.begin(), program.write.end(), [&](const OpenFlowOp& w) {
          return (w[0] & 0xffff) == (op[0] & 0xffff) ||
                 ((w[0] & 0xff) == (op[0] & 0xff) && openflow::op_of(op[0]) != Op::kSetField);
        });
        if (!there) program.write.push_back(op);
      }
      if (!one_in(random, 3)) program.write.push_back(leave());
      if (one_in(random, 3)) {
        program.metadata = random() | uint64_t{random()} << 32;
        program.metadata_mask = one_in(random, 2) ? 0x1 : 0x1'0000'0001;
      }
    }
    rules.entries.push_back(entry);
  }
  return rules;
}

}  // namespace headrace::testing
