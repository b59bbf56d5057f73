#include "elements/ip/RoundRobinIPMapper.hh"

namespace headrace {

Status RoundRobinIPMapper::configure(Args& args) {
  std::vector<std::string> texts;
  if (!args.consume_rest(texts).complete()) return Status::failed();
  if (texts.empty()) return args.errors().error("no patterns given");
  if (texts.size() == 1) args.errors().warning("only one pattern given");
  Status status;
  for (size_t i = 0; i < texts.size(); ++i) {
    PatternSpec spec;
    std::string error;
    if (PatternSpec::parse(detail::words_of(texts[i]), *this, args.context(), spec, error))
      patterns_.push_back(std::move(spec));
    else
      status = args.errors().error("pattern {}: {}", i, error);
  }
  return status;
}

Status RoundRobinIPMapper::check_user(const RewriterBase& user, Errors& errors) const {
  Status status;
  for (size_t i = 0; i < patterns_.size(); ++i)
    if (!patterns_[i].fits(user)) status = errors.error("output port out of range in {} pattern {}", declaration(), i);
  return status;
}

bool RoundRobinIPMapper::map(const NewFlow& flow, Rewriting& rewriting) {
  for (size_t n = 0; n < patterns_.size(); ++n) {
    const size_t i = next_.fetch_add(1, std::memory_order_relaxed) % patterns_.size();
    if (patterns_[i].map(flow, rewriting)) return true;
  }
  return false;
}

}  // namespace headrace
