#include "runtime/name_scope.hh"

#include <filesystem>

namespace headrace {

namespace {

/// Looks `name` up in the innermost compound that defines it.
template <typename Map>
auto lookup(const Map& map, std::string prefix, std::string_view name) -> std::optional<typename Map::mapped_type> {
  for (;;) {
    const auto it = map.find(prefix + std::string(name));
    if (it != map.end()) return it->second;
    if (prefix.empty()) return std::nullopt;
    prefix.pop_back();  // the slash
    const size_t slash = prefix.rfind('/');
    prefix.resize(slash == std::string::npos ? 0 : slash + 1);
  }
}

std::string port_key(std::string_view name, int protocol) { return std::string(name) + ":" + std::to_string(protocol); }

}  // namespace

Router::Scope::Scope(Router& router, const Element* element) : router_(router), element_(element) {
  if (!element) return;
  const size_t slash = element->name().rfind('/');
  if (slash != std::string::npos) prefix_ = element->name().substr(0, slash + 1);
}

std::optional<IpAddress> Router::Scope::find_ip(std::string_view name) const {
  return lookup(router_.names_->ip, prefix_, name);
}
std::optional<IpPrefix> Router::Scope::find_prefix(std::string_view name) const {
  return lookup(router_.names_->prefix, prefix_, name);
}
std::optional<Ip6Address> Router::Scope::find_ip6(std::string_view name) const {
  return lookup(router_.names_->ip6, prefix_, name);
}
std::optional<Ip6Prefix> Router::Scope::find_ip6_prefix(std::string_view name) const {
  return lookup(router_.names_->ip6_prefix, prefix_, name);
}
std::optional<EtherAddress> Router::Scope::find_ether(std::string_view name) const {
  return lookup(router_.names_->ether, prefix_, name);
}
std::optional<AnnotationRange> Router::Scope::find_annotation(std::string_view name) const {
  return lookup(router_.names_->annotation, prefix_, name);
}
std::optional<uint16_t> Router::Scope::find_port(std::string_view name, int protocol) const {
  return lookup(router_.names_->port, prefix_, port_key(name, protocol));
}
Element* Router::Scope::find_element(std::string_view name) const { return router_.find(name, element_); }

std::string Router::Scope::find_file(std::string_view name) const {
  const std::filesystem::path given(name);
  std::error_code ignored;
  if (!element_ || given.is_absolute() || std::filesystem::exists(given, ignored)) return std::string(name);
  const std::filesystem::path beside = std::filesystem::path(element_->landmark().file).parent_path() / given;
  return std::filesystem::exists(beside, ignored) ? beside.string() : std::string(name);
}

bool Router::Scope::define(std::string_view name, IpAddress value) {
  router_.names_->ip[prefix_ + std::string(name)] = value;
  return true;
}
bool Router::Scope::define(std::string_view name, const IpPrefix& value) {
  router_.names_->prefix[prefix_ + std::string(name)] = value;
  return true;
}
bool Router::Scope::define(std::string_view name, const Ip6Address& value) {
  router_.names_->ip6[prefix_ + std::string(name)] = value;
  return true;
}
bool Router::Scope::define(std::string_view name, const Ip6Prefix& value) {
  router_.names_->ip6_prefix[prefix_ + std::string(name)] = value;
  return true;
}
bool Router::Scope::define(std::string_view name, const EtherAddress& value) {
  router_.names_->ether[prefix_ + std::string(name)] = value;
  return true;
}
bool Router::Scope::define(std::string_view name, AnnotationRange value) {
  router_.names_->annotation[prefix_ + std::string(name)] = value;
  return true;
}
bool Router::Scope::define_port(std::string_view name, int protocol, uint16_t port) {
  router_.names_->port[prefix_ + port_key(name, protocol)] = port;
  return true;
}

}  // namespace headrace
