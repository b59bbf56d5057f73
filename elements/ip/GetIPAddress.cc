#include "elements/ip/GetIPAddress.hh"

namespace headrace {

Status GetIPAddress::configure(Args& args) {
  AnnotationArg<4> anno{annotation};
  std::optional<int32_t> at;
  std::string field;
  if (!args.read_p("OFFSET", at, Between{0, 65532}).read_p("ANNO", anno).read("IP", field, WordArg()).complete())
    return Status::failed();
  if (at.has_value() != field.empty()) return args.errors().error("set one of OFFSET, IP");
  if (!field.empty() && field != "src" && field != "dst") return args.errors().error("bad IP");
  annotation = anno;
  anchor = field.empty() ? Anchor::kData : Anchor::kNetwork;
  offset = at ? *at : field == "src" ? ip4::src.kOffset : ip4::dst.kOffset;
  return {};
}

}  // namespace headrace
