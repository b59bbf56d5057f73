#pragma once
/// \file
/// What IDSMatcher has on the host: rules, the search for their patterns, and what became of packets.

#include <headrace/shader.hh>
#include <optional>
#include <string>
#include <vector>

#include "elements/ids/alert_log.hh"
#include "tables/files/file_stamp.hh"
#include "tables/pattern/pattern_matcher.hh"
#include "tables/rules/port_groups.hh"
#include "tables/rules/rule_program.hh"
#include "tables/rules/rule_reader.hh"

namespace headrace {

class IDSRules {
 public:
  Status configure(Args& args);
  Status initialize(Errors& errors, const Element& element);
  void add_handlers(Handlers& handlers, ShaderElementBase& element);
  std::string note() const;
  /// The files that rules came from have not changed since.
  bool current() const;

  const PatternMatcher& matcher() const { return matcher_; }
  const rules::RuleProgram& program() const { return *program_; }
  const rules::PortGroups& port_groups() const { return port_groups_; }

  /// Writes the alerts that wait.
  void write_out() { log_.flush(); }
  /// Whether the packet has alerts; they are counted and written. \param candidates the patterns found in its payload
  bool look_at(const Packet& p, Candidates candidates);

  static constexpr int kCandidateCounter = 0;  // of the shader

 private:
  enum { kConfirmed, kPassed, kCut, kRescans, kEvents };
  /// Rules that match one packet. One with more of them than kMost is cut.
  struct Matches;
  /// Patterns found in one payload, each once.
  struct Seen {
    std::vector<uint64_t> bits;
    std::vector<uint32_t> patterns;
  };

  Status read(const std::vector<std::string>& files, const std::vector<std::string>& classification,
              const rules::RuleReader::Options& options, bool strict, Errors& errors);
  Status build(PatternEngine engine, Errors& errors);
  void look_for_all(const rules::PacketFacts& facts, const PacketBytes& packet, Matches& matches);
  void check(uint32_t rule, const rules::PacketFacts& facts, Matches& matches);
  std::string rules_text() const;
  std::string refused_text() const;
  std::string alerts_text(bool top) const;

  rules::RuleSet set_;  // without its rules, once they are in the program
  uint64_t flow_ignored_ = 0;
  std::string summary_;
  std::optional<rules::RuleProgram> program_;
  rules::PortGroups port_groups_;
  PatternMatcher matcher_;
  AlertLog::Options log_options_;
  AlertLog log_;
  ThreadCounters alerts_;  // by rule
  ThreadCounters events_{kEvents};
  PerThread<Seen> seen_;
  std::vector<FileStamp> files_;
};

}  // namespace headrace
