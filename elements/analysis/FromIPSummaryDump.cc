#include "elements/analysis/FromIPSummaryDump.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>

#include "headrace/router.hh"
#include "headrace/value_handlers.hh"
#include "src/base/argument_text.hh"

namespace headrace {

using anno_offset::kExtraLength;
using anno_offset::kExtraPackets;
using anno_offset::kFirstTimestamp;
using summary::Builder;
using summary::Value;

namespace {

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

bool begins_with_word(std::string_view line, std::string_view word) {
  return line.starts_with(word) && line.size() > word.size() && is_space(line[word.size()]);
}

/// The next field of a line; a quoted string counts as one, blanks and all.
std::string_view take_field(std::string_view& line) {
  size_t end = 0;
  while (end < line.size() && !is_space(line[end]))
    end = line[end] == '"' ? lang::skip_double_quoted(line, end) : end + 1;
  const std::string_view field = line.substr(0, end);
  while (end < line.size() && is_space(line[end])) ++end;
  line.remove_prefix(end);
  return field;
}

std::vector<std::string> fields_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& word : lang::split_words(text)) words.push_back(lang::unquote(word));
  return words;
}

}  // namespace

FromIPSummaryDump::FromIPSummaryDump()
    : OneWayPort(Direction::kIn), random_(std::random_device{}()), timer_(this, [this](Timer&) {
        if (!active_) return;
        if (output_is_pull(0))
          nonempty_.wake();
        else
          task_.reschedule();
      }) {}

FromIPSummaryDump::~FromIPSummaryDump() {
  if (held_) held_->kill();
}

Status FromIPSummaryDump::configure(Args& args) {
  bool zero = true;
  std::string fields, flow;
  args.read_p("FILENAME", filename_, FileName{}).read("STOP", stop_).read("ACTIVE", active_).read("ZERO", zero);
  args.read("TIMING", timing_).read("CHECKSUM", checksum_).read("SAMPLE", sample_, Between{0, 1});
  args.read("PROTO", protocol_, IpProtocol{}).read("MULTIPACKET", multipacket_);
  args.read("DEFAULT_CONTENTS", fields, AnyArg{}).read("DEFAULT_FIELDS", fields, AnyArg{});
  args.read("CONTENTS", fields, AnyArg{}).read("FIELDS", fields, AnyArg{});
  args.read("DEFAULT_FLOWID", flow, AnyArg{}).read("FLOWID", flow, AnyArg{});
  args.read("ALLOW_NONEXISTENT", may_miss_).read("DATA", data_);
  if (!args.complete()) return Status::failed();
  if (sample_ == 0) args.errors().warning("SAMPLE probability is 0; emitting no packets");
  if (!fields.empty()) set_fields(fields);
  if (!flow.empty()) set_flow(flow, "FLOWID");
  if (!data_.empty() && !filename_.empty()) return args.errors().error("FILENAME and DATA conflict");
  if (data_.empty() && filename_.empty()) return args.errors().error("FILENAME: required argument missing");
  return {};
}

Status FromIPSummaryDump::initialize(Errors& errors) {
  timer_.initialize();
  if (output_is_push(0)) task_.initialize(active_);
  if (!active_) nonempty_.sleep();
  if (!data_.empty()) {
    file_.open_text(data_);
  } else {
    const auto opened = file_.open(filename_, errors, may_miss_);
    if (opened == io::InputFile::Opened::kMissing && may_miss_) return {};
    if (opened != io::InputFile::Opened::kYes) return Status::failed();
  }
  return check_banner(errors);
}

Status FromIPSummaryDump::check_banner(Errors& errors) {
  std::string line;
  if (!file_.read_line(line, errors)) return {};
  int major, minor;
  if (line.starts_with("!IPSummaryDump")) {
    if (std::sscanf(line.c_str(), "!IPSummaryDump %d.%d", &major, &minor) == 2) {
      if (major != summary::kMajorVersion || minor > summary::kMinorVersion)
        errors.warning_at(file_.landmark(), "unexpected IPSummaryDump version {}.{}", major, minor);
      else
        minor_version_ = minor;
    }
    return {};
  }
  bool known = !fields_.empty();
  for (const char* word : {"!creator", "!data", "!contents", "!proto", "!flowid"}) known |= line.starts_with(word);
  if (!known) errors.warning_at(file_.landmark(), "missing banner line; is this an IP summary dump?");
  first_line_ = std::move(line);
  return {};
}

// --- Lines that are not packets

void FromIPSummaryDump::set_fields(std::string_view words) {
  fields_.clear();
  order_.clear();
  for (const std::string& word : fields_of(words)) {
    if (fields_.empty() && (word == "!data" || word == "!contents")) continue;
    const summary::Field* field = summary::find_field(word);
    if (!field)
      complaints_.warning_at(file_.landmark(), "unknown content type '{}'", word);
    else if (!field->inject && word != "none")
      complaints_.warning_at(file_.landmark(), "content type '{}' ignored on input", word);
    if (!field || !field->inject) field = summary::find_field("none");
    order_.push_back(static_cast<int>(fields_.size()));
    fields_.push_back(field);
  }
  if (fields_.empty()) (void)complaints_.error_at(file_.landmark(), "no contents specified");
  std::stable_sort(order_.begin(), order_.end(),
                   [this](int a, int b) { return fields_[a]->order < fields_[b]->order; });
}

void FromIPSummaryDump::set_protocol(std::string_view word, const char* what) {
  uint8_t number;
  if (word == "T")
    protocol_ = summary::kTcp;
  else if (word == "U")
    protocol_ = summary::kUdp;
  else if (word == "I")
    protocol_ = summary::kIcmp;
  else if (IpProtocol{}.parse(word, number, ArgContext()))
    protocol_ = number;
  else
    (void)complaints_.error_at(file_.landmark(), "bad protocol in {}", what);
}

void FromIPSummaryDump::set_flow(std::string_view text, const char* what) {
  std::vector<std::string> words = fields_of(text);
  if (!words.empty() && words[0] == "!flowid") words.erase(words.begin());
  const ArgContext names(&router().scope(this));
  summary::FlowId flow;
  const auto address = [&](const std::string& word, uint32_t& out) {
    IpAddress a;
    if (word != "-" && !parse_argument(word, a, names)) return false;
    out = a.host_order();
    return true;
  };
  const auto port = [&](const std::string& word, uint16_t& out) {
    return word == "-" || parse_argument(word, out, names);
  };
  if (words.size() < 4 || !address(words[0], flow.src) || !port(words[1], flow.sport) || !address(words[2], flow.dst) ||
      !port(words[3], flow.dport)) {
    (void)complaints_.error_at(file_.landmark(), "bad {} specification", what);
    flow_.reset();
    return;
  }
  if (words.size() >= 5) set_protocol(words[4], what);
  flow_ = flow;
}

void FromIPSummaryDump::read_directive(const std::string& line) {
  if (begins_with_word(line, "!data") || begins_with_word(line, "!contents")) {
    set_fields(line);
  } else if (begins_with_word(line, "!flowid")) {
    set_flow(line, "!flowid");
  } else if (begins_with_word(line, "!proto")) {
    const std::vector<std::string> words = fields_of(line);
    if (words.size() == 2)
      set_protocol(words[1], "!proto");
    else
      (void)complaints_.error_at(file_.landmark(), "bad !proto");
  } else if (line == "!binary") {
    binary_ = true;
    file_.set_line(0);
  }
}

// --- Packets

bool FromIPSummaryDump::read_binary_record(std::string& record, bool& binary) {
  uint8_t head[4];
  if (!file_.read_all(head, 4, complaints_)) return false;
  binary = (head[0] & 0x80) == 0;
  const uint32_t length = (static_cast<uint32_t>(head[0] & 0x7f) << 24) | head[1] << 16 | head[2] << 8 | head[3];
  file_.set_line(file_.line() + 1);
  constexpr uint32_t kMaxRecord = 1 << 20;
  if (length < 4 || length > kMaxRecord) {
    (void)complaints_.error_at(file_.landmark(), "binary record of bad length {}", length);
    return false;
  }
  record.resize(length - 4);
  if (!file_.read_all(record.data(), record.size(), complaints_)) return false;
  if (!binary)
    while (!record.empty() && (record.back() == '\0' || record.back() == '\n')) record.pop_back();
  return true;
}

bool FromIPSummaryDump::read_record(std::string& record, bool& binary) {
  for (;;) {
    binary = binary_;
    if (first_line_) {
      record = *std::exchange(first_line_, std::nullopt);
    } else if (binary_ ? !read_binary_record(record, binary) : !file_.read_line(record, complaints_)) {
      return false;
    }
    if (binary) return true;
    if (record.empty() || record[0] == '#') continue;
    if (record[0] != '!') return true;
    read_directive(record);
  }
}

void FromIPSummaryDump::build_from_text(std::string_view line, Builder& builder, int& fields) {
  std::vector<std::string_view> texts;
  while (texts.size() < fields_.size()) texts.push_back(take_field(line));
  for (const int i : order_) {
    Value value;
    if (texts[i].empty() || texts[i] == "-" || !fields_[i]->inject) continue;
    if (!summary::parse_field(*fields_[i], builder, texts[i], value)) continue;
    fields_[i]->inject(builder, value);
    ++fields;
  }
}

void FromIPSummaryDump::build_from_binary(std::string_view record, Builder& builder, int& fields) {
  std::vector<std::optional<Value>> values(fields_.size());
  for (size_t i = 0; i < fields_.size(); ++i) {
    Value value;
    if (!summary::read_binary(*fields_[i], record, value)) break;
    // The byte is the letter of the text.
    if (fields_[i]->name == "ip_frag") {
      const char letter = static_cast<char>(value.n);
      if (!fields_[i]->parse(builder, std::string_view(&letter, 1), value)) continue;
    }
    values[i] = std::move(value);
  }
  for (const int i : order_) {
    if (!values[i] || !fields_[i]->inject) continue;
    fields_[i]->inject(builder, *values[i]);
    ++fields;
  }
}

Packet* FromIPSummaryDump::read_packet() {
  std::string record;
  bool binary;
  if (!read_record(record, binary)) {
    file_.close();
    return nullptr;
  }
  Builder builder(protocol_, flow_ ? &*flow_ : nullptr, minor_version_, &router().scope(this));
  int fields = 0;
  if (binary)
    build_from_binary(record, builder, fields);
  else
    build_from_text(record, builder, fields);
  if (fields == 0) {
    const bool blank = !binary && std::all_of(record.begin(), record.end(), is_space);
    if (!complained_ && !blank) {
      complained_ = true;
      if (fields_.empty())
        (void)complaints_.error_at(file_.landmark(), "no '!data' provided");
      else
        (void)complaints_.error_at(file_.landmark(), "packet parse error");
    }
    return nullptr;
  }
  Packet* p = builder.finish(checksum_);
  if (!p) not_made();
  return p;
}

bool FromIPSummaryDump::due(Packet* p) {
  const Timestamp now = clock::steady();
  if (!timing_offset_) timing_offset_ = now - p->timestamp();
  const Timestamp at = p->timestamp() + *timing_offset_;
  if (now >= at) return true;
  held_ = p;
  timer_.schedule_at(at);
  if (output_is_pull(0)) nonempty_.sleep();
  return false;
}

namespace {

/// Sets a packet's IP (and UDP) length to `length`.
void set_ip_length(Packet* p, uint32_t length) {
  if (!p->has_network_header() || p->network_length() < 20) return;
  uint8_t* ip = p->network_header();
  ip[2] = static_cast<uint8_t>(length >> 8);
  ip[3] = static_cast<uint8_t>(length);
  const uint32_t udp = length - static_cast<uint32_t>(p->network_header_length());
  if (ip[9] == summary::kUdp && p->transport_length() >= 6) {
    p->transport_header()[4] = static_cast<uint8_t>(udp >> 8);
    p->transport_header()[5] = static_cast<uint8_t>(udp);
  }
}

}  // namespace

Packet* FromIPSummaryDump::split(Packet* p) {
  const uint32_t extra = p->anno_u32(kExtraPackets);
  if (extra == 0) {
    splitting_ = false;
    return p;
  }
  const uint32_t count = extra + 1;
  if (!splitting_) {
    splitting_ = true;
    split_length_ = (p->length() + p->anno_u32(kExtraLength)) / count;
    // Each packet has at least the bytes that are known.
    if (split_length_ < p->length()) {
      split_length_ = p->length();
      p->set_anno_u32(kExtraLength, split_length_ * extra);
    }
    split_last_ = p->timestamp();
    const Timestamp first = Timestamp::from_ns(static_cast<int64_t>(p->anno_u64(kFirstTimestamp)));
    split_step_ = first ? Timestamp::from_ns((split_last_ - first).ns / extra) : Timestamp{};
    if (first) p->set_timestamp(first);
    set_ip_length(p, split_length_);
  }
  Packet* one = p->clone();
  if (one) {
    one->set_anno_u32(kExtraPackets, 0);
    one->set_anno_u32(kExtraLength, split_length_ - one->length());
  } else {
    not_made();
  }
  p->set_anno_u32(kExtraPackets, extra - 1);
  p->set_anno_u32(kExtraLength, p->anno_u32(kExtraLength) - split_length_);
  if (extra == 1) {
    p->set_timestamp(split_last_);
    set_ip_length(p, p->length() + p->anno_u32(kExtraLength));
  } else {
    p->set_timestamp(p->timestamp() + split_step_);
  }
  held_ = p;
  return one;
}

Packet* FromIPSummaryDump::next() {
  for (;;) {
    Packet* p = held_ ? std::exchange(held_, nullptr) : read_packet();
    if (!p) return nullptr;
    if (timing_ && !due(p)) return nullptr;
    if (multipacket_) p = split(p);
    if (sample_ >= 1 || std::uniform_real_distribution<double>()(random_) < sample_) {
      if (p) moved_.add(1, p->length());
      return p;
    }
    if (p) p->kill();
  }
}

void FromIPSummaryDump::end() {
  if (stop_) router().request_stop();
}

bool FromIPSummaryDump::run_task(Task& task) {
  if (!active_) return false;
  Packet* p = next();
  if (p) output(0).push(p);
  if (!p && at_end()) {
    end();
    return false;
  }
  // A packet that is not due yet waits for the timer.
  if (p || !held_) task.fast_reschedule();
  return true;
}

int FromIPSummaryDump::pull(int, Batch& batch, int max) {
  if (!active_) return 0;
  int n = 0;
  while (n < max && !at_end()) {
    Packet* p = next();
    if (!p && held_) return n;  // not due: the notifier sleeps
    if (p) {
      batch.push_back(p);
      ++n;
    }
  }
  if (n == 0 && nonempty_.active()) {
    nonempty_.sleep();
    end();
  }
  return n;
}

Notifier* FromIPSummaryDump::notifier(NotifierKind kind, bool output, int) {
  return output && kind == NotifierKind::kNonempty && output_is_pull(0) ? &nonempty_ : nullptr;
}

void FromIPSummaryDump::add_handlers(Handlers& handlers) {
  handlers.read("sampling_prob", [this] { return fmt::format("{:g}", sample_); });
  handlers.read("encap", [] { return std::string("IP"); });
  read_value(handlers, "active", active_);
  write_value(handlers, "active", active_, [this] {
    if (output_is_push(0)) {
      if (active_) task_.reschedule();
    } else if (active_) {
      nonempty_.wake();
    } else {
      nonempty_.sleep();
    }
  });
  handlers.button("stop", [this] {
    active_ = false;
    router().request_stop();
  });
  file_.add_handlers(handlers);
}

}  // namespace headrace
