#include "elements/standard/PaintTee.hh"

namespace headrace {

Status PaintTee::configure(Args& args) {
  AnnotationArg<1> anno{offset};
  if (!args.read_mp("COLOR", color).read_p("ANNO", anno).complete()) return Status::failed();
  offset = anno;
  return {};
}

void PaintTee::add_handlers(Handlers& handlers) { handlers.value("color", color); }

ShaderCode PaintTee::specialize() const { return known_members({{"offset", offset}}); }

Next PaintTee::escape(Packet*& p, Emitter& emit) const {
  if (Packet* copy = p->clone())
    emit(1, copy);
  else
    static_cast<ShaderElementBase&>(emit.element()).count_event(kNoCopy);
  return 0;
}

}  // namespace headrace
