#include "elements/ids/RegexMatcher.hh"

#include <fmt/format.h>

#include <algorithm>

#include "tables/files/file_stamp.hh"
#include "tables/files/text_lines.hh"
#include "tables/regex/regex_scanner.hh"

namespace headrace {

struct RegexMatcherOwner {
  std::unique_ptr<RegexScanner> scanner;
  std::vector<FileStamp> files;
  int offset = anno::pattern.kOffset;
  bool has_matched_port = false;

  bool current() const {
    return std::all_of(files.begin(), files.end(), [](const FileStamp& file) { return file.unchanged(); });
  }
};

namespace {

/// Takes `/EXPR/FLAGS` or EXPR apart. Returns what is wrong with it.
std::string take_apart(std::string_view written, std::string_view& text, RegexFlags& flags) {
  flags = RegexFlags();
  text = written;
  const size_t slash = written.rfind('/');
  if (written.empty()) return "empty expression";
  if (written[0] != '/' || slash == 0) return {};
  text = written.substr(1, slash - 1);
  if (text.empty()) return "empty expression";
  const std::string_view letters = written.substr(slash + 1);
  if (!parse_regex_flags(letters, flags)) {
    return fmt::format(
        "unknown flags '{}', expected some of i, s, m and x (an expression that begins with a slash "
        "begins with '\\/')",
        letters);
  }
  return {};
}

std::string add_expression(RegexScanner& scanner, std::string_view written) {
  std::string_view text;
  RegexFlags flags;
  std::string fault = take_apart(written, text, flags);
  return fault.empty() ? scanner.add(text, flags) : fault;
}

Status read_file(RegexScanner& scanner, const std::string& path, bool strict, Errors& errors) {
  Status status;
  int line = 0;
  const std::string fault = read_text_lines(path, [&](std::string_view text) {
    ++line;
    if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
    if (text.empty() || text[0] == '#') return;
    const std::string wrong =
        text.size() > kLongestTextLine ? std::string("the line is too long") : add_expression(scanner, text);
    if (wrong.empty()) return;
    if (strict) {
      status &= errors.error("{}:{}: {}", path, line, wrong);
    } else {
      errors.warning("{}:{}: {}", path, line, wrong);
    }
  });
  if (!fault.empty()) status &= errors.error("{}: {}", path, fault);
  return status;
}

/// The payload as the shader's scan sees it.
PayloadBytes payload_of(const Packet& p) {
  PacketBytes bytes;
  bytes.data = p.data();
  bytes.length = p.length();
  if (p.has_network_header()) bytes.network = p.network_header_offset();
  return l4_payload(bytes);
}

}  // namespace

Status RegexMatcher::configure(Args& args, Owner& owner) {
  std::vector<std::string> files, rest;
  AnnotationArg<4> annotation{anno::pattern.kOffset};
  uint32_t states = 32768;
  bool strict = false;
  Status status = args.read_all("FILE", files, InputFile{})
                      .read("ANNO", annotation)
                      .read("STATES", states, Between{1, 4000000})
                      .read("STRICT", strict)
                      .consume();
  args.consume_rest(rest);
  status &= args.complete();
  RegexTable::Limits limits;
  limits.states = states;
  limits.bytes = std::max(limits.bytes, size_t{states} * 1024);
  owner.scanner = std::make_unique<RegexScanner>(limits);
  owner.files.clear();
  for (size_t i = 0; i < rest.size(); ++i) {
    std::string written;
    if (!parse_argument(rest[i], written, ArgContext())) {
      status &= args.errors().error("EXPR{}: expected one expression, in single quotes if it has blanks or commas", i);
      continue;
    }
    const std::string wrong = add_expression(*owner.scanner, written);
    if (!wrong.empty()) status &= args.errors().error("EXPR{}: {}", i, wrong);
  }
  for (const std::string& file : files) {
    owner.files.push_back(FileStamp::of(file));
    status &= read_file(*owner.scanner, file, strict, args.errors());
  }
  if (!status.ok()) return status;
  if (owner.scanner->size() == 0) return args.errors().error("expected an expression or FILE");
  owner.offset = annotation;
  owner.has_matched_port = args.scope() && args.scope()->noutputs() > 1;
  return owner.scanner->build(args.errors());
}

void RegexMatcher::add_handlers(Handlers& handlers, Owner& owner, ShaderElement<RegexMatcher>& element) {
  handlers.read("matches", [&element] { return std::to_string(element.counter(kMatched)); });
  handlers.read("confirmed", [&element] { return std::to_string(element.counter(kConfirmed)); });
  handlers.read("cut", [&element] { return std::to_string(element.counter(kCut)); });
  handlers.read("counts", [&element, &owner] {
    std::string lines;
    const size_t n = owner.scanner->size();
    for (size_t i = 0; i < std::min<size_t>(n, kCounted); ++i) {
      lines += fmt::format("{}{}\t{}\n", i, i + 1 == kCounted && n > kCounted ? "+" : "",
                           element.counter(kByNumber + static_cast<int>(i)));
    }
    return lines;
  });
  handlers.read("patterns", [&owner] { return owner.scanner->list(); });
  handlers.read("table", [&owner] { return owner.scanner->text(); });
  handlers.read("states", [&owner] { return std::to_string(owner.scanner->table().states()); });
  handlers.write("reset", [&element](const std::string&, Errors&) {
    element.reset_counters();
    return Status();
  });
}

auto RegexMatcher::note(const Owner& owner) const {
  return owner.scanner ? owner.scanner->table().note() : std::string();
}

void RegexMatcher::refresh(const Owner& owner) {
  view = owner.scanner->table().view();
  offset = owner.offset;
  matched_port = owner.has_matched_port ? 1 : 0;
  asks_always = owner.scanner->asks_always() ? 1 : 0;
}

void RegexMatcher::mirror(Mirror& mirror, const Owner& owner) {
  refresh(owner);
  view = owner.scanner->table().mirror(mirror);
}

RegexFound RegexMatcher::scan_on_cpu(const PayloadBytes& payload, const Owner& owner) const {
  // Candidates are left to escape(), which counts them.
  if (asks_always != 0 || !owner.scanner->uses_vectorscan()) return scan(HostTeam<1>{}, payload);
  return {owner.scanner->first(payload).match.key, 0};
}

Next RegexMatcher::escape(Packet*& p, Emitter& emit, Owner& owner) const {
  auto& element = static_cast<ShaderElementBase&>(emit.element());
  const RegexScanner::First first = owner.scanner->first(payload_of(*p));
  element.count_event(kConfirmed);
  if (first.cut) element.count_event(kCut);
  if (!first.match.found()) return 0;
  const uint32_t number = first.match.pattern();
  p->set_anno_u32(owner.offset, number);
  element.count_event(kMatched);
  element.count_event(kByNumber + static_cast<int>(std::min(number, kCounted - 1)));
  return owner.has_matched_port ? 1 : 0;
}

HEADRACE_ELEMENT(RegexMatcher)

}  // namespace headrace
