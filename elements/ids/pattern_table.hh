#pragma once
/// \file
/// What elements that search for literal patterns share on the host.

#include <algorithm>
#include <headrace/element.hh>
#include <string>
#include <vector>

#include "elements/ids/pattern_shader.hh"
#include "tables/files/file_stamp.hh"
#include "tables/pattern/pattern_matcher.hh"

namespace headrace {

/// The patterns of one element.
class PatternTable {
 public:
  /// Reads `PATTERN, ..., FILE, NOCASE, ENGINE`; with `automaton`, a first argument that is no keyword may be a FILE,
  /// and ENGINE is one of the automata.
  Status configure(Args& args, bool automaton);
  void add_handlers(Handlers& handlers, ShaderElementBase& element, int matched);
  /// The files that patterns came from have not changed since.
  bool current() const {
    return std::all_of(files_.begin(), files_.end(), [](const FileStamp& file) { return file.unchanged(); });
  }
  const PatternMatcher& matcher() const { return matcher_; }

 private:
  PatternMatcher matcher_;
  std::vector<FileStamp> files_;
};

// --- The shader's part on the host

template <typename Self>
Status PatternShader<Self>::configure(Args& args, Owner& owner) {
  matched_port = args.scope()->noutputs() > 1;
  return owner.configure(args, Self::kEngines == PatternEngines::kAutomata);
}

template <typename Self>
void PatternShader<Self>::add_handlers(Handlers& handlers, Owner& owner, ShaderElementBase& element) {
  owner.add_handlers(handlers, element, kMatched);
}

template <typename Self>
void PatternShader<Self>::refresh(const Owner& owner) {
  patterns = owner.matcher().view();
}

template <typename Self>
void PatternShader<Self>::mirror(Mirror& mirror, const Owner& owner) {
  patterns = owner.matcher().mirror(mirror);
}

template <typename Self>
FirstMatch PatternShader<Self>::scan_on_cpu(const PayloadBytes& payload, const Owner& owner) const {
  return owner.matcher().first(payload);
}

/// The CPU's search stops at the first match, so that no payload is too costly for it.
template <typename Self>
Next PatternShader<Self>::escape(Packet*& p, Emitter& emit, Owner& owner) const {
  const FirstMatch found = owner.matcher().first(l4_payload(bytes_of(*p)));
  if (!found.found()) return 0;
  static_cast<ShaderElementBase&>(emit.element()).count_event(kMatched);
  p->set_anno_u32(anno_offset::kPattern, found.pattern());
  return matched_port;
}

}  // namespace headrace
