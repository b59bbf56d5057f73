/// The messages of os-ken's tests, made by other switches: tests/data/openflow.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include "control/openflow/codec.hh"
#include "control/openflow/consistency.hh"
#include "control/openflow/framer.hh"
#include "stored_data.hh"
#include "support/openflow_messages.hh"
#include "support/source_dir.hh"

namespace headrace::openflow {
namespace {

using OpenFlowGolden = StoredData;

std::map<std::string, Bytes> golden_messages() {
  std::map<std::string, Bytes> messages;
  for (const char* const version : {"of10", "of13"}) {
    const std::filesystem::path folder = kSourceDir + "/tests/data/openflow/" + version;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      messages[std::string(version) + "/" + entry.path().stem().string()] = read_file(entry.path());
  }
  return messages;
}

/// Why a switch must refuse some of them, which it would be sent as a request or only shows here.
const std::map<std::string, ErrorCode>& refusals() {
  static const auto all = [] {
    std::map<std::string, ErrorCode> refused;
    const auto add = [&](const std::string& version, std::initializer_list<const char*> names, ErrorCode code) {
      for (const char* name : names) refused[version + name] = code;
    };
    // Actions of Nicira.
    add("of10/ovs-ofctl-of10-action_",
        {"dec_mpls_ttl", "dec_nw_ttl", "pop_mpls", "push_mpls", "set_mpls_label", "set_mpls_tc", "set_mpls_ttl"},
        ErrorCode::kActionBadExperimenter);
    add("of13/ovs-ofctl-of13-action_",
        {"controller", "controller2", "ct_nat", "ct_nat_v6", "dec_ttl_cnt_ids", "fintimeout", "note", "output_trunc",
         "sample", "sample2", "stack_pop", "stack_push"},
        ErrorCode::kActionBadExperimenter);
    // Fields of Nicira in the match: tunnel addresses, conjunctions, registers, connection tracking, marks.
    add("of13/ovs-ofctl-of13-",
        {"action_conjunction", "action_ct", "action_ct_clear", "action_ct_exec", "action_learn", "action_resubmit",
         "match_conj", "match_load_nx_register", "match_move_nx_register", "match_pkt_mark", "match_pkt_mark_masked"},
        ErrorCode::kMatchBadField);
    add("of13/libofproto-OFP13-",
        {"flow_mod", "flow_mod_conjunction", "flow_mod_match_conj", "flow_removed", "packet_in"},
        ErrorCode::kMatchBadField);
    // A field of 1.4, pbb_uca, with every other field beside it.
    add("of13/", {"4-59-ofp_packet_in", "4-60-ofp_flow_mod"}, ErrorCode::kMatchBadField);
    // They push PBB headers with Ethernet type 0x1234.
    add("of13/", {"4-2-ofp_flow_mod", "4-12-ofp_flow_stats_reply"}, ErrorCode::kActionBadArgument);
    // A band of an experimenter.
    add("of13/", {"4-45-ofp_meter_mod"}, ErrorCode::kMeterModBadBand);
    return refused;
  }();
  return all;
}

TEST_F(OpenFlowGolden, DecodeAndEncodeToTheSameBytes) {
  const auto messages = golden_messages();
  ASSERT_EQ(messages.size(), 117u);
  for (const auto& [name, bytes] : messages) {
    Message message;
    ASSERT_EQ(decode(bytes, message, Reading::kAsWritten), ErrorCode::kNone) << name;
    Bytes written;
    EXPECT_TRUE(encode(message, written)) << name;
    EXPECT_EQ(written, bytes) << name;
  }
}

TEST_F(OpenFlowGolden, ASwitchReadsThemOrRefusesThemAsItMust) {
  size_t refused = 0;
  for (const auto& [name, bytes] : golden_messages()) {
    Message message;
    const auto expected = refusals().find(name);
    const ErrorCode error = decode(bytes, message);
    if (expected != refusals().end()) {
      EXPECT_EQ(error, expected->second) << name;
      ++refused;
      continue;
    }
    ASSERT_EQ(error, ErrorCode::kNone) << name;
    Bytes written;
    EXPECT_TRUE(encode(message, written)) << name;
    // The one whose fields are not in the order of their numbers.
    if (name == "of13/4-4-ofp_packet_in") {
      EXPECT_EQ(written.size(), bytes.size()) << name;
    } else {
      EXPECT_EQ(written, bytes) << name;
    }
  }
  EXPECT_EQ(refused, refusals().size());
}

/// The match of a line of ovs-ofctl in our words.
KeyMatch match_of_line(std::string line) {
  for (const auto& [theirs, ours] :
       {std::pair{"in_port=LOCAL", "in_port=4294967294"}, {"dl_vlan=0xffff", "vlan_vid=0"}})
    if (const size_t at = line.find(theirs); at != std::string::npos) line.replace(at, std::strlen(theirs), ours);
  KeyMatch key;
  std::string_view words = std::string_view(line).substr(0, line.find("actions="));
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    if (!word.starts_with("priority=")) {
      EXPECT_EQ(add_to_match(key, word), "") << line;
    }
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return key;
}

TEST_F(OpenFlowGolden, FlowModsOfOvsOfctlHaveTheMatchesOfTheirText) {
  for (const char* const version : {"10", "13"}) {
    const std::string path = kSourceDir + "/tests/data/openflow/ovs_ofctl_" + version;
    Framer framer;
    framer.add(read_file(path + ".bin"));
    std::ifstream lines(path + ".flows");
    size_t entries = 0;
    for (std::string line; std::getline(lines, line); ++entries) {
      SCOPED_TRACE(line);
      const auto bytes = framer.next();
      Message message;
      ASSERT_EQ(decode(bytes, message), ErrorCode::kNone);
      const auto& mod = std::get<FlowMod>(message.body);
      EXPECT_EQ(mod.priority, std::stoi(line.substr(9)));
      EXPECT_EQ(mod.command, FlowCommand::kAdd);
      EXPECT_EQ(unparse_match(mod.match.key), unparse_match(match_of_line(line)));
      EXPECT_EQ(mod.match.key, match_of_line(line));
      EXPECT_EQ(mod.instructions.empty(), line.ends_with("actions=drop"));
      EXPECT_EQ(check_consistency(mod.match.key,
                                  message.version == Version::k1_3 ? mod.instructions : std::vector<Instruction>()),
                ErrorCode::kNone);
      ASSERT_EQ(decode(bytes, message, Reading::kAsWritten), ErrorCode::kNone);
      Bytes written;
      EXPECT_TRUE(encode(message, written));
      EXPECT_EQ(written, Bytes(bytes.begin(), bytes.end()));
    }
    EXPECT_GT(entries, 12u);
    EXPECT_EQ(framer.waiting(), 0u);
  }
}

TEST_F(OpenFlowGolden, DamagedOnesAreRefusedOrStable) {
  std::mt19937 random(5);
  size_t read = 0, refused = 0;
  for (const auto& [name, bytes] : golden_messages()) {
    for (int round = 0; round < 60; ++round) {
      Bytes damaged = bytes;
      for (int change = round % 3; change >= 0; --change) {
        const size_t at = 4 + random() % (damaged.size() - 4);
        damaged[at] =
            round % 2 != 0 ? static_cast<uint8_t>(random()) : static_cast<uint8_t>(damaged[at] ^ 1 << random() % 8);
      }
      if (round % 5 == 4) damaged.resize(8 + random() % (damaged.size() - 7));
      damaged[2] = static_cast<uint8_t>(damaged.size() >> 8);
      damaged[3] = static_cast<uint8_t>(damaged.size());
      for (const Reading reading : {Reading::kStrict, Reading::kAsWritten})
        ASSERT_EQ(check_fixed_point(damaged, reading), "") << name << " round " << round;
      Message message;
      (decode(damaged, message) == ErrorCode::kNone ? read : refused)++;
    }
  }
  EXPECT_GT(read, 1000u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace headrace::openflow
