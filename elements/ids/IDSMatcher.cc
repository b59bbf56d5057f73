#include "elements/ids/IDSMatcher.hh"

#include "elements/ids/ids_rules.hh"

namespace headrace {

Status IDSMatcher::configure(Args& args, Owner& owner) { return owner.configure(args); }

Status IDSMatcher::initialize(Errors& errors, Owner& owner, Element& element) {
  return owner.initialize(errors, element);
}

void IDSMatcher::add_handlers(Handlers& handlers, Owner& owner, ShaderElementBase& element) {
  owner.add_handlers(handlers, element);
}

auto IDSMatcher::note(const Owner& owner) const { return owner.note(); }

void IDSMatcher::refresh(const Owner& owner) {
  patterns = owner.matcher().view();
  port_groups = owner.port_groups().view();
  always = owner.program().always();
}

void IDSMatcher::mirror(Mirror& mirror, const Owner& owner) {
  patterns = owner.matcher().mirror(mirror);
  port_groups = owner.port_groups().mirror(mirror);
  always = owner.program().always();
  always.ports = mirror.array(always.ports, rules::RuleProgram::kPortBits);
}

Candidates IDSMatcher::scan_on_cpu(const PayloadBytes& payload, const PacketBytes& packet, const Owner& owner) const {
  const PortPair ports = port_groups.of(packet);
  if (!port_groups.any(ports)) return {};
  return owner.matcher().candidates(payload, [&](uint32_t pattern) { return port_groups.admits(ports, pattern); });
}

Next IDSMatcher::escape(Packet*& p, Emitter& emit, Owner& owner) const {
  const Candidates found{p->anno_u64(anno_offset::kCandidates)};
  return owner.look_at(*p, found) && emit.element().noutputs() > 1 ? 1 : 0;
}

HEADRACE_ELEMENT(IDSMatcher)

}  // namespace headrace
