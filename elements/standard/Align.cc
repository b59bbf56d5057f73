#include "elements/standard/Align.hh"

namespace headrace {

Status Align::configure(Args& args) {
  uint32_t modulus, offset;
  if (!args.read_mp("MODULUS", modulus).read_mp("OFFSET", offset).complete()) return Status::failed();
  if (modulus != 2 && modulus != 4 && modulus != 8) return args.errors().error("MODULUS must be 2, 4, or 8");
  if (offset >= modulus) return args.errors().error("OFFSET must be smaller than MODULUS");
  return {};
}

}  // namespace headrace
