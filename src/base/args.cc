#include "headrace/args.hh"

#include <algorithm>

#include "base/argument_text.hh"
#include "base/characters.hh"

namespace headrace {
namespace {

bool may_begin_keyword(char c) { return lang::is_letter(c) || c == '_'; }

bool may_continue_keyword(char c) {
  return lang::is_variable_character(c) || c == ':' || c == '.' || c == '?' || c == '!';
}

size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && lang::is_space(text[at])) ++at;
  return at;
}

/// The length of the keyword that space and a value follow, or 0.
size_t keyword_length(std::string_view text) {
  if (text.empty() || !may_begin_keyword(text[0])) return 0;
  size_t length = 1;
  while (length < text.size() && may_continue_keyword(text[length])) ++length;
  const size_t value = skip_space(text, length);
  return value > length && value < text.size() ? length : 0;
}

/// A name that a configuration could use; others, such as "PATTERN*", only serve messages.
bool is_keyword(std::string_view text) {
  return !text.empty() && may_begin_keyword(text[0]) && std::all_of(text.begin(), text.end(), may_continue_keyword);
}

/// A hint at the first variable in an argument: a defined one would have been replaced.
std::string undefined_variable(std::string_view text) {
  const size_t dollar = text.find('$');
  if (dollar == std::string_view::npos) return {};
  std::string_view name = text.substr(dollar + 1);
  if (name.starts_with('{')) name.remove_prefix(1);
  size_t length = 0;
  while (length < name.size() && lang::is_variable_character(name[length])) ++length;
  return length > 0 ? fmt::format(" (variable '${}' is not defined)", name.substr(0, length)) : std::string();
}

}  // namespace

std::optional<IpAddress> NameScope::find_ip(std::string_view) const { return std::nullopt; }
std::optional<IpPrefix> NameScope::find_prefix(std::string_view) const { return std::nullopt; }
std::optional<Ip6Address> NameScope::find_ip6(std::string_view) const { return std::nullopt; }
std::optional<Ip6Prefix> NameScope::find_ip6_prefix(std::string_view) const { return std::nullopt; }
std::optional<EtherAddress> NameScope::find_ether(std::string_view) const { return std::nullopt; }
std::optional<AnnotationRange> NameScope::find_annotation(std::string_view) const { return std::nullopt; }
std::optional<uint16_t> NameScope::find_port(std::string_view, int) const { return std::nullopt; }
Element* NameScope::find_element(std::string_view) const { return nullptr; }

bool NameScope::define(std::string_view, IpAddress) { return false; }
bool NameScope::define(std::string_view, const IpPrefix&) { return false; }
bool NameScope::define(std::string_view, const Ip6Address&) { return false; }
bool NameScope::define(std::string_view, const Ip6Prefix&) { return false; }
bool NameScope::define(std::string_view, const EtherAddress&) { return false; }
bool NameScope::define(std::string_view, AnnotationRange) { return false; }
bool NameScope::define_port(std::string_view, int, uint16_t) { return false; }

int NameScope::ninputs() const { return 0; }
int NameScope::noutputs() const { return 0; }

std::string ArgContext::prefixed(std::string_view text) const {
  return keyword_.empty() ? std::string(text) : fmt::format("{}: {}", keyword_, text);
}

void ArgContext::report_error(std::string_view text) const {
  reported_ = true;
  if (errors_) (void)errors_->error("{}{}", prefixed(text), undefined_variable(text_));
}

void ArgContext::report_warning(std::string_view text) const {
  if (errors_) errors_->warning("{}", prefixed(text));
}

bool ArgContext::settle(bool parsed) const {
  if (!parsed && !reported_) return expected_.empty() ? error("parse error") : error("expected {}", expected_);
  return !reported_;
}

Args::Args(std::vector<std::string> arguments, NameScope* scope, Errors& errors) : context_(scope, &errors) {
  arguments_.reserve(arguments.size());
  for (std::string& text : arguments) {
    const size_t length = keyword_length(text);
    arguments_.push_back({std::move(text), length, Use::kFree});
  }
}

Args Args::from_words(std::string_view text, NameScope* scope, Errors& errors) {
  return Args(lang::split_words(text), scope, errors);
}

Args Args::from_text(std::string_view text, NameScope* scope, Errors& errors) {
  return Args(lang::split_arguments(text), scope, errors);
}

Args::~Args() = default;

std::optional<std::string_view> Args::find(const char* key, unsigned flags) {
  const std::string_view keyword = key ? key : "";
  context_.keyword_ = keyword;
  context_.text_ = {};
  context_.expected_ = {};
  context_.reported_ = false;
  if (is_keyword(keyword) &&
      std::find(known_keywords_.begin(), known_keywords_.end(), keyword) == known_keywords_.end())
    known_keywords_.emplace_back(keyword);

  Argument* match = nullptr;
  for (Argument& argument : arguments_)
    if (argument.use == Use::kFree && argument.keyword_length > 0 && argument.keyword_length == keyword.size() &&
        argument.text.starts_with(keyword)) {
      argument.use = Use::kKeyword;
      match = &argument;
      if (flags & kFirst) break;
    }

  std::string_view text;
  if (match) text = std::string_view(match->text).substr(skip_space(match->text, match->keyword_length));

  if (flags & kPositional) {
    const auto head = std::find_if(arguments_.begin(), arguments_.end(),
                                   [](const Argument& argument) { return argument.use != Use::kPosition; });
    if (head != arguments_.end() && head->use == Use::kFree &&
        (head->keyword_length == 0 || (!match && (flags & kMandatory)))) {
      head->use = Use::kPosition;
      // A keyword stands behind the positional arguments, and the later one of two counts.
      if (!match) text = head->text;
    }
  }

  if (!text.empty()) {
    context_.text_ = text;
    return text;
  }
  if (flags & kMandatory) {
    context_.error("required argument missing");
    ok_ = false;
  }
  context_.keyword_ = {};
  return std::nullopt;
}

bool Args::settle(bool parsed) {
  const bool good = context_.settle(parsed);
  context_.keyword_ = {};
  if (!good) ok_ = false;
  return good;
}

Args& Args::consume_rest(std::vector<std::string>& rest) {
  rest.clear();
  for (Argument& argument : arguments_)
    if (argument.use == Use::kFree) {
      argument.use = Use::kPosition;
      rest.push_back(argument.text);
    }
  return *this;
}

size_t Args::remaining() const {
  return static_cast<size_t>(std::count_if(arguments_.begin(), arguments_.end(),
                                           [](const Argument& argument) { return argument.use == Use::kFree; }));
}

void Args::report_leftovers() {
  bool unknown_keyword = false, too_many = false;
  for (const Argument& argument : arguments_) {
    if (argument.use != Use::kFree) continue;
    if (argument.keyword_length > 0) {
      unknown_keyword = true;
      (void)errors().error("{}: unknown argument", std::string_view(argument.text).substr(0, argument.keyword_length));
    } else {
      too_many = true;
    }
  }
  if (unknown_keyword && !known_keywords_.empty()) {
    std::string list;
    for (const std::string& keyword : known_keywords_) list += (list.empty() ? "" : ", ") + keyword;
    errors().message("(valid keywords are {})", list);
  }
  if (too_many) (void)errors().error("too many arguments");
  if (unknown_keyword || too_many) ok_ = false;
}

Status Args::assign() {
  const std::vector<std::unique_ptr<Assignment>> assignments = std::move(assignments_);
  assignments_.clear();
  if (!ok_) return Status::failed();
  for (const auto& assignment : assignments) assignment->apply();
  return {};
}

Status Args::complete() {
  report_leftovers();
  arguments_.clear();
  return assign();
}

Status Args::consume() {
  std::erase_if(arguments_, [](const Argument& argument) { return argument.use != Use::kFree; });
  return assign();
}

}  // namespace headrace
