#include "elements/control/AlignmentInfo.hh"

namespace headrace {

namespace {

/// Checks the text of one argument.
Status check_alignment(const std::string& text, Args& args) {
  std::vector<std::string> words;
  if (!parse_argument(text, words, args.context())) return Status::failed();
  Element* element = nullptr;
  if (words.empty() || !parse_argument(words[0], element, ArgContext(args.scope())))
    return args.errors().error("expected an element's name, got '{}'", words.empty() ? "" : words[0]);
  if (words.size() % 2 == 0) return args.errors().error("expected 'ELEMENT [MODULUS OFFSET ...]', got '{}'", text);
  for (size_t i = 1; i < words.size(); i += 2) {
    uint32_t modulus = 0, offset = 0;
    if (!parse_argument(words[i], modulus, ArgContext()) || !parse_argument(words[i + 1], offset, ArgContext()) ||
        offset >= modulus)
      return args.errors().error("expected MODULUS and a smaller OFFSET, got '{} {}'", words[i], words[i + 1]);
  }
  return {};
}

}  // namespace

Status AlignmentInfo::configure(Args& args) {
  std::vector<std::string> entries;
  args.consume_rest(entries);
  Status status = args.complete();
  for (const std::string& entry : entries) status &= check_alignment(entry, args);
  return status;
}

}  // namespace headrace
