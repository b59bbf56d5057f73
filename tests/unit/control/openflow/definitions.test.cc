/// Every number of the definitions against those of os-ken, which others have typed.

#include "control/openflow/definitions.hh"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "control/openflow/errors.hh"
#include "control/openflow/match.hh"
#include "stored_data.hh"
#include "support/source_dir.hh"

namespace headrace::openflow {
namespace {

using OpenFlowNumbers = StoredData;

using Constants = std::map<std::string, int64_t>;

Constants read_constants(const char* file) {
  Constants constants;
  std::ifstream in(kSourceDir + "/tests/data/openflow/" + file);
  std::string name;
  for (int64_t number = 0; in >> name;) {
    if (name == "oxm") {
      std::getline(in, name);
    } else if (in >> number) {
      constants[name] = number;
    }
  }
  return constants;
}

/// Ours by name; a name that stands twice must have one number.
Constants our_constants(Version version) {
  Constants ours;
  const auto add = [&](const char* name, int64_t number) {
    if (name == nullptr) return;
    const auto [at, added] = ours.emplace(name, number);
    EXPECT_TRUE(added || at->second == number) << name;
  };
  for (const DefinitionTable& table : definition_tables())
    for (const Definition& row : table.rows) add(row.name(version), row.number(version));
  for (const ErrorDefinition& error : error_definitions())
    add(version == Version::k1_0 ? error.name_1_0 : error.name_1_3, error.code(version));
  return ours;
}

void compare(Version version, const char* file, const std::set<std::string>& prefixes,
             const std::set<std::string>& theirs_only, const std::set<std::string>& ours_only) {
  const Constants theirs = read_constants(file), ours = our_constants(version);
  ASSERT_GT(theirs.size(), 150u);
  for (const auto& [name, number] : ours) {
    if (ours_only.count(name) != 0) continue;
    ASSERT_NE(theirs.find(name), theirs.end()) << name;
    EXPECT_EQ(theirs.at(name), number) << name;
  }
  size_t compared = 0;
  for (const auto& [name, number] : theirs) {
    if (prefixes.count(name.substr(0, name.find('_'))) == 0 || theirs_only.count(name) != 0) continue;
    ++compared;
    EXPECT_NE(ours.find(name), ours.end()) << name << " is missing";
  }
  EXPECT_GT(compared, 100u);
}

TEST_F(OpenFlowNumbers, AreOsKensIn10) {
  compare(Version::k1_0, "constants_10.txt",
          {"OFPT", "OFPST", "OFPAT", "OFPFC", "OFPFF", "OFPC",   "OFPPC",  "OFPPS",  "OFPPF",   "OFPP",    "OFPSF",
           "OFPR", "OFPRR", "OFPPR", "OFPQT", "OFPET", "OFPHFC", "OFPBRC", "OFPBAC", "OFPFMFC", "OFPPMFC", "OFPQOFC"},
          // A Nicira extension; a reserved bit; no bit; a mask.
          {"OFPC_FRAG_NX_MATCH", "OFPC_RESERVED", "OFPPS_STP_LISTEN", "OFPPS_STP_MASK"}, {});
}

TEST_F(OpenFlowNumbers, AreOsKensIn13) {
  compare(Version::k1_3, "constants_13.txt",
          {"OFPT",    "OFPMP",   "OFPIT",   "OFPAT",   "OFPFC",   "OFPFF",  "OFPGC",   "OFPGT",   "OFPGFC",
           "OFPMC",   "OFPMF",   "OFPMBT",  "OFPC",    "OFPPC",   "OFPPS",  "OFPPF",   "OFPP",    "OFPG",
           "OFPM",    "OFPTT",   "OFPMPF",  "OFPR",    "OFPRR",   "OFPPR",  "OFPCR",   "OFPTFPT", "OFPQT",
           "OFPET",   "OFPHFC",  "OFPBRC",  "OFPBAC",  "OFPBIC",  "OFPBMC", "OFPFMFC", "OFPGMFC", "OFPPMFC",
           "OFPTMFC", "OFPQOFC", "OFPSCFC", "OFPRRFC", "OFPMMFC", "OFPTFFC"},
          {}, {});
}

TEST_F(OpenFlowNumbers, FieldsAreOsKens) {
  std::ifstream in(kSourceDir + "/tests/data/openflow/constants_13.txt");
  std::string word, name;
  size_t seen = 0;
  while (in >> word) {
    uint32_t number = 0, size = 0;
    if (word != "oxm" || !(in >> number >> size >> name)) continue;
    ASSERT_LT(number, key_fields().size()) << name;
    EXPECT_EQ(oxm_header(key_fields()[number], false), 0x80000000u | number << 9 | size) << name;
    ++seen;
  }
  EXPECT_EQ(seen, key_fields().size());
}

TEST(OpenFlowDefinitions, EveryErrorHasATypeInBothVersionsOrIsOf13Alone) {
  for (const ErrorDefinition& error : error_definitions()) {
    EXPECT_GE(find_number(error_types(), Version::k1_3, error.type_1_3), 0) << error.name_1_3;
    if (error.type_1_0 >= 0) {
      EXPECT_GE(find_number(error_types(), Version::k1_0, error.type_1_0), 0) << error.name_1_3;
    }
  }
  EXPECT_EQ(error_text(Version::k1_3, 1, 6), "BAD_REQUEST/BAD_LEN");
  EXPECT_EQ(error_text(Version::k1_0, 1, 3), "BAD_REQUEST/BAD_VENDOR");
  EXPECT_EQ(error_text(Version::k1_0, 3, 5), "FLOW_MOD_FAILED/UNSUPPORTED");
  EXPECT_EQ(error_text(Version::k1_3, 77, 6), "77/6");
}

TEST(OpenFlowDefinitions, FlagsOf10ThatMeanTheSameMoveAndOthersStay) {
  const auto features = port_feature_flags();
  EXPECT_EQ(flags_from_wire(features, Version::k1_0, 1 << 7 | 1 << 6), 1u << 11 | 1u << 6);  // copper, 10 Gbit/s
  EXPECT_EQ(flags_to_wire(features, Version::k1_0, 1u << 11 | 1u << 6), 1u << 7 | 1u << 6);
  EXPECT_EQ(flags_to_wire(features, Version::k1_0, 1u << 7), 0u);  // 40 Gbit/s
  const auto capabilities = capability_flags();
  EXPECT_EQ(flags_from_wire(capabilities, Version::k1_0, 8 | 1), uint64_t{8} << 32 | 1);  // STP, not groups
  EXPECT_EQ(flags_to_wire(capabilities, Version::k1_3, uint64_t{8} << 32 | 1), 1u);
  for (const uint32_t wire : {0u, 1u, 0x300u, 0xffffffffu, 0x12345678u})
    for (const auto rows : {features, capabilities, port_config_flags(), port_state_flags(), flow_mod_flags()})
      for (const Version version : {Version::k1_0, Version::k1_3})
        EXPECT_EQ(flags_to_wire(rows, version, flags_from_wire(rows, version, wire)), wire);
}

}  // namespace
}  // namespace headrace::openflow
