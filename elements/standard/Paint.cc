#include "elements/standard/Paint.hh"

namespace headrace {

Status Paint::configure(Args& args) {
  AnnotationArg<1> anno{offset};
  if (!args.read_mp("COLOR", color).read_p("ANNO", anno).complete()) return Status::failed();
  offset = anno;
  return {};
}

void Paint::add_handlers(Handlers& handlers) { handlers.value("color", color); }

}  // namespace headrace
