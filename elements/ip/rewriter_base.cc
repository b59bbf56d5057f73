#include "elements/ip/rewriter_base.hh"

#include <algorithm>

#include "headrace/router.hh"

namespace headrace {

namespace {

constexpr int kReapedAtOnce = 512;
constexpr int64_t kReapPauseNs = 1'000'000;

/// What to add to the complement of a checksum when words change from those of `a` to those of `b` (RFC 1624, eqn. 3):
/// of the addresses, and of addresses and ports. 0: nothing changes.
void find_changes(const FlowId& a, const FlowId& b, uint16_t& ip_change, uint16_t& port_change) {
  const auto words = [](const FlowId& id) {
    return std::array{static_cast<uint16_t>(id.src.host_order() >> 16),
                      static_cast<uint16_t>(id.src.host_order()),
                      static_cast<uint16_t>(id.dst.host_order() >> 16),
                      static_cast<uint16_t>(id.dst.host_order()),
                      id.sport,
                      id.dport};
  };
  const auto fold = [](uint32_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(sum == 0xffff ? 0 : sum);
  };
  const auto before = words(a), after = words(b);
  uint32_t sum = 0;
  for (size_t i = 0; i < 4; ++i) sum += static_cast<uint16_t>(~before[i]) + uint32_t{after[i]};
  ip_change = fold(sum);
  for (size_t i = 4; i < 6; ++i) sum += static_cast<uint16_t>(~before[i]) + uint32_t{after[i]};
  port_change = fold(sum);
}

}  // namespace

bool PatternSpec::parse_outputs(const std::string& there, const std::string& back, int (&outputs)[2],
                                std::string& error) {
  if (!parse_argument(there, outputs[0], {}))
    error = "bad forward port";
  else if (!parse_argument(back, outputs[1], {}))
    error = "bad reply port";
  else
    return true;
  return false;
}

bool PatternSpec::parse(std::vector<std::string> words, const Element& user, const ArgContext& context,
                        PatternSpec& spec, std::string& error) {
  if (words.size() <= 2) {
    error = "syntax error, expected a pattern, FOUTPUT and ROUTPUT";
    return false;
  }
  const std::string back = words.back(), there = words[words.size() - 2];
  words.resize(words.size() - 2);
  spec.pattern = RewriterPattern::parse(words, user, context, error);
  return spec.pattern && parse_outputs(there, back, spec.outputs, error);
}

Status RewriterBase::parse_input(const std::string& text, const ArgContext& context, InputSpec& input,
                                 std::string& error) const {
  std::vector<std::string> words = detail::words_of(text);
  if (words.empty()) {
    error = "empty argument";
    return Status::failed();
  }
  const std::string kind = words.front();
  words.erase(words.begin());
  if (kind == "pass" || kind == "passthrough" || kind == "nochange") {
    input.kind = InputSpec::Kind::kPass;
    if (words.size() > 1 || (!words.empty() && !parse_argument(words[0], input.pattern.outputs[0], {})))
      error = "syntax error, expected 'nochange [OUTPUT]'";
  } else if (kind == "keep") {
    input.kind = InputSpec::Kind::kKeep;
    if (words.size() != 2)
      error = "bad forward port";
    else
      PatternSpec::parse_outputs(words[0], words[1], input.pattern.outputs, error);
  } else if (kind == "drop" || kind == "discard") {
    input.kind = InputSpec::Kind::kDrop;
    if (!words.empty()) error = fmt::format("syntax error, expected '{}'", kind);
  } else if (kind == "pattern" || kind == "xpattern") {
    input.kind = InputSpec::Kind::kPattern;
    PatternSpec::parse(words, *this, context, input.pattern, error);
  } else if (Element* element = router().find(kind, this)) {
    input.kind = InputSpec::Kind::kMapper;
    input.mapper = dynamic_cast<IpMapper*>(element);
    if (!words.empty())
      error = "syntax error, expected element name";
    else if (!input.mapper)
      error = "element is not an IPMapper";
  } else {
    error = fmt::format("unknown specification '{}'", kind);
  }
  if (error.empty() && !input.pattern.fits(*this)) error = "output port out of range";
  return error.empty() ? Status() : Status::failed();
}

void RewriterBase::read_annos(Args& args, bool with_dst) {
  if (with_dst) args.read("DST_ANNO", dst_anno_);
  bool given = false;
  AnnotationArg<1> at;
  args.read_status("REPLY_ANNO", at, given);
  if (args.consume() && given) reply_anno_ = at;
}

Status RewriterBase::configure_base(Args& args) {
  std::string capacity;
  args.read("CAPACITY", capacity, WordArg()).read("MAPPING_CAPACITY", capacity, WordArg());
  args.read("TIMEOUT", timeout_).read("GUARANTEE", guarantee_);
  args.read("REAP_TIME", reap_interval_).read("REAP_INTERVAL", reap_interval_);
  if (!args.consume()) return Status::failed();
  if (!capacity.empty()) {
    const ArgContext quiet(args.scope());
    Element* other = nullptr;
    if (parse_argument(capacity, capacity_, quiet)) {
      if (capacity_ == 0 || capacity_ > 1u << 28)
        return args.errors().error("MAPPING_CAPACITY: out of range, expected 1 to {}", 1u << 28);
    } else if (!parse_argument(capacity, other, quiet) || !(shared_with_ = dynamic_cast<RewriterBase*>(other))) {
      return args.errors().error("bad MAPPING_CAPACITY '{}', expected a number or the name of a rewriter", capacity);
    }
  }
  std::vector<std::string> specs;
  if (!args.consume_rest(specs).complete()) return Status::failed();
  if (static_cast<int>(specs.size()) != ninputs())
    return args.errors().error("need {} argument{}, one per input port", ninputs(), ninputs() == 1 ? "" : "s");
  Status status;
  for (size_t i = 0; i < specs.size(); ++i) {
    InputSpec input;
    std::string error;
    if (parse_input(specs[i], args.context(), input, error))
      inputs_.push_back(std::move(input));
    else
      status = args.errors().error("input spec {}: {}", i, error);
  }
  count_reasons({"no flow", "no room for a flow", "no IP header"});
  return status;
}

Status RewriterBase::check_input(const InputSpec& input, int index, Errors& errors) const {
  if (input.kind != InputSpec::Kind::kMapper) return {};
  const Errors::Context context(errors, {}, fmt::format("input spec {}:", index));
  return input.mapper->check_user(*this, errors);
}

std::vector<RegionInfo> RewriterBase::annotations() const {
  std::vector<RegionInfo> all;
  if (dst_anno_) all = declared(Write{anno::dst_ip});
  if (reply_anno_ >= 0) all.push_back({Anchor::kAnno, reply_anno_, 1, true, true});
  return all;
}

Status RewriterBase::initialize(Errors& errors) {
  Status status;
  for (size_t i = 0; i < inputs_.size(); ++i) status &= check_input(inputs_[i], static_cast<int>(i), errors);
  size_t steps = 0;
  for (owner_ = this; owner_->shared_with_; owner_ = owner_->shared_with_)
    if (++steps > router().elements().size())
      return errors.error("MAPPING_CAPACITY: the rewriters refer to each other");
  if (!owner_->table_) owner_->table_ = std::make_shared<FlowTable>(owner_->capacity_);
  owner_->users_.push_back(this);
  join(*owner_->table_);
  timer_.initialize();
  if (reap_interval_.ns && owner_ == this) timer_.schedule_after(reap_interval_.timestamp());
  return status;
}

void RewriterBase::join(FlowTable& table) {
  for (Protocol& protocol : protocols_)
    protocol.space = table.add_space(space_name(protocol), protocol.lifetimes, ninputs());
}

void RewriterBase::take_state(Element& old, Errors&) {
  auto& from = static_cast<RewriterBase&>(old);
  // Rewriters that share a table use the one of its owner.
  if (owner_ != this || from.owner_ != &from || !from.table_) return;
  std::swap(table_, from.table_);
  for (RewriterBase* user : users_) user->join(*table_);
  table_->set_capacity(capacity_);
}

void RewriterBase::run_timer(Timer& timer) {
  // A part at a time, so that this worker's packets need not wait.
  const bool more = table().expire(clock::steady().ns, kReapedAtOnce);
  timer.schedule_after(more ? Timestamp::from_ns(kReapPauseNs) : reap_interval_.timestamp());
}

RewriterBase::Outcome RewriterBase::add_flow(int input, int protocol, const FlowId& id, uint8_t ip_protocol,
                                             RewriterPattern::Ports ports, uint8_t reply_anno, int64_t now) {
  const InputSpec& spec = inputs_[static_cast<size_t>(input)];
  if (spec.kind == InputSpec::Kind::kDrop) return {};
  if (spec.kind == InputSpec::Kind::kPass) return {nullptr, static_cast<Next>(spec.pattern.outputs[0]), kNoFlow};

  const uint32_t space = this->space(protocol);
  FlowTable::Change change(table());
  if (FlowEntry* entry = change.find(space, id)) return {entry, 0, kNoFlow};  // another worker has made it
  const NewFlow flow{id, ports, now, change, space};
  Rewriting rewriting;
  bool mapped = true;
  if (spec.kind == InputSpec::Kind::kMapper) {
    mapped = spec.mapper->map(flow, rewriting);
  } else if (spec.kind == InputSpec::Kind::kPattern) {
    mapped = spec.pattern.map(flow, rewriting);
  } else {
    rewriting = {id, {static_cast<uint16_t>(spec.pattern.outputs[0]), static_cast<uint16_t>(spec.pattern.outputs[1])}};
  }
  if (mapped && may_become(rewriting.rewritten)) {
    FlowInfo info{.outputs = {rewriting.outputs[0], rewriting.outputs[1]},
                  .input = static_cast<uint16_t>(input),
                  .protocol = ip_protocol,
                  .reply_anno = reply_anno};
    find_changes(id, rewriting.rewritten, info.ip_change, info.port_change);
    if (FlowRecord* made = change.insert(space, id, rewriting.rewritten, info, now))
      return {const_cast<FlowEntry*>(&made->entry(false)), 0, kNoFlow};
  }
  failures_.add(0, 1);
  return {nullptr, kDrop, kNoRoom};
}

bool RewriterBase::owns(const FlowRecord& flow) const {
  return std::any_of(protocols_.begin(), protocols_.end(), [&](const Protocol& p) { return p.space == flow.space(); });
}

uint32_t RewriterBase::count(int input) const {
  uint32_t count = 0;
  for (const Protocol& protocol : protocols_) count += table().count(protocol.space, input);
  return count;
}

std::string RewriterBase::unparse_input(int i) const {
  const InputSpec& input = inputs_[static_cast<size_t>(i)];
  std::string text;
  switch (input.kind) {
    case InputSpec::Kind::kDrop:
      text = "<drop>";
      break;
    case InputSpec::Kind::kPass:
      text = "<nochange>";
      break;
    case InputSpec::Kind::kKeep:
      text = "<keep>";
      break;
    case InputSpec::Kind::kPattern:
      text = input.pattern.pattern->unparse();
      break;
    case InputSpec::Kind::kMapper:
      text = "<mapper>";
      break;
  }
  if (const uint32_t flows = count(i)) text += fmt::format(" [{}]", flows);
  return text + "\n";
}

std::string RewriterBase::list(int protocol, const std::function<std::string(const FlowEntry&)>& line) {
  const int64_t now = clock::steady().ns;
  const uint32_t wanted = space(protocol);
  std::string text;
  table().for_each([&](const FlowRecord& flow) {
    if (flow.space() != wanted) return;
    const int64_t left = (table().expiry(flow) - now + 500'000'000) / 1'000'000'000;
    for (const bool reply : {false, true})
      text += fmt::format("{} [{}{} {}{}] i{} exp{}\n", line(flow.entry(reply)), reply ? "" : "*",
                          flow.entry(false).output(), reply ? "*" : "", flow.entry(true).output(), flow.input(), left);
  });
  return text;
}

Status RewriterBase::write_pattern(int i, const std::string& text, Errors& errors) {
  InputSpec input;
  std::string error;
  if (!parse_input(text, ArgContext(&router().scope(this)), input, error))
    return errors.error("input spec {}: {}", i, error);
  if (!check_input(input, i, errors)) return Status::failed();
  // Flows that the old spec has made go.
  table().remove_if([&](const FlowRecord& flow) { return flow.input() == i && owns(flow); });
  inputs_[static_cast<size_t>(i)] = std::move(input);
  return {};
}

void RewriterBase::add_base_handlers(Handlers& handlers) {
  const auto flows = [this] {
    uint32_t sum = 0;
    for (int i = 0; i < ninputs(); ++i) sum += count(i);
    return std::to_string(sum);
  };
  handlers.read("table_size", flows);
  handlers.read("nmappings", flows, Handler::kDeprecated);
  handlers.read("mapping_failures", [this] { return std::to_string(failures_.sum(0)); });
  handlers.read("patterns", [this] {
    std::string text;
    for (int i = 0; i < ninputs(); ++i) text += unparse_input(i);
    return text;
  });
  handlers.read("size", [this] { return std::to_string(table().size()); });
  handlers.read("capacity", [this] { return std::to_string(table().capacity()); });
  handlers.write("capacity", [this](const std::string& text, Errors& errors) {
    uint32_t capacity = 0;
    Args args = Args::from_words(text, nullptr, errors);
    if (!args.read_mp("CAPACITY", capacity, Between{1, 1 << 28}).complete()) return Status::failed();
    owner_->capacity_ = capacity;
    table().set_capacity(capacity);
    while (table().expire(clock::steady().ns, kReapedAtOnce)) {
    }
    return Status();
  });
  handlers.button("clear", [this] { table().remove_if([](const FlowRecord&) { return true; }); });
  for (int i = 0; i < ninputs(); ++i) {
    handlers.read("pattern" + std::to_string(i), [this, i] { return unparse_input(i); });
    handlers.write("pattern" + std::to_string(i),
                   [this, i](const std::string& text, Errors& errors) { return write_pattern(i, text, errors); });
  }
}

}  // namespace headrace
