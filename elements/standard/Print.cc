#include "elements/standard/Print.hh"

#include <algorithm>
#include <cctype>

#include "headrace/chatter.hh"

namespace headrace {

namespace {

void append_hex(std::string& line, const uint8_t* bytes, int n, int group) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (int i = 0; i < n; ++i) {
    if (i > 0 && group > 0 && i % group == 0) line += ' ';
    line += kDigits[bytes[i] >> 4];
    line += kDigits[bytes[i] & 15];
  }
}

void append_ascii(std::string& line, const uint8_t* bytes, int n) {
  for (int i = 0; i < n; ++i) {
    if (i % 8 == 0) line += ' ';
    line += bytes[i] < 32 || bytes[i] > 126 ? '.' : static_cast<char>(bytes[i]);
  }
}

}  // namespace

Status Print::configure(Args& args) {
  std::string contents = "HEX";
  label_.clear();
  max_length_ = 24;
  timestamp_ = annotations_ = headroom_ = cpu_ = false;
  active_ = true;
  args.read_p("LABEL", label_).read_p("MAXLENGTH", max_length_);
  args.read("NBYTES", max_length_).read("LENGTH", max_length_);
  args.read("CONTENTS", contents, WordArg{}).read("TIMESTAMP", timestamp_).read("PRINTANNO", annotations_);
  args.read("HEADROOM", headroom_).read("CPU", cpu_).read("ACTIVE", active_);
  if (!args.complete()) return Status::failed();
  std::string word = contents;
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  bool on;
  if (parse_argument(contents, on, ArgContext()))
    contents_ = on ? Contents::kHex : Contents::kNone;
  else if (word == "NONE")
    contents_ = Contents::kNone;
  else if (word == "HEX")
    contents_ = Contents::kHex;
  else if (word == "ASCII")
    contents_ = Contents::kAscii;
  else
    return args.errors().error("bad contents value '{}'; should be 'NONE', 'HEX', or 'ASCII'", contents);
  return {};
}

std::string Print::describe(const Packet& p) const {
  const int length = static_cast<int>(p.length());
  std::string line = label_;
  const char* separator = label_.empty() ? "" : ": ";
  if (cpu_) {
    line += fmt::format("({})", thread_id());
    separator = ": ";
  }
  if (timestamp_) {
    line += separator + p.timestamp().unparse();
    separator = ": ";
  }
  line += fmt::format("{}{:4}", separator, length);
  if (headroom_) line += fmt::format(" (h{} t{})", p.headroom(), p.tailroom());
  if (annotations_) {
    line += " | ";
    append_hex(line, p.anno(), Packet::kAnnoSize, 0);
  }
  const int shown = max_length_ < 0 ? length : std::min(max_length_, length);
  if (contents_ == Contents::kNone || shown == 0) return line;
  line += " | ";
  if (contents_ == Contents::kHex)
    append_hex(line, p.data(), shown, 4);
  else
    append_ascii(line, p.data(), shown);
  return line;
}

Packet* Print::act(Packet* p, Emitter&) {
  if (active_) chatter_line(describe(*p));
  return p;
}

void Print::add_handlers(Handlers& handlers) { handlers.value("active", active_, {}, Handler::kCalm); }

}  // namespace headrace
