#include "test_shaders.hh"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/args.hh"
#include "headrace/handlers.hh"

namespace headrace {

Next OffloadFan::escape(Packet*& p, Emitter& emit) const {
  if (Packet* copy = p->clone()) emit(2, copy);
  return 1;
}

Status OffloadFar::configure(Args& args) { return args.read_mp("OFFSET", offset).complete(); }
Status OffloadHash::configure(Args& args) { return args.read_p("KEY", key).complete(); }
Status OffloadEcho::configure(Args& args) {
  return args.read_mp("KEY", key).read_p("FRONT", front).read_p("BACK", back).complete();
}
Status OffloadLedger::configure(Args& args) { return args.read_p("OFFSET", offset).complete(); }
Status OffloadRash::configure(Args& args) { return args.read_mp("OFFSET", offset).complete(); }
Status OffloadScan::configure(Args& args) { return args.read_mp("VALUE", value).complete(); }
Status OffloadSly::configure(Args& args) { return args.read_mp("OFFSET", offset).complete(); }

void OffloadTwins::refresh(const Owner& owner) { tables = owner.tables; }

void OffloadTwins::mirror(Mirror& mirror, const Owner& owner) {
  struct Addresses {
    const uint32_t *part, *first, *second;
  };
  Addresses addresses;
  addresses.part = mirror.array(owner.first, Owner::kSize / 2);
  addresses.first = mirror.array(owner.first, Owner::kSize);
  addresses.second = mirror.array(owner.second, Owner::kSize);
  tables = &mirror.object(addresses)->part;
}

void OffloadTwins::add_handlers(Handlers& handlers, Owner& owner) {
  handlers.write("set", [&owner](const std::string& text, Errors& errors) -> Status {
    uint32_t value;
    if (!parse_argument(text, value, ArgContext())) return errors.error("expected a number");
    std::fill_n(owner.first, Owner::kSize, value);
    std::fill_n(owner.second, Owner::kSize, value);
    return {};
  });
}

Status OffloadBouncer::configure(Args& args) {
  return args.read_p("OFFSET", offset, Between{0, 31}).read_p("DIVISOR", divisor, Between{1, 255}).complete();
}

void OffloadBouncer::release(Packet** packets, Results<Result> results, int n, Owner&,
                             ShaderElementBase& element) const {
  for (int i = 0; i < n; ++i) {
    if (results[i].byte % static_cast<uint32_t>(divisor) != 0) continue;
    element.count_event(kBounced);
    std::exchange(packets[i], nullptr)->kill();
  }
}

void OffloadLedger::release(Packet* const* packets, Results<Result> results, int n, Owner& owner) const {
  constexpr int kFlowAnno = 24, kNumberAnno = 28;
  OffloadLedgerOwner::Book& book = owner.books.local();
  for (int i = 0; i < n; ++i) {
    ++book.packets[results[i].entry];
    book.bytes[results[i].entry] += results[i].length;
    uint32_t& next = book.next[packets[i]->anno_u32(kFlowAnno) % OffloadLedgerOwner::kFlows];
    const uint32_t number = packets[i]->anno_u32(kNumberAnno);
    book.disorder += number < next;
    next = number + 1;
  }
}

void OffloadLedger::add_handlers(Handlers& handlers, Owner& owner) {
  handlers.read("ledger", [&owner] {
    std::string text;
    uint64_t disorder = 0;
    for (int entry = 0; entry < OffloadLedgerOwner::kEntries; ++entry) {
      uint64_t packets = 0, bytes = 0;
      for (int thread = 0; thread < owner.books.size(); ++thread) {
        packets += owner.books[thread].packets[entry];
        bytes += owner.books[thread].bytes[entry];
      }
      text += fmt::format("{}/{} ", packets, bytes);
    }
    for (int thread = 0; thread < owner.books.size(); ++thread) disorder += owner.books[thread].disorder;
    return text + fmt::format("disorder {}", disorder);
  });
}

}  // namespace headrace
