#include "elements/standard/PaintSwitch.hh"

namespace headrace {

Status PaintSwitch::configure(Args& args) {
  AnnotationArg<1> anno{offset};
  if (!args.read_p("ANNO", anno).complete()) return Status::failed();
  offset = anno;
  return {};
}

Next PaintSwitch::escape(Packet*& p, Emitter& emit) const {
  auto& element = static_cast<ShaderElementBase&>(emit.element());
  const int n = element.noutputs();
  for (int i = 0; i < n - 1; ++i) {
    Packet* copy = p->clone();
    if (copy)
      emit(static_cast<Next>(i), copy);
    else
      element.count_event(kNoCopy);
  }
  return n > 0 ? static_cast<Next>(n - 1) : kDrop;
}

}  // namespace headrace
