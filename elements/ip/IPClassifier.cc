#include "elements/ip/IPClassifier.hh"

#include "elements/ip/ip_program_host.hh"

namespace headrace {

Status IPClassifier::configure(Args& args, Owner& owner) {
  std::vector<std::string> patterns;
  if (!read_patterns(args, patterns)) return Status::failed();
  const int outputs = args.scope()->noutputs();
  if (static_cast<int>(patterns.size()) != outputs) {
    return args.errors().error("need {} argument{}, one per output port", outputs, outputs == 1 ? "" : "s");
  }
  const Status status = compile_ip_classifier(patterns, args.scope(), args.errors(), owner);
  if (status) {
    for (int unused : owner.unused_outputs(outputs)) args.errors().warning("output {} matches no packets", unused);
  }
  return status;
}

void IPClassifier::add_handlers(Handlers& handlers, Owner& owner, ShaderElement<IPClassifier>& element) {
  handlers.read("program", [&owner] { return owner.text(); });
  for (int i = 0; i < element.noutputs(); ++i) handlers.argument("pattern" + std::to_string(i), "", i, true);
}

HEADRACE_ELEMENT(IPClassifier)

}  // namespace headrace
