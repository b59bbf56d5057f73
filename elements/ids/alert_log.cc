#include "elements/ids/alert_log.hh"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "headrace/chatter.hh"

namespace headrace {

namespace {

/// How long an alert may wait to be written.
constexpr auto kPeriod = std::chrono::milliseconds(20);
/// Bytes of lines that are written at once.
constexpr size_t kPiece = size_t{1} << 16;

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
    case ip_protocol::kIcmp:
      return "ICMP";
    case ip_protocol::kIgmp:
      return "IGMP";
    case ip_protocol::kTcp:
      return "TCP";
    case ip_protocol::kUdp:
      return "UDP";
    case ip_protocol::kGre:
      return "GRE";
    case ip_protocol::kEsp:
      return "ESP";
    case ip_protocol::kAuthentication:
      return "AH";
    case ip_protocol::kIcmp6:
      return "IPv6-ICMP";
    case ip_protocol::kSctp:
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

}  // namespace

AlertLog::~AlertLog() {
  if (thread_.joinable()) {
    {
      const std::lock_guard guard(stop_lock_);
      stopping_ = true;
    }
    stop_changed_.notify_all();
    thread_.join();
  }
  flush();
}

Status AlertLog::open(const Options& options, const std::vector<rules::Rule>& rules, Errors& errors) {
  name_ = options.file;
  if (const int error = file_.open(name_, RecordFile::Mode::kAppend))
    return errors.error("{}: {}", name_, std::strerror(error));
  open_ = true;
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
  if (!open_) return;
  Record records[64];
  for (int i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].ring) continue;
    // No more than was there: a busy worker must not hold up the others.
    for (uint32_t left = workers_[i].ring->size(); left > 0;) {
      const uint32_t n = workers_[i].ring->dequeue(records, left < 64 ? left : 64);
      if (n == 0) break;
      left -= n;
      for (uint32_t k = 0; k < n; ++k) append(records[k]);
      if (lines_.size() >= kPiece) write_lines();
    }
  }
  write_lines();
}

void AlertLog::append(const Record& record) {
  // Each worker has kept to the rate; together they might not.
  if (!rate_.pass(record.time, full_[record.rule])) {
    late_suppressed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  lines_ += json(record);
  lines_ += '\n';
  ends_.push_back(static_cast<uint32_t>(lines_.size()));
}

void AlertLog::write_lines() {
  if (ends_.empty()) return;
  const size_t written = file_.write(lines_, ends_), failed = ends_.size() - written;
  written_.fetch_add(written, std::memory_order_relaxed);
  failed_.fetch_add(failed, std::memory_order_relaxed);
  if (failed > 0 && !failing_) chatter("IDSMatcher({}): {}", name_, std::strerror(file_.error()));
  failing_ = failed > 0;
  lines_.clear();
  ends_.clear();
}

std::string AlertLog::json(const Record& r) const {
  const rules::Rule& rule = (*rules_)[r.rule];
  nlohmann::ordered_json line;
  line["timestamp"] = time_text(r.time);
  line["event_type"] = "alert";
  line["src_ip"] = address_text(r.src, r.version);
  if (r.has_ports) line["src_port"] = r.src_port;
  line["dest_ip"] = address_text(r.dst, r.version);
  if (r.has_ports) line["dest_port"] = r.dst_port;
  line["proto"] = protocol_text(r.protocol);
  if (r.has_type) {
    line["icmp_type"] = r.src_port;
    line["icmp_code"] = r.dst_port;
  }
  nlohmann::ordered_json& alert = line["alert"];
  // Nothing is blocked here: where the packet goes is for the configuration to say.
  alert["action"] = "allowed";
  alert["gid"] = rule.gid;
  alert["signature_id"] = rule.sid;
  alert["rev"] = rule.rev;
  alert["signature"] = rule.msg;
  alert["category"] = rule.category;
  alert["severity"] = rule.priority;
  line["pkt_len"] = r.length;
  // A rule's text need not be UTF-8.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void AlertLog::reset() {
  counts_.reset();
  written_.store(0, std::memory_order_relaxed);
  failed_.store(0, std::memory_order_relaxed);
  late_suppressed_.store(0, std::memory_order_relaxed);
}

}  // namespace headrace
