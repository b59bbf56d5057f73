#include "elements/analysis/AggregateCounter.hh"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <map>

#include "headrace/router.hh"

namespace headrace {

namespace {

template <typename T>
T* make_cells(size_t n) {
  void* memory = std::calloc(n, sizeof(T));
  if (!memory) throw std::bad_alloc();
  return static_cast<T*>(memory);
}

uint32_t place_of(uint32_t aggregate, uint32_t mask) {
  return static_cast<uint32_t>(aggregate * uint64_t{0x9e3779b97f4a7c15} >> 32) & mask;
}

}  // namespace

// --- Limit

void AggregateCounter::Limit::set(uint64_t at, std::string call) {
  at_ = at;
  call_ = HandlerCall(std::move(call));
}

Status AggregateCounter::Limit::read(const std::string& text, const char* keyword, Errors& errors) {
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const size_t call = std::min(text.find_first_not_of(" \t\n", end), text.size());
  uint64_t at;
  if (!parse_argument(text.substr(0, end), at, ArgContext()) || call == text.size())
    return errors.error("{}: expected 'N HANDLER [VALUE]'", keyword);
  set(at, text.substr(call));
  return {};
}

Status AggregateCounter::Limit::bind(Element& element, Errors& errors) {
  if (call_.empty()) return {};
  const Status status = call_.bind(element.router(), &element, true, errors);
  armed_.store(status.ok(), std::memory_order_relaxed);
  return status;
}

void AggregateCounter::Limit::call() {
  if (!armed_.exchange(false, std::memory_order_relaxed)) return;
  Errors errors(Errors::Output::kStderr);
  (void)call_.write(errors);
}

std::string AggregateCounter::Limit::unparse() const {
  return armed() ? fmt::format("{} {}", at_, call_.text()) : std::string();
}

// --- Configuration

Status AggregateCounter::read_limit(Limit& limit, const char* what, std::optional<uint64_t> stop,
                                    std::optional<uint64_t> freeze, const std::string& call, const std::string& name,
                                    Errors& errors) {
  if (stop.has_value() + freeze.has_value() + !call.empty() > 1)
    return errors.error("{0}_STOP, {0}_FREEZE and {0}_CALL are mutually exclusive", what);
  if (stop) limit.set(*stop, name + ".stop");
  if (freeze) limit.set(*freeze, name + ".freeze true");
  return call.empty() ? Status() : limit.read(call, fmt::format("{}_CALL", what).c_str(), errors);
}

Status AggregateCounter::configure(Args& args) {
  std::optional<uint64_t> stops[2], freezes[2];
  std::string calls[2];
  if (!args.read("BYTES", bytes_)
           .read("IP_BYTES", ip_bytes_)
           .read("MULTIPACKET", multipacket_)
           .read("EXTRA_LENGTH", extra_length_)
           .read("AGGREGATE_STOP", stops[0])
           .read("AGGREGATE_FREEZE", freezes[0])
           .read("AGGREGATE_CALL", calls[0], AnyArg())
           .read("COUNT_STOP", stops[1])
           .read("COUNT_FREEZE", freezes[1])
           .read("COUNT_CALL", calls[1], AnyArg())
           .read("BANNER", banner_)
           .read("CAPACITY", capacity_, Between{1, 1 << 30})
           .complete())
    return Status::failed();
  Status status = read_limit(aggregates_limit_, "AGGREGATE", stops[0], freezes[0], calls[0], name(), args.errors());
  status &= read_limit(count_limit_, "COUNT", stops[1], freezes[1], calls[1], name(), args.errors());
  return status;
}

Status AggregateCounter::initialize(Errors& errors) {
  const uint32_t places = std::bit_ceil(2 * capacity_);
  mask_ = places - 1;
  keys_.reset(make_cells<std::atomic<uint64_t>>(places));
  for (int t = 0; t < counts_.size(); ++t) counts_[t].reset(make_cells<std::atomic<uint64_t>>(places));
  Status status = aggregates_limit_.bind(*this, errors);
  status &= count_limit_.bind(*this, errors);
  return status;
}

std::vector<RegionInfo> AggregateCounter::annotations() const {
  return declared(Read{anno::aggregate}, Read{anno::extra_packets}, Read{anno::extra_length});
}

// --- Counting

uint64_t AggregateCounter::amount_of(const Packet& p) const {
  if (!bytes_) return uint64_t{1} + (multipacket_ ? p.anno_u32(anno_offset::kExtraPackets) : 0);
  int64_t length = p.length();
  if (extra_length_) length += p.anno_u32(anno_offset::kExtraLength);
  if (ip_bytes_ && p.has_network_header()) length -= p.network_header_offset();
  return static_cast<uint64_t>(std::max<int64_t>(length, 0));
}

int64_t AggregateCounter::find(uint32_t aggregate, bool insert) {
  const uint64_t key = uint64_t{aggregate} + 1;
  for (uint32_t place = place_of(aggregate, mask_);; place = (place + 1) & mask_) {
    uint64_t there = keys_[place].load(std::memory_order_relaxed);
    if (there == key) return place;
    if (there != 0) continue;
    if (!insert) return -1;
    // At most half of the places are taken, but for one that each thread may be about to take.
    if (aggregates_.load(std::memory_order_relaxed) >= capacity_) return -1;
    if (keys_[place].compare_exchange_strong(there, key, std::memory_order_relaxed)) {
      aggregates_.fetch_add(1, std::memory_order_relaxed);
      return place;
    }
    if (there == key) return place;
  }
}

void AggregateCounter::add(int64_t place, uint64_t amount) {
  std::atomic<uint64_t>& cell = counts_.local()[place];
  cell.store(cell.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

bool AggregateCounter::count(const Packet& p, bool always_frozen, Emitter* emit) {
  if (!active_.load(std::memory_order_relaxed)) return false;
  const uint32_t aggregate = p.anno_u32(anno_offset::kAggregate);
  const uint64_t amount = amount_of(p);
  int64_t place = find(aggregate, false);
  if (place < 0) {
    if (amount != 0 && !always_frozen && !frozen_.load(std::memory_order_relaxed) &&
        aggregates_limit_.reached(aggregates_.load(std::memory_order_relaxed))) {
      if (emit) emit->flush();  // what the call changes must not concern packets that came before
      aggregates_limit_.call();
      if (!active_.load(std::memory_order_relaxed)) return false;
    }
    if (always_frozen || frozen_.load(std::memory_order_relaxed)) return false;
    if (amount == 0) return true;
    place = find(aggregate, true);
    if (place < 0) return false;
  }
  add(place, amount);
  if (count_limit_.armed() &&
      count_limit_.reached(shared_total_.fetch_add(amount, std::memory_order_relaxed) + amount)) {
    if (emit) emit->flush();
    count_limit_.call();
  }
  return true;
}

void AggregateCounter::push(int port, Batch& batch) {
  Emitter emit(*this);
  for (Packet* p : batch) emit(count(*p, port == 1, &emit) || noutputs() == 1 ? 0 : 1, p);
}

int AggregateCounter::pull(int port, Batch& batch, int max) {
  const int before = batch.size();
  const int in = ninputs() == 1 ? 0 : port;
  const int n = input(in).pull(batch, max);
  for (int i = before; i < batch.size(); ++i) count(*batch[i], in == 1, nullptr);
  return n;
}

// --- What handlers show

AggregateCounter::Sums AggregateCounter::sums() const {
  Sums sums;
  for (uint32_t place = 0; place <= mask_; ++place) {
    const uint64_t key = keys_[place].load(std::memory_order_relaxed);
    if (key == 0) continue;
    uint64_t sum = 0;
    for (int t = 0; t < counts_.size(); ++t) sum += counts_[t][place].load(std::memory_order_relaxed);
    sums.emplace_back(static_cast<uint32_t>(key - 1), sum);
  }
  std::sort(sums.begin(), sums.end());
  return sums;
}

uint64_t AggregateCounter::total() const {
  uint64_t total = 0;
  for (const auto& [aggregate, sum] : sums()) total += sum;
  return total;
}

void AggregateCounter::clear() {
  const size_t places = size_t{mask_} + 1;
  keys_.reset(make_cells<std::atomic<uint64_t>>(places));
  for (int t = 0; t < counts_.size(); ++t) counts_[t].reset(make_cells<std::atomic<uint64_t>>(places));
  aggregates_ = 0;
  shared_total_ = 0;
}

void AggregateCounter::reaggregate() {
  const Sums before = sums();
  clear();
  for (const auto& [aggregate, sum] : before)
    if (const int64_t place = find(static_cast<uint32_t>(sum), true); place >= 0) add(place, 1);
  shared_total_ = before.size();
}

Status AggregateCounter::write(const std::string& file, Format format, Errors& errors) const {
  const Sums all = sums();
  uint64_t total = 0;
  for (const auto& [aggregate, sum] : all) total += sum;
  std::string text = "!IPAggregate 1.0\n" + banner_;
  if (!banner_.empty() && banner_.back() != '\n') text += '\n';
  text += fmt::format("!num_nonzero {}\n", all.size());
  if (format == Format::kBinary) text += std::endian::native == std::endian::little ? "!packed_le\n" : "!packed_be\n";
  if (format == Format::kIp) text += "!ip\n";
  for (const auto& [aggregate, sum] : all) {
    const uint32_t record[] = {aggregate, static_cast<uint32_t>(sum)};
    switch (format) {
      case Format::kBinary:
        text.append(reinterpret_cast<const char*>(record), sizeof record);
        break;
      case Format::kText:
        text += fmt::format("{} {}\n", aggregate, sum);
        break;
      case Format::kIp:
        text += fmt::format("{} {}\n", IpAddress::from_host_order(aggregate), sum);
        break;
      case Format::kPdf:
        text += fmt::format("{} {:.12g}\n", aggregate, static_cast<double>(sum) / static_cast<double>(total));
        break;
    }
  }
  std::FILE* out = file == "-" ? stdout : std::fopen(file.c_str(), "wb");
  if (!out) return errors.error("{}: {}", file, std::strerror(errno));
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  const bool closed = (out == stdout ? std::fflush(out) : std::fclose(out)) == 0;
  return written && closed ? Status() : errors.error("{}: {}", file, std::strerror(errno));
}

void AggregateCounter::add_limit_handlers(Handlers& handlers, const char* name, Limit& limit) {
  handlers.read(name, [&limit] { return limit.unparse(); });
  handlers.write(name, [this, name, &limit](const std::string& value, Errors& errors) {
    if (value.empty()) {
      limit.set(0, "");
      return limit.bind(*this, errors);
    }
    if (!limit.read(value, name, errors)) return Status::failed();
    shared_total_ = total();
    return limit.bind(*this, errors);
  });
}

void AggregateCounter::add_handlers(Handlers& handlers) {
  const std::pair<const char*, Format> kFiles[] = {{"write_file", Format::kBinary},
                                                   {"write_text_file", Format::kText},
                                                   {"write_ascii_file", Format::kText},
                                                   {"write_ip_file", Format::kIp},
                                                   {"write_pdf_file", Format::kPdf}};
  for (const auto& [name, format] : kFiles)
    handlers.write(
        name,
        [this, format = format](const std::string& value, Errors& errors) {
          std::string file;
          if (!FileName{}.parse(value, file, ArgContext())) return errors.error("expected a file name");
          return write(file, format, errors);
        },
        Handler::kPrivate);
  const std::pair<const char*, std::atomic<bool>*> kSwitches[] = {{"freeze", &frozen_}, {"active", &active_}};
  for (const auto& [name, flag] : kSwitches) {
    handlers.read(name, [flag = flag] { return unparse_value(flag->load()); });
    handlers.write(name, [flag = flag](const std::string& value, Errors& errors) {
      bool on;
      if (!parse_argument(value, on, ArgContext())) return errors.error("expected true or false");
      *flag = on;
      return Status();
    });
  }
  handlers.button("stop", [this] {
    active_ = false;
    router().request_stop();
  });
  handlers.button("counts_pdf", [this] { reaggregate(); });
  handlers.button("reaggregate_counts", [this] { reaggregate(); });
  handlers.button("clear", [this] { clear(); });
  handlers.value("banner", banner_);
  add_limit_handlers(handlers, "aggregate_call", aggregates_limit_);
  add_limit_handlers(handlers, "count_call", count_limit_);
  handlers.read("nagg", [this] { return std::to_string(aggregates_.load()); });
  handlers.read("count", [this] { return std::to_string(total()); });
}

}  // namespace headrace
