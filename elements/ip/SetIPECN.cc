#include "elements/ip/SetIPECN.hh"

namespace headrace {

Status SetIPECN::configure(Args& args) {
  static const Choice<uint8_t> kNames{{"no", 0},     {"ect1", 1},   {"ect2", 2}, {"ce", 3}, {"-", 0}, {"0", 0},
                                      {"ECT(1)", 1}, {"ECT(0)", 2}, {"1", 1},    {"2", 2},  {"3", 3}};
  return args.read_mp("ECN", ecn, kNames).complete();
}

void SetIPECN::add_handlers(Handlers& handlers) { handlers.argument("ecn", "ECN", 0, true); }

}  // namespace headrace
