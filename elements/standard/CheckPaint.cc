#include "elements/standard/CheckPaint.hh"

#include "headrace/value_handlers.hh"

namespace headrace {

Status CheckPaint::configure(Args& args) {
  AnnotationArg<1> anno{offset};
  if (!args.read_mp("COLOR", color).read_p("ANNO", anno).complete()) return Status::failed();
  offset = anno;
  return {};
}

void CheckPaint::add_handlers(Handlers& handlers) { handlers.value("color", color); }

}  // namespace headrace
