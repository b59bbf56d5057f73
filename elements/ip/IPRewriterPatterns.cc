#include "elements/ip/IPRewriterPatterns.hh"

#include "headrace/router.hh"

namespace headrace {

namespace {

/// "a/b/" of the element "a/b/c".
std::string_view compound_of(const Element& element) {
  const std::string_view name = element.name();
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash + 1);
}

}  // namespace

Status IPRewriterPatterns::configure(Args& args) {
  std::vector<std::string> lines;
  if (!args.consume_rest(lines).complete()) return Status::failed();
  Status status;
  for (const std::string& line : lines) {
    std::vector<std::string> words = detail::words_of(line);
    if (words.empty()) continue;
    const std::string name = words.front();
    words.erase(words.begin());
    std::string error;
    if (find(name, *this)) {
      status = args.errors().error("pattern '{}' already defined", name);
    } else if (auto pattern = RewriterPattern::parse(words, *this, args.context(), error)) {
      patterns_.emplace(name, std::move(pattern));
    } else {
      status = args.errors().error("{}: {}", name, error);
    }
  }
  return status;
}

std::shared_ptr<RewriterPattern> IPRewriterPatterns::find(std::string_view name, const Element& user) {
  std::shared_ptr<RewriterPattern> found;
  size_t depth = 0;
  for (const std::unique_ptr<Element>& element : user.router().elements()) {
    const auto* patterns = dynamic_cast<const IPRewriterPatterns*>(element.get());
    if (!patterns) continue;
    const std::string_view compound = compound_of(*patterns);
    if (!std::string_view(user.name()).starts_with(compound) || (found && compound.size() < depth)) continue;
    if (const auto at = patterns->patterns_.find(name); at != patterns->patterns_.end()) {
      found = at->second;
      depth = compound.size();
    }
  }
  return found;
}

}  // namespace headrace
