/// The error for each way in which a message can be wrong, as the specifications name it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "control/openflow/codec.hh"
#include "support/openflow_messages.hh"

namespace headrace::openflow {
namespace {

constexpr Version k10 = Version::k1_0, k13 = Version::k1_3;

ErrorCode error_of(const Bytes& bytes) {
  Message message;
  return decode(bytes, message);
}
ErrorCode error_of(Version version, uint8_t type, const std::string& body) {
  return error_of(message_from_hex(version, type, body));
}

const char* name_of(ErrorCode code) { return code == ErrorCode::kNone ? "none" : definition_of(code).name_1_3; }

#define EXPECT_ERROR(expected, ...) EXPECT_STREQ(name_of(error_of(__VA_ARGS__)), expected)

// The parts of a flow-mod of 1.3 in front of its match.
const std::string kFlowMod13 =
    "0000000000000001 0000000000000000 00 00 0000 0000 0064 ffffffff ffffffff ffffffff 0000 0000";
const std::string kAnyMatch13 = "0001 0004 00000000";

/// A flow-mod with these OXM fields.
std::string flow_with(const std::string& fields) {
  const size_t size = from_hex(fields).size() + 4;
  return kFlowMod13 + fmt::format("0001{:04x}", size) + fields + std::string((8 - size % 8) % 8 * 2, '0');
}
std::string flow_with_instructions(const std::string& instructions) { return kFlowMod13 + kAnyMatch13 + instructions; }
std::string flow_with_actions(const std::string& actions) {
  return flow_with_instructions(fmt::format("0004{:04x}00000000", from_hex(actions).size() + 8) + actions);
}

const std::string kAnyMatch10 = "003fffff" + std::string(72, '0');
std::string flow10_with(const std::string& actions, const std::string& command = "0000",
                        const std::string& flags = "0000") {
  return kAnyMatch10 + "0000000000000001" + command + "0000 0000 0064 ffffffff ffff" + flags + actions;
}

TEST(OpenFlowErrors, Header) {
  EXPECT_ERROR("OFPBRC_BAD_LEN", Bytes{});
  EXPECT_ERROR("OFPBRC_BAD_LEN", from_hex("04020008000000"));
  EXPECT_ERROR("OFPBRC_BAD_LEN", from_hex("0402000700000000"));
  EXPECT_ERROR("OFPBRC_BAD_LEN", from_hex("0402000900000000"));
  EXPECT_ERROR("OFPBRC_BAD_VERSION", from_hex("0202000800000000"));
  EXPECT_ERROR("OFPBRC_BAD_VERSION", from_hex("0602000800000000"));
  EXPECT_ERROR("OFPBRC_BAD_TYPE", from_hex("041e000800000000"));
  EXPECT_ERROR("OFPBRC_BAD_TYPE", from_hex("0116000800000000"));  // a type of 1.3 in 1.0
  EXPECT_ERROR("none", from_hex("0402000800000000"));
}

TEST(OpenFlowErrors, HelloOfAnyVersionIsRead) {
  Message message;
  for (const char* const hex :
       {"0600000800000000", "0200000800000000", "0400000a000000000001", "0600001000000000 0001000800000052",
        "0400000c00000000 00010003", "0400000c00000000 00010063"}) {
    EXPECT_EQ(decode(from_hex(hex), message), ErrorCode::kNone) << hex;
  }
  ASSERT_EQ(decode(from_hex("0600001800000000 0007000400000000 0001000800000052"), message), ErrorCode::kNone);
  EXPECT_EQ(message.hello_version, 6);
  EXPECT_EQ(std::get<Hello>(message.body).versions, std::vector<uint32_t>{0x52});
}

/// Every message cut short or lengthened by a few bytes, but for those that end with free bytes.
TEST(OpenFlowErrors, Lengths) {
  const struct {
    Version version;
    uint8_t type;
    std::string body;
  } messages[] = {
      {k13, 5, ""},
      {k13, 7, ""},
      {k13, 9, "00000080"},
      {k13, 14, flow_with("")},
      {k13, 15, "0000000000000001"},
      {k13, 16, "0000000100000000 0000000000010000 00000000 00000000 00000000 00000000"},
      {k13, 17, "ff00000000000000"},
      {k13, 18, "0000000000000000"},
      {k13, 18, "0004000000000000 ffffffff00000000"},
      {k13, 18,
       "0001000000000000 ff000000 ffffffff ffffffff 00000000 0000000000000000 0000000000000000 0001000400000000"},
      {k13, 20, ""},
      {k13, 22, "0000000100000000"},
      {k13, 24, "0000000200000000 0000000000000001"},
      {k13, 26, ""},
      {k13, 28, "000000000000000000000000000000000000000000000000"},
      {k13, 29, "0000000100000001 0001001000000001 0000000000000000"},
      {k10, 5, ""},
      {k10, 9, "00000080"},
      {k10, 14, flow10_with("")},
      {k10, 15, "0001 000000000001 00000000 00000000 00000000 00000000"},
      {k10, 16, "00000000"},
      {k10, 16, "00010000" + kAnyMatch10 + "ff00ffff"},
      {k10, 16, "00040000 ffff000000000000"},
      {k10, 18, ""},
      {k10, 20, "00010000"},
      {k10, 4, "00002320 0000000a 00000001"},
  };
  for (const auto& one : messages) {
    const std::string where = fmt::format("{} {} {}", one.version == k10 ? "1.0" : "1.3", one.type, one.body);
    const Bytes whole = message_from_hex(one.version, one.type, one.body);
    EXPECT_STREQ(name_of(error_of(whole)), "none") << where;
    for (size_t size = kHeaderBytes; size < whole.size(); ++size) {
      Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      cut[2] = 0;
      cut[3] = static_cast<uint8_t>(size);
      // Without its body a list of bands or buckets is empty, and a vendor message is another one.
      const std::string error = name_of(error_of(cut));
      const bool complete =
          (one.type == 29 && size == 16) || (one.version == k10 && one.type == 4 && size >= 12 && size < 16);
      EXPECT_EQ(error, complete                                             ? "none"
                       : one.type == 14 && size >= 52 && one.version == k13 ? "OFPBMC_BAD_LEN"
                       : one.type == 18 && size >= 52                       ? "OFPBMC_BAD_LEN"
                                                                            : "OFPBRC_BAD_LEN")
          << where << " cut to " << size;
    }
    Bytes longer = whole;
    longer.insert(longer.end(), 4, 0);
    longer[3] = static_cast<uint8_t>(longer.size());
    const std::string error = name_of(error_of(longer));
    EXPECT_EQ(error, one.type == 14 && one.version == k13   ? "OFPBIC_BAD_LEN"
                     : one.type == 14                       ? "OFPBAC_BAD_LEN"
                     : one.type == 15 && one.version == k13 ? "OFPGMFC_BAD_BUCKET"
                                                            : "OFPBRC_BAD_LEN")
        << where;
  }
}

TEST(OpenFlowErrors, Match) {
  EXPECT_ERROR("OFPBMC_BAD_TYPE", k13, 14, kFlowMod13 + "0000 0004 00000000");
  EXPECT_ERROR("OFPBMC_BAD_TYPE", k13, 14, kFlowMod13 + "0002 0004 00000000");
  EXPECT_ERROR("OFPBMC_BAD_LEN", k13, 14, kFlowMod13 + "0001 0003 00000000");
  EXPECT_ERROR("OFPBMC_BAD_LEN", k13, 14, kFlowMod13 + "0001 0009 00000000");
  EXPECT_ERROR("none", k13, 14, flow_with("80000004 00000001"));
  EXPECT_ERROR("OFPBMC_BAD_LEN", k13, 14, flow_with("80000003 000001"));
  EXPECT_ERROR("OFPBMC_BAD_LEN", k13, 14, flow_with("80000005 0000000001"));
  EXPECT_ERROR("OFPBMC_BAD_LEN", k13, 14, flow_with("80000004 0000"));
  EXPECT_ERROR("OFPBMC_BAD_LEN", k13, 14, flow_with("800000"));
  EXPECT_ERROR("OFPBMC_BAD_FIELD", k13, 14, flow_with("80005004 00000001"));  // number 40
  EXPECT_ERROR("OFPBMC_BAD_FIELD", k13, 14, flow_with("00000002 0001"));      // NXM
  EXPECT_ERROR("OFPBMC_BAD_FIELD", k13, 14, flow_with("ffff0008 4f4e4600 00000001"));
  EXPECT_ERROR("OFPBMC_DUP_FIELD", k13, 14, flow_with("80000004 00000001 80000004 00000001"));
  EXPECT_ERROR("OFPBMC_DUP_FIELD", k13, 14, flow_with("80000004 00000001 80000108 00000001 ffffffff"));
}

TEST(OpenFlowErrors, MasksAndValues) {
  EXPECT_ERROR("none", k13, 14, flow_with("8000070c 000000000000 010000000000"));
  EXPECT_ERROR("OFPBMC_BAD_WILDCARDS", k13, 14, flow_with("8000070c 010000000001 ffffffff0000"));
  EXPECT_ERROR("OFPBMC_BAD_WILDCARDS", k13, 14, flow_with("80000a02 0800 80001708 0a000001 ffffff00"));
  EXPECT_ERROR("OFPBMC_BAD_MASK", k13, 14, flow_with("80000108 00000000 0000ffff"));  // in_port has no masks
  EXPECT_ERROR("none", k13, 14, flow_with("80000108 00000001 ffffffff"));
  EXPECT_ERROR("none", k13, 14, flow_with("80000108 00000000 00000000"));
  EXPECT_ERROR("OFPBMC_BAD_MASK", k13, 14, flow_with("80000a02 0800 80001502 00f0"));  // a mask of a protocol
  EXPECT_ERROR("OFPBMC_BAD_VALUE", k13, 14, flow_with("80000c02 2001"));               // 14 bits of a VLAN
  EXPECT_ERROR("OFPBMC_BAD_MASK", k13, 14, flow_with("80000d04 1001 3fff"));
  EXPECT_ERROR("OFPBMC_BAD_VALUE", k13, 14, flow_with("80000c02 1001 80000e01 08"));
  EXPECT_ERROR("OFPBMC_BAD_VALUE", k13, 14, flow_with("80000a02 0800 80001001 40"));
  EXPECT_ERROR("OFPBMC_BAD_VALUE", k13, 14, flow_with("80000a02 86dd 80003804 00100000"));
}

TEST(OpenFlowErrors, EveryFieldNeedsWhatItRequires) {
  size_t checked = 0;
  for (const KeyField& field : key_fields()) {
    std::string value(oxm_bytes(field) * 2, '0');
    const std::string alone = fmt::format("{:08x}", oxm_header(field, false)) + value;
    const bool free = field.prerequisites[0].field == nullptr;
    EXPECT_STREQ(name_of(error_of(k13, 14, flow_with(alone))), free ? "none" : "OFPBMC_BAD_PREREQ") << field.name;
    checked += !free;
    // Of another type; even a field that shares its bits does not help.
    EXPECT_STREQ(name_of(error_of(k13, 14, flow_with("80000a02 88cc" + alone))), field.oxm == 5 ? "OFPBMC_DUP_FIELD"
                                                                                 : free         ? "none"
                                                                                                : "OFPBMC_BAD_PREREQ")
        << field.name;
  }
  EXPECT_EQ(checked, 33u);
  // TCP's port with UDP; no tag, and a priority; ICMPv6 with an option of the other type.
  EXPECT_ERROR("OFPBMC_BAD_PREREQ", k13, 14, flow_with("80000a02 0800 80001401 11 80001a02 0050"));
  EXPECT_ERROR("none", k13, 14, flow_with("80000a02 86dd 80001401 11 80001e02 0050"));
  EXPECT_ERROR("OFPBMC_BAD_PREREQ", k13, 14, flow_with("80000c02 0000 80000e01 01"));
  EXPECT_ERROR("none", k13, 14, flow_with("80000d04 1000 1000 80000e01 01"));
  const std::string icmp6 = "80000a02 86dd 80001401 3a 80003a01";
  EXPECT_ERROR("none", k13, 14, flow_with(icmp6 + "87 80004006 000000000001"));
  EXPECT_ERROR("OFPBMC_BAD_PREREQ", k13, 14, flow_with(icmp6 + "88 80004006 000000000001"));
}

TEST(OpenFlowErrors, Instructions) {
  EXPECT_ERROR("none", k13, 14, flow_with_instructions("0001000801000000 0005000800000000"));
  EXPECT_ERROR("OFPBIC_UNKNOWN_INST", k13, 14, flow_with_instructions("0007000800000000"));
  EXPECT_ERROR("OFPBIC_BAD_EXPERIMENTER", k13, 14, flow_with_instructions("ffff000800002320"));
  EXPECT_ERROR("OFPBIC_BAD_LEN", k13, 14, flow_with_instructions("0001000401000000"));
  EXPECT_ERROR("OFPBIC_BAD_LEN", k13, 14, flow_with_instructions("0001001001000000"));
  EXPECT_ERROR("OFPBIC_BAD_LEN", k13, 14, flow_with_instructions("0001001001000000 0000000000000000"));
  EXPECT_ERROR("OFPBIC_BAD_LEN", k13, 14, flow_with_instructions("0002001000000000 0000000000000000"));
  EXPECT_ERROR("OFPBIC_BAD_LEN", k13, 14, flow_with_instructions("00010008"));
  EXPECT_ERROR("OFPBIC_UNSUP_INST", k13, 14, flow_with_instructions("0001000801000000 0001000802000000"));
}

TEST(OpenFlowErrors, Actions13) {
  EXPECT_ERROR("none", k13, 14, flow_with_actions("0000001000000001 ffff000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_TYPE", k13, 14, flow_with_actions("0001000800000000"));  // COPY_TTL and others of 1.1
  EXPECT_ERROR("OFPBAC_BAD_EXPERIMENTER", k13, 14, flow_with_actions("ffff000800002320"));
  EXPECT_ERROR("OFPBAC_BAD_LEN", k13, 14, flow_with_actions("0000000800000001"));
  EXPECT_ERROR("OFPBAC_BAD_LEN", k13, 14, flow_with_actions("0000000400000001"));
  EXPECT_ERROR("OFPBAC_BAD_LEN", k13, 14, flow_with_actions("0000000c00000001 0000000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_LEN", k13, 14, flow_with_actions("0000002000000001 0000000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_LEN", k13, 14, flow_with_actions("0012001000000000 0000000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_OUT_PORT", k13, 14, flow_with_actions("0000001000000000 ffff000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_OUT_PORT", k13, 14, flow_with_actions("00000010ffffffff ffff000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_OUT_PORT", k13, 14, flow_with_actions("00000010ffffff01 ffff000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_OUT_GROUP", k13, 14, flow_with_actions("00160008ffffffff"));
  EXPECT_ERROR("OFPBAC_BAD_ARGUMENT", k13, 14, flow_with_actions("0011000808000000"));
  EXPECT_ERROR("OFPBAC_BAD_ARGUMENT", k13, 14, flow_with_actions("0013000808000000"));
  EXPECT_ERROR("OFPBAC_BAD_ARGUMENT", k13, 14, flow_with_actions("001a000888a80000"));
}

TEST(OpenFlowErrors, SetField) {
  EXPECT_ERROR("none", k13, 14, flow_with_actions("0019001080000606 0001020304050000"));
  EXPECT_ERROR("OFPBAC_BAD_SET_TYPE", k13, 14, flow_with_actions("0019001080000004 0000000100000000"));  // in_port
  EXPECT_ERROR("OFPBAC_BAD_SET_TYPE", k13, 14, flow_with_actions("0019001080000204 0000000100000000"));
  EXPECT_ERROR("OFPBAC_BAD_SET_TYPE", k13, 14, flow_with_actions("0019001080000408 0000000000000001"));  // metadata
  EXPECT_ERROR("OFPBAC_BAD_SET_TYPE", k13, 14, flow_with_actions("0019001080007f04 0000000100000000"));
  EXPECT_ERROR("OFPBAC_BAD_SET_TYPE", k13, 14, flow_with_actions("0019001000000a02 0800000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_SET_TYPE", k13, 14, flow_with_actions("001900188000070c 000000000000ffffffffffff 00000000"));
  EXPECT_ERROR("OFPBAC_BAD_SET_LEN", k13, 14, flow_with_actions("0019001080000605 0001020304000000"));
  EXPECT_ERROR("OFPBAC_BAD_SET_LEN", k13, 14, flow_with_actions("0019001880000606 0001020304050000 0000000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_SET_LEN", k13, 14, flow_with_actions("0019001080000614 0001020304050000"));
  EXPECT_ERROR("OFPBAC_BAD_SET_ARGUMENT", k13, 14, flow_with_actions("0019001080000e01 0800000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_SET_ARGUMENT", k13, 14, flow_with_actions("0019001080001001 4000000000000000"));
}

TEST(OpenFlowErrors, Actions10) {
  EXPECT_ERROR("none", k10, 14, flow10_with("0000000800010000"));
  EXPECT_ERROR("OFPBAC_BAD_TYPE", k10, 14, flow10_with("000c000800010000"));
  EXPECT_ERROR("OFPBAC_BAD_EXPERIMENTER", k10, 14, flow10_with("ffff000800002320"));  // 1.0: BAD_VENDOR
  EXPECT_ERROR("OFPBAC_BAD_LEN", k10, 14, flow10_with("0000001000010000 0000000000000000"));
  EXPECT_ERROR("OFPBAC_BAD_LEN", k10, 14, flow10_with("0000000700010000"));
  EXPECT_ERROR("OFPBAC_BAD_LEN", k10, 14, flow10_with("0004000800010000"));
  EXPECT_ERROR("OFPBAC_BAD_OUT_PORT", k10, 14, flow10_with("0000000800000000"));
  EXPECT_ERROR("OFPBAC_BAD_OUT_PORT", k10, 14, flow10_with("00000008ffff0000"));
  EXPECT_ERROR("OFPBAC_BAD_OUT_PORT", k10, 14, flow10_with("00000008ff010000"));
  EXPECT_ERROR("none", k10, 14, flow10_with("00000008ff000000"));
  EXPECT_ERROR("OFPBAC_BAD_ARGUMENT", k10, 14, flow10_with("0001000810000000"));
  EXPECT_ERROR("OFPBAC_BAD_ARGUMENT", k10, 14, flow10_with("0002000808000000"));
  EXPECT_ERROR("OFPBAC_BAD_ARGUMENT", k10, 14, flow10_with("0008000801000000"));
  EXPECT_ERROR("OFPBRC_BAD_LEN", k10, 13, "ffffffff ffff 0010 0000000800010000");
}

TEST(OpenFlowErrors, Commands) {
  EXPECT_ERROR("OFPFMFC_BAD_COMMAND", k10, 14, flow10_with("", "0005"));
  EXPECT_ERROR("OFPFMFC_BAD_COMMAND", k10, 14, flow10_with("", "0100"));
  EXPECT_ERROR("OFPFMFC_BAD_FLAGS", k10, 14, flow10_with("", "0000", "0008"));
  EXPECT_ERROR("none", k10, 14, flow10_with("", "0000", "0007"));
  std::string flow = flow_with("");
  flow.replace(37, 2, "05");
  EXPECT_ERROR("OFPFMFC_BAD_COMMAND", k13, 14, flow);
  flow = flow_with("");
  flow.replace(kFlowMod13.size() - 9, 4, "0020");
  EXPECT_ERROR("OFPFMFC_BAD_FLAGS", k13, 14, flow);
  EXPECT_ERROR("OFPGMFC_BAD_COMMAND", k13, 15, "0003000000000001");
  EXPECT_ERROR("OFPGMFC_BAD_TYPE", k13, 15, "0000040000000001");
  EXPECT_ERROR("OFPGMFC_BAD_BUCKET", k13, 15, "0000000000000001 000800000000000000000000");
  EXPECT_ERROR("OFPGMFC_BAD_BUCKET", k13, 15, "0000000000000001 00200000 ffffffff ffffffff 00000000");
  EXPECT_ERROR("OFPBAC_BAD_TYPE", k13, 15, "0000000000000001 00180000 ffffffff ffffffff 00000000 0001000800000000");
  EXPECT_ERROR("OFPMMFC_BAD_COMMAND", k13, 29, "0003000100000001");
  EXPECT_ERROR("OFPMMFC_BAD_FLAGS", k13, 29, "0000000300000001");
  EXPECT_ERROR("OFPMMFC_BAD_FLAGS", k13, 29, "0000001100000001");
  EXPECT_ERROR("OFPMMFC_BAD_BAND", k13, 29, "0000000100000001 0003001000000001 0000000000000000");
  EXPECT_ERROR("OFPMMFC_BAD_BAND", k13, 29, "0000000100000001 ffff001000000001 0000000000002320");
  EXPECT_ERROR("OFPBRC_BAD_LEN", k13, 29, "0000000100000001 0001001800000001 0000000000000000 0000000000000000");
  EXPECT_ERROR("OFPRRFC_BAD_ROLE", k13, 24, "0000000400000000 0000000000000001");
  EXPECT_ERROR("OFPRRFC_BAD_ROLE", k10, 4, "00002320 0000000a 00000003");
}

TEST(OpenFlowErrors, Multipart) {
  EXPECT_ERROR("OFPBRC_BAD_MULTIPART", k13, 18, "000e000000000000");
  EXPECT_ERROR("OFPBRC_BAD_MULTIPART", k10, 16, "00060000");
  const std::string table = "000c000000000000 {} 0000000000000000" + std::string(64, '0') + std::string(64, '0');
  const auto with = [&](const std::string& property) {
    return "000c000000000000" + fmt::format("{:04x}", 64 + from_hex(property).size()) + "010000000000" +
           std::string(112, '0') + property;
  };
  EXPECT_ERROR("none", k13, 18, with("0000000800010004"));
  EXPECT_ERROR("OFPTFFC_BAD_TYPE", k13, 18, with("0009000800010004"));
  EXPECT_ERROR("OFPTFFC_BAD_LEN", k13, 18, with("0000000300010004"));
  EXPECT_ERROR("OFPTFFC_BAD_LEN", k13, 18, with("0000001000010004"));
  EXPECT_ERROR("OFPTFFC_BAD_LEN", k13, 18, with("0000000700010004"));
  EXPECT_ERROR("OFPTFFC_BAD_LEN", k13, 18, with("0000000800010008"));
  EXPECT_ERROR("OFPTFFC_BAD_LEN", k13, 18, "000c000000000000 003f" + std::string(124, '0'));
}

TEST(OpenFlowErrors, UnknownExperimenters) {
  const auto error = [](Version version, uint8_t type, const char* body) {
    Message message;
    EXPECT_EQ(decode(message_from_hex(version, type, body), message), ErrorCode::kNone);
    return unknown_experimenter(message);
  };
  // ovs-ofctl asks for Nicira's flow format before it uses 1.0.
  EXPECT_EQ(error(k10, 4, "00002320 0000000c 00000002"), ErrorCode::kRequestBadExpType);
  EXPECT_EQ(error(k10, 4, "00000001 0000000c"), ErrorCode::kRequestBadExperimenter);
  EXPECT_EQ(error(k10, 4, "00002320 0000000a 00000001"), ErrorCode::kNone);
  EXPECT_EQ(error(k10, 16, "ffff0000 00002320 00000000"), ErrorCode::kRequestBadExperimenter);
  EXPECT_EQ(error(k13, 4, "00002320 0000000a"), ErrorCode::kRequestBadExperimenter);
  EXPECT_EQ(error(k13, 18, "ffff000000000000 00002320 00000000"), ErrorCode::kRequestBadExperimenter);
  EXPECT_EQ(error(k13, 20, ""), ErrorCode::kNone);
}

TEST(OpenFlowErrors, AreWrittenInTheVersionOfTheMessage) {
  Bytes offending = message_from_hex(k10, 4, "00002320 0000000c 00000002");
  Bytes out;
  EXPECT_TRUE(encode(error_message(ErrorCode::kRequestBadExpType, offending), out));
  EXPECT_EQ(out, from_hex("0101002000000007 0001 0004 0104001400000007 00002320 0000000c 00000002"));
  offending = message_from_hex(k13, 14, flow_with("80005004 00000001"));
  out.clear();
  EXPECT_TRUE(encode(error_message(ErrorCode::kMatchBadField, offending), out));
  ASSERT_EQ(out.size(), 12u + 64u);
  EXPECT_EQ(Bytes(out.begin(), out.begin() + 12), from_hex("0401004c00000007 0004 0006"));
  EXPECT_TRUE(std::equal(out.begin() + 12, out.end(), offending.begin()));
  // What 1.0 has no number for.
  out.clear();
  EXPECT_TRUE(encode(error_message(ErrorCode::kMatchBadPrereq, k10, 7, {}), out));
  EXPECT_EQ(out, from_hex("0101000c00000007 0003 0005"));
  out.clear();
  EXPECT_TRUE(encode(error_message(ErrorCode::kRequestBadLen, from_hex("0402")), out));
  EXPECT_EQ(out, from_hex("0401000e00000000 0001 0006 0402"));
}

}  // namespace
}  // namespace headrace::openflow
