#include "elements/analysis/ToIPSummaryDump.hh"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <ctime>

#include "src/base/argument_text.hh"

namespace headrace {

using anno_offset::kExtraLength;
using anno_offset::kExtraPackets;
using anno_offset::kFirstTimestamp;

Status ToIPSummaryDump::configure(Args& args) {
  std::string fields = "timestamp ip_src";
  args.read_mp("FILENAME", filename_, FileName{}).read("CONTENTS", fields, AnyArg{}).read("DATA", fields, AnyArg{});
  args.read("FIELDS", fields, AnyArg{}).read("VERBOSE", verbose_).read("HEADER", header_).read("BANNER", banner_);
  args.read("MULTIPACKET", multipacket_).read("BAD_PACKETS", bad_packets_).read("CAREFUL_TRUNC", careful_truncation_);
  args.read("EXTRA_LENGTH", extra_length_).read("BINARY", binary_);
  if (!args.complete()) return Status::failed();
  Status status;
  for (const std::string& quoted : lang::split_words(fields)) {
    const std::string word = lang::unquote(quoted);
    const summary::Field* field = summary::find_field(word);
    if (!field) {
      status = args.errors().error("unknown content type '{}'", word);
      continue;
    }
    if (binary_ && field->form == summary::Form::kTextOnly)
      status = args.errors().error("cannot use field {} with BINARY", word);
    if (field->name == "count") multipacket_ = false;
    fields_.push_back(field);
  }
  if (fields_.empty() && status.ok()) status = args.errors().error("no contents specified");
  return status;
}

std::vector<RegionInfo> ToIPSummaryDump::annotations() const {
  std::vector<RegionInfo> all;
  const auto add = [&all](auto declaration) { all.push_back(declared(declaration)[0]); };
  if (extra_length_) add(Read{anno::extra_length});
  for (const summary::Field* f : fields_) {
    if (f->name == "first_timestamp" || f->name == "first_ntimestamp") add(Read{anno::first_timestamp});
    if (f->name == "aggregate") add(Read{anno::aggregate});
    if (f->name == "link" || f->name == "paint" || f->name == "direction") add(Read{anno::paint});
    if (f->name == "count") add(Read{anno::extra_packets});
  }
  return all;
}

Status ToIPSummaryDump::initialize(Errors& errors) {
  if (const int error = file_.open(filename_, name())) return errors.error("{}: {}", filename_, std::strerror(error));
  if (input_is_pull(0)) {
    task_.initialize(true);
    signal_ = Signal::upstream_nonempty(this, 0, &task_);
  }
  if (header_) file_.add(header());
  return {};
}

std::string ToIPSummaryDump::header() const {
  std::string s = fmt::format("!IPSummaryDump {}.{}\n", summary::kMajorVersion, summary::kMinorVersion);
  if (!banner_.empty()) s += "!creator " + lang::quote(banner_) + "\n";
  if (verbose_) {
    char host[256];
    if (gethostname(host, sizeof host) == 0) {
      host[sizeof host - 1] = '\0';
      s += fmt::format("!host {}\n", host);
    }
    const Timestamp now = clock::now();
    const time_t seconds = now.sec();
    struct tm local;
    char text[64];
    if (localtime_r(&seconds, &local) && std::strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &local) > 0)
      s += fmt::format("!runtime {} ({})\n", now.unparse(), text);
  }
  s += "!data";
  for (const summary::Field* f : fields_) {
    s += ' ';
    s += f->name == "ntimestamp" && !binary_ ? "timestamp" : f->name;
  }
  s += '\n';
  if (binary_) s += "!binary\n";
  return s;
}

namespace {
void append_record_length(std::string& out, size_t length, bool text) {
  const uint32_t word = static_cast<uint32_t>(length) | (text ? 0x80000000u : 0);
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(word >> shift);
}
}  // namespace

void ToIPSummaryDump::append_line(std::string_view line, std::string& out) const {
  if (binary_) append_record_length(out, line.size() + 4, true);
  out += line;
}

void ToIPSummaryDump::append_one(const Packet& p, std::string& out) const {
  std::string complaint, record;
  summary::View view(p, {careful_truncation_, extra_length_, bad_packets_ ? &complaint : nullptr});
  for (size_t i = 0; i < fields_.size(); ++i) {
    summary::Value value;
    const bool ok = fields_[i]->extract && fields_[i]->extract(view, value);
    if (binary_) {
      summary::write_binary(*fields_[i], ok, value, record);
      continue;
    }
    if (i > 0) record += ' ';
    if (ok)
      summary::print_field(*fields_[i], view, value, record);
    else
      record += '-';
  }
  if (!complaint.empty()) append_line(complaint, out);
  if (binary_)
    append_record_length(out, record.size() + 4, false);
  else
    record += '\n';
  out += record;
}

void ToIPSummaryDump::append(Packet* p, std::string& out) const {
  const uint32_t extra = p->anno_u32(kExtraPackets);
  if (!multipacket_ || extra == 0) {
    append_one(*p, out);
    return;
  }
  // One line for each packet that it stands for, with its share of the length and of the time.
  const uint32_t count = extra + 1, extra_length = p->anno_u32(kExtraLength);
  uint32_t left = p->length() + (extra_length_ ? extra_length : 0);
  if (left < count * p->length()) left = count * p->length();
  const Timestamp last = p->timestamp();
  const Timestamp first = Timestamp::from_ns(static_cast<int64_t>(p->anno_u64(kFirstTimestamp)));
  const Timestamp step = first ? Timestamp::from_ns((last - first).ns / extra) : Timestamp{};
  if (first) p->set_timestamp(first);
  p->set_anno_u32(kExtraPackets, 0);
  for (uint32_t i = count; i > 0; --i) {
    const uint32_t length = left / i;
    p->set_anno_u32(kExtraLength, length - p->length());
    left -= length;
    if (i == 1) p->set_timestamp(last);
    append_one(*p, out);
    p->set_timestamp(p->timestamp() + step);
  }
  p->set_timestamp(last);
  p->set_anno_u32(kExtraPackets, extra);
  p->set_anno_u32(kExtraLength, extra_length);
}

void ToIPSummaryDump::push(int, Batch& batch) {
  std::string out;
  uint32_t ends[Batch::kCapacity];
  for (int i = 0; i < batch.size(); ++i) {
    append(batch[i], out);
    ends[i] = static_cast<uint32_t>(out.size());
  }
  file_.add(out, {ends, static_cast<size_t>(batch.size())});
  if (noutputs() > 0)
    output(0).push(batch);
  else
    batch.kill();
}

bool ToIPSummaryDump::run_task(Task& task) {
  Batch batch;
  const bool worked = input(0).pull(batch, 1) > 0;
  if (worked) push(0, batch);
  if (worked || signal_.active()) task.fast_reschedule();
  return worked;
}

void ToIPSummaryDump::add_note(std::string_view text) {
  std::string line = "#";
  line += text;
  if (line.back() != '\n') line += '\n';
  std::string out;
  append_line(line, out);
  file_.add(out);
}

void ToIPSummaryDump::add_handlers(Handlers& handlers) {
  handlers.button("flush", [this] { file_.flush(); });
  handlers.read("lost", [this] { return std::to_string(file_.lost()); });
}

}  // namespace headrace
