#include "elements/ipsec/IPsecDatabase.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "headrace/flow_hash.hh"
#include "headrace/ip_protocol.hh"
#include "headrace/rcu.hh"
#include "headrace/router.hh"
#include "tables/sa/nonce_source.hh"

namespace headrace {

namespace {

/// Jobs that are under way when keys go may still read them on a device: they are erased there when these jobs have ended.
/// The router looks for this so much later, and then, while jobs hang, less and less often.
constexpr Timestamp kFirstLook = Timestamp::from_ms(20), kLastLook = Timestamp::from_ms(1000);

/// A hash for the packets of the association that was the process's `order`th, so that associations have workers in
/// turn, and the same ones in each configuration.
uint32_t hash_for(uint32_t order, int workers) {
  const uint32_t wanted = order % static_cast<uint32_t>(workers);
  for (uint64_t i = 0;; ++i) {
    uint64_t h = (uint64_t{order} << 20 | i) * 0x9e3779b97f4a7c15;
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9;
    const uint32_t hash = static_cast<uint32_t>(h >> 32);
    if (hash != 0 && static_cast<uint32_t>(rss_worker(hash, workers)) == wanted) return hash;
  }
}

IPsecDatabase::OuterHeader4 outer_header(const AssociationConfig& c) {
  IPsecDatabase::OuterHeader4 outer;
  if (c.mode != IPsecMode::kTunnel4) return outer;
  outer.protocol = c.udp_encapsulation ? ip_protocol::kUdp : ip_protocol::kEsp;
  uint8_t words[12] = {0x45, 0, IPsecDatabase::kOuterTTL, outer.protocol};
  std::memcpy(words + 4, c.source.data() + 12, 4);
  std::memcpy(words + 8, c.destination.data() + 12, 4);
  for (size_t i = 0; i < sizeof words; i += 2) outer.sum += static_cast<uint32_t>(words[i] << 8 | words[i + 1]);
  std::memcpy(&outer.source, words + 4, 4);
  std::memcpy(&outer.destination, words + 8, 4);
  return outer;
}

std::string address_text(const Ip6Address& address, bool v6) {
  return v6 ? address.unparse() : address.embedded_v4().unparse();
}

}  // namespace

IPsecDatabase::Keys::Keys(uint32_t capacity)
    : keys(capacity),
      tags(capacity),
      hosts(capacity),
      keys_changed(capacity * sizeof(ESPKeys), true),
      tags_changed(capacity * sizeof(uint32_t)) {
  std::fill_n(tags.data(), capacity, kNoTag);
  keys_changed.mark(0, capacity * sizeof(ESPKeys));
  tags_changed.mark(0, capacity * sizeof(uint32_t));
}

IPsecDatabase::Keys::~Keys() {
  for (size_t i = 0; i < keys.size(); ++i)
    if (keys[i].exists()) wipe(keys[i]);
}

void IPsecDatabase::Keys::set(uint32_t index, const ESPKeys& value, const ESPHostKeys* host, uint32_t tag) {
  const std::lock_guard hold(lock);
  keys[index] = value;
  hosts[index] = host;
  __atomic_store_n(&tags[index], tag, __ATOMIC_RELEASE);
  keys_changed.mark(index * sizeof(ESPKeys), (index + 1) * sizeof(ESPKeys));
  tags_changed.mark(index * sizeof(uint32_t), (index + 1) * sizeof(uint32_t));
}

void IPsecDatabase::Keys::withdraw(uint32_t index) {
  const std::lock_guard hold(lock);
  __atomic_store_n(&tags[index], kNoTag, __ATOMIC_RELEASE);
  tags_changed.mark(index * sizeof(uint32_t), (index + 1) * sizeof(uint32_t));
}

void IPsecDatabase::Extra::withdraw() { keys->withdraw(index); }

IPsecDatabase::Extra::~Extra() {
  wipe(host);
  ESPKeys none{};
  if (keys) keys->set(index, none, nullptr, kNoTag);
}

IPsecDatabase::IPsecDatabase() = default;
IPsecDatabase::~IPsecDatabase() = default;

Status IPsecDatabase::configure(Args& args) {
  std::vector<std::string> files;
  std::string state;
  uint32_t capacity = 4096;
  if (!args.read_all("CONFIG", files, InputFile())
           .read("STATE", state, AnyArg())
           .read("CAPACITY", capacity, Between{1u, 1u << Tag::kIndexBits})
           .complete())
    return Status::failed();
  // "" is none: what a configuration has where a variable may give the name.
  if (state == "\"\"") state.clear();
  if (!state.empty() && !FileName{}.parse(std::string(state), state, ArgContext(args.scope(), &args.errors())))
    return args.errors().error("STATE: expected the name of a file");
  if (!state.empty())
    if (const std::string why_not = NonceSource::process().open(state); !why_not.empty())
      return args.errors().error("STATE: {}", why_not);
  keys_ = std::make_shared<Keys>(capacity);
  table_ = std::make_unique<AssociationTable>([this](const Association& a) { return make_extra(a); });
  Status status;
  for (const std::string& file : files) {
    SecgwConfig config;
    status &= read_secgw(file, config, args.errors()) ? take(config, file, args.errors()) : Status::failed();
    for (const SecgwConfig::Route& route : config.routes) routes_.push_back({route, {file, route.line}});
    for (const SecgwConfig::Neighbor& neighbor : config.neighbors)
      neighbors_.push_back({neighbor, {file, neighbor.line}});
  }
  files_are_whole_ = status.ok();
  return status;
}

Status IPsecDatabase::initialize(Errors&) {
  again_.initialize();
  for (int i = 0; i < libraries_.size(); ++i) libraries_[i] = std::make_unique<ESPLibrary>();
  return {};
}

std::unique_ptr<AssociationExtra> IPsecDatabase::make_extra(const Association& a) {
  auto extra = std::make_unique<Extra>();
  ESPKeys keys{};
  Errors errors;
  const AssociationConfig& c = a.config;
  const ESPKeyMaterial material{c.cipher, c.integrity, c.key.bytes(), c.integrity_key.bytes(), c.extended_sequence};
  // check_association() has accepted the lengths of the keys.
  (void)make_keys(material, keys, extra->host, errors);
  extra->hash = hash_for(a.state->order(), std::max(router().threads(), 1));
  extra->index = a.index;
  extra->outer = outer_header(c);
  extra->keys = keys_;
  keys_->set(a.index, keys, &extra->host, Tag::of(a));
  wipe(keys);
  return extra;
}

Status IPsecDatabase::take(const SecgwConfig& config, const std::string& path, Errors& errors) {
  Status status;
  for (const SecgwConfig::AssociationLine& line : config.associations) {
    std::string reason;
    if (!line.config.authenticates()) {
      // Files of ipsec-secgw have such associations, but what nobody has authenticated is not forwarded.
      errors.warning_at({path, line.line},
                        "'{}': the association is left out, because nothing would authenticate its packets",
                        line.config.spi);
      continue;
    }
    if (add_association(line.config, reason) == AssociationTable::kNone)
      status &= errors.error("{}:{}: {}", path, line.line, reason);
    if (!status) break;
  }
  std::vector<Policy> all = policies_.policies();
  for (const SecgwConfig::PolicyLine& line : config.policies) all.push_back(line.policy);
  if (!config.policies.empty()) policies_.build(all);
  return status;
}

Status IPsecDatabase::add(const std::string& text, Errors& errors) {
  SecgwConfig config;
  if (!read_secgw_text(text, "add", config, errors)) return Status::failed();
  for (const SecgwConfig::AssociationLine& line : config.associations)
    if (!line.config.authenticates())
      return errors.error("add:{}: '{}': nothing would authenticate its packets", line.line, line.config.spi);
  if (!config.routes.empty())
    return errors.error("add:{}: 'rt': routes are added by the handler 'add' of IPsecRoute", config.routes[0].line);
  if (!config.neighbors.empty())
    return errors.error("add:{}: 'neigh': neighbors are added by the handler 'add' of IPsecRoute",
                        config.neighbors[0].line);
  return take(config, "add", errors);
}

Status IPsecDatabase::remove(const std::string& text, Errors& errors) {
  std::istringstream words(text);
  std::string direction, spi_text, destination_text, rest;
  words >> direction >> spi_text >> destination_text >> rest;
  uint32_t spi = 0;
  Ip6Address destination{};
  const bool in = direction == "in";
  bool good = (in || direction == "out") && rest.empty() && (in || destination_text.empty()) &&
              parse_argument(spi_text, spi, ArgContext(nullptr));
  if (good && !destination_text.empty()) {
    IpAddress v4;
    if (parse_argument(destination_text, v4, ArgContext(nullptr)))
      destination = Ip6Address::v4_mapped(v4);
    else
      good = parse_argument(destination_text, destination, ArgContext(nullptr));
  }
  if (!good) return errors.error("expected 'in SPI [DESTINATION]' or 'out SPI'");
  const uint32_t index = table_->find(in ? IPsecDirection::kIn : IPsecDirection::kOut, spi, destination);
  if (index == AssociationTable::kNone || !table_->remove(index)) return errors.error("no association '{}'", text);
  erase_removed();
  return {};
}

uint32_t IPsecDatabase::add_association(const AssociationConfig& config, std::string& reason) {
  if (table_->size() < keys_->keys.size()) return table_->add(config, reason);
  reason = fmt::format("more associations than CAPACITY {}", keys_->keys.size());
  return AssociationTable::kNone;
}

void IPsecDatabase::erase_removed() {
  // Keys go when no worker can use them any more: before the devices get what has changed.
  for (int passed = 0; passed < 2; ++passed) rcu::synchronize();
  again_.schedule_after(kFirstLook);
}

void IPsecDatabase::run_timer(Timer&) {
  Errors errors;
  if (const Handler* handler = handlers().find("settle")) (void)router().call_write(*handler, "", errors);
  if (router().stale_secrets()) {
    look_after_ = std::clamp(look_after_ + look_after_, kFirstLook, kLastLook);
    again_.schedule_after(look_after_);
  } else {
    look_after_ = {};
  }
}

Status IPsecDatabase::remove_policy(const std::string& text, Errors& errors) {
  SecgwConfig config;
  if (!read_secgw_text(text, "remove_policy", config, errors)) return Status::failed();
  if (config.policies.empty()) return errors.error("expected a policy, as 'policies' shows it");
  Status status;
  for (const SecgwConfig::PolicyLine& line : config.policies)
    if (!policies_.remove(line.policy)) status &= errors.error("no policy '{}'", line.policy.unparse());
  return status;
}

std::string IPsecDatabase::counts() const {
  std::string out;
  table_->for_each([&](const Association& a) {
    const bool v6 = a.config.mode == IPsecMode::kTunnel6;
    out += fmt::format("{} {}", a.config.direction == IPsecDirection::kIn ? "in" : "out", a.config.spi);
    if (a.config.mode != IPsecMode::kTransport) out += " " + address_text(a.config.destination, v6);
    out += ":";
    for (int e = 0; e < kAssociationEvents; ++e) {
      const uint64_t n = a.sum(static_cast<AssociationEvent>(e));
      if (n != 0 || e < 2)
        out += fmt::format("{} {} {}", e == 0 ? "" : ",", n, to_string(static_cast<AssociationEvent>(e)));
    }
    out += "\n";
  });
  return out;
}

void IPsecDatabase::add_handlers(Handlers& handlers) {
  handlers.read("associations", [this] {
    std::string out;
    table_->for_each([&](const Association& a) { out += a.config.unparse() + "\n"; });
    return out;
  });
  handlers.read("policies", [this] {
    std::string out;
    for (const Policy& policy : policies_.policies()) out += policy.unparse() + "\n";
    return out;
  });
  handlers.read("counts", [this] { return counts(); });
  handlers.read("instructions", [this] { return std::string(libraries_[0] ? libraries_[0]->instructions() : ""); });
  handlers.write(
      "add", [this](const std::string& v, Errors& errors) { return add(v, errors); }, Handler::kThreadSafe);
  handlers.write(
      "remove", [this](const std::string& v, Errors& errors) { return remove(v, errors); }, Handler::kThreadSafe);
  handlers.write(
      "remove_policy", [this](const std::string& v, Errors& errors) { return remove_policy(v, errors); },
      Handler::kThreadSafe);
  // Does nothing: devices are brought up to date behind a handler.
  handlers.write(
      "settle", [](const std::string&, Errors&) { return Status(); },
      Handler::kThreadSafe | Handler::kPrivate | Handler::kUncommon);
}

std::string IPsecDatabase::note() const {
  return fmt::format("{} associations, {} policies", table_->size(), policies_.size());
}

std::function<bool(Packet&)> IPsecDatabase::adopter(const IPsecDatabase& before) const {
  std::unordered_map<const AssociationState*, const Association*> here;
  for_each([&](const Association& a) { here.emplace(a.state.get(), &a); });
  struct Mark {
    uint32_t tag, hash;
  };
  std::unordered_map<uint32_t, Mark> marks;  // by the tag before
  before.for_each([&](const Association& a) {
    if (const auto same = here.find(a.state.get()); same != here.end())
      marks.emplace(Tag::of(a), Mark{Tag::of(*same->second), static_cast<Extra&>(*same->second->extra).hash});
  });
  return [marks = std::move(marks)](Packet& p) {
    const auto mark = marks.find(p.anno_u32(anno::esp_association.kOffset));
    if (mark == marks.end()) return false;
    p.set_anno_u32(anno::esp_association.kOffset, mark->second.tag);
    p.set_rx_hash(mark->second.hash);
    return true;
  };
}

IPsecDatabase::View IPsecDatabase::mirror(Mirror& mirror) const {
  const std::lock_guard hold(keys_->lock);
  return {mirror.array(keys_->keys.data(), keys_->keys.size(), &keys_->keys_changed),
          mirror.array(keys_->tags.data(), keys_->tags.size(), &keys_->tags_changed)};
}

HEADRACE_ELEMENT(IPsecDatabase)

}  // namespace headrace
