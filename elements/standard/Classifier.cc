#include "elements/standard/Classifier.hh"

#include <cstring>
#include <headrace/element.hh>

#include "tables/decision/classifier_patterns.hh"
#include "tables/decision/decision_program.hh"

namespace headrace {

namespace {

/// The words of a packet in this host's memory.
struct PacketWords {
  const Packet& packet;
  uint32_t length(uint32_t section) const { return section == decision_section::kFrame ? packet.length() : 0; }
  uint32_t load(uint32_t, uint32_t offset) const {
    uint32_t word;
    std::memcpy(&word, packet.data() + offset, sizeof word);
    return word;
  }
  uint8_t byte(uint32_t, uint32_t offset) const { return packet.data()[offset]; }
};

}  // namespace

Status Classifier::configure(Args& args, Owner& owner) {
  std::vector<std::string> patterns;
  if (!args.consume_rest(patterns).complete()) return Status::failed();
  const int outputs = args.scope()->noutputs();
  if (static_cast<int>(patterns.size()) != outputs) {
    return args.errors().error("need {} argument{}, one per output port", outputs, outputs == 1 ? "" : "s");
  }
  const Status status = compile_classifier(patterns, args.errors(), owner);
  if (status) {
    for (int unused : owner.unused_outputs(outputs)) args.errors().warning("output {} matches no packets", unused);
  }
  return status;
}

void Classifier::add_handlers(Handlers& handlers, Owner& owner) {
  handlers.read(
      "program", [&owner] { return owner.text(); }, Handler::kCalm);
}

void Classifier::refresh(const Owner& owner) { renew(program, owner.view()); }

void Classifier::mirror(Mirror& mirror, const Owner& owner) {
  program = owner.view_at(mirror.array(owner.image(), owner.image_size()));
}

ShaderCode Classifier::specialize(const Owner& owner) const { return {shade_by_code(owner)}; }

Next Classifier::escape(Packet*& p, Emitter& emit, Owner& owner) {
  const int output = owner.view().match(PacketWords{*p});
  if (output >= 0) return static_cast<Next>(output);
  static_cast<ShaderElementBase&>(emit.element()).count_event(kNoMatch);
  return kDrop;
}

HEADRACE_ELEMENT(Classifier)

}  // namespace headrace
