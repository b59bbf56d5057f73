#include "elements/ids/alert_log.hh"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "elements/standard/chatter.hh"

namespace headrace {

namespace {

/// How long an alert may wait to be written.
constexpr auto kPeriod = std::chrono::milliseconds(20);

std::string address_text(rules::Address6 address, int version) {
  uint8_t bytes[16];
  const int n = version == 4 ? 4 : 16;
  for (int i = n - 1; i >= 0; --i, address >>= 8) bytes[i] = static_cast<uint8_t>(address);
  char text[INET6_ADDRSTRLEN];
  inet_ntop(version == 4 ? AF_INET : AF_INET6, bytes, text, sizeof text);
  return text;
}

std::string protocol_text(uint8_t protocol) {
  switch (protocol) {
    case 1:
      return "ICMP";
    case 2:
      return "IGMP";
    case 6:
      return "TCP";
    case 17:
      return "UDP";
    case 47:
      return "GRE";
    case 50:
      return "ESP";
    case 51:
      return "AH";
    case 58:
      return "IPv6-ICMP";
    case 132:
      return "SCTP";
    default:
      return fmt::format("{:03}", protocol);
  }
}

/// "2026-11-22T07:08:35.123456+0000"
std::string time_text(int64_t ns) {
  const Timestamp t = Timestamp::from_ns(ns);
  const time_t seconds = t.sec();
  struct tm utc {};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:06}+0000", text, t.nsec() / 1000);
}

/// Bytes of the UTF-8 character that `text` begins with; 0 when it does not begin with one.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t n = first < 0x80                    ? 1
                   : first >= 0xc2 && first < 0xe0 ? 2
                   : first >= 0xe0 && first < 0xf0 ? 3
                   : first >= 0xf0 && first < 0xf5 ? 4
                                                   : 0;
  if (n == 0 || text.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and what lies beyond Unicode.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) || (first == 0xf0 && byte(1) < 0x90) ||
      (first == 0xf4 && byte(1) >= 0x90))
    return 0;
  return n;
}

}  // namespace

void append_json_string(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<uint8_t>(text[0]);
    const size_t n = utf8_length(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c < 0x20 || c == 0x7f || n == 0) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(n == 0 ? 1 : n);
  }
  out += '"';
}

AlertLog::~AlertLog() {
  if (thread_.joinable()) {
    {
      const std::lock_guard guard(stop_lock_);
      stopping_ = true;
    }
    stop_changed_.notify_all();
    thread_.join();
  }
  if (!file_) return;
  flush();
  if (file_ != stdout) std::fclose(file_);
}

Status AlertLog::open(const Options& options, const std::vector<rules::Rule>& rules, Errors& errors) {
  name_ = options.file;
  if (name_ == "-") {
    file_ = stdout;
  } else {
    file_ = std::fopen(name_.c_str(), "abe");
    if (!file_) return errors.error("{}: {}", name_, std::strerror(errno));
  }
  rules_ = &rules;
  rate_ = AlertRate(options.rate);
  full_.assign(rules.size(), 0);
  for (int i = 0; i < workers_.size(); ++i) {
    workers_[i].ring = std::make_unique<Ring<Record>>(options.queue, options.queue);
    workers_[i].full.assign(rules.size(), 0);
  }
  thread_ = std::thread([this] { run(); });
  return {};
}

void AlertLog::add(uint32_t rule, const rules::PacketFacts& facts, const Packet& p) {
  Worker& mine = workers_.local();
  if (!mine.ring) return;
  Record record;
  const Timestamp time = p.timestamp();
  record.time = time ? time.ns : clock::now().ns;
  if (!rate_.pass(record.time, mine.full[rule])) return counts_.add(kSuppressed, 1);
  record.rule = rule;
  record.length = p.length();
  record.version = static_cast<uint8_t>(facts.version());
  record.protocol = facts.protocol();
  record.has_ports = facts.has_ports();
  record.src_port = facts.src_port();
  record.dst_port = facts.dst_port();
  uint32_t type = 0, code = 0;
  record.has_type = facts.field(rules::Field::kIcmpType, type) && facts.field(rules::Field::kIcmpCode, code);
  if (record.has_type) {
    record.src_port = static_cast<uint16_t>(type);
    record.dst_port = static_cast<uint16_t>(code);
  }
  record.src = facts.version() == 4 ? facts.src4() : facts.src6();
  record.dst = facts.version() == 4 ? facts.dst4() : facts.dst6();
  if (mine.ring->enqueue(&record, 1) == 0) counts_.add(kLost, 1);
}

void AlertLog::run() {
  std::unique_lock lock(stop_lock_);
  while (!stopping_) {
    stop_changed_.wait_for(lock, kPeriod);
    lock.unlock();
    flush();
    lock.lock();
  }
}

void AlertLog::flush() {
  const std::lock_guard guard(write_lock_);
  if (!file_) return;
  Record records[64];
  bool any = false;
  for (int i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].ring) continue;
    // No more than was there: a busy worker must not hold up the others.
    for (uint32_t left = workers_[i].ring->size(); left > 0;) {
      const uint32_t n = workers_[i].ring->dequeue(records, left < 64 ? left : 64);
      if (n == 0) break;
      left -= n;
      any = true;
      for (uint32_t k = 0; k < n; ++k) write(records[k]);
    }
  }
  if (any && std::fflush(file_) != 0 && !complained_) {
    complained_ = true;
    chatter("IDSMatcher({}): {}", name_, std::strerror(errno));
  }
}

void AlertLog::write(const Record& record) {
  // Each worker has kept to the rate; together they might not.
  if (!rate_.pass(record.time, full_[record.rule])) {
    late_suppressed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  text_.clear();
  append_json(record);
  if (std::fwrite(text_.data(), 1, text_.size(), file_) == text_.size()) {
    written_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  failed_.fetch_add(1, std::memory_order_relaxed);
  if (!complained_) chatter("IDSMatcher({}): {}", name_, std::strerror(errno));
  complained_ = true;
}

void AlertLog::append_json(const Record& r) {
  const rules::Rule& rule = (*rules_)[r.rule];
  auto to = std::back_inserter(text_);
  fmt::format_to(to, R"({{"timestamp":"{}","event_type":"alert","src_ip":"{}",)", time_text(r.time),
                 address_text(r.src, r.version));
  if (r.has_ports) fmt::format_to(to, R"("src_port":{},)", r.src_port);
  fmt::format_to(to, R"("dest_ip":"{}",)", address_text(r.dst, r.version));
  if (r.has_ports) fmt::format_to(to, R"("dest_port":{},)", r.dst_port);
  fmt::format_to(to, R"("proto":"{}",)", protocol_text(r.protocol));
  if (r.has_type) fmt::format_to(to, R"("icmp_type":{},"icmp_code":{},)", r.src_port, r.dst_port);
  // Nothing is blocked here: where the packet goes is for the configuration to say.
  fmt::format_to(to, R"("alert":{{"action":"allowed","gid":{},"signature_id":{},"rev":{},"signature":)", rule.gid,
                 rule.sid, rule.rev);
  append_json_string(rule.msg, text_);
  text_ += R"(,"category":)";
  append_json_string(rule.category, text_);
  fmt::format_to(to, R"(,"severity":{}}},"pkt_len":{}}})", rule.priority, r.length);
  text_ += '\n';
}

void AlertLog::reset() {
  counts_.reset();
  written_.store(0, std::memory_order_relaxed);
  failed_.store(0, std::memory_order_relaxed);
  late_suppressed_.store(0, std::memory_order_relaxed);
}

}  // namespace headrace
