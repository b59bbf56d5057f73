#pragma once
/// \file
/// Names that a configuration defines (AddressInfo and its kin), by compound.

#include <map>
#include <string>

#include "headrace/args.hh"
#include "headrace/router.hh"

namespace headrace {

/// All names of a router, each under "compound/name".
struct Router::Names {
  std::map<std::string, IpAddress, std::less<>> ip;
  std::map<std::string, IpPrefix, std::less<>> prefix;
  std::map<std::string, Ip6Address, std::less<>> ip6;
  std::map<std::string, Ip6Prefix, std::less<>> ip6_prefix;
  std::map<std::string, EtherAddress, std::less<>> ether;
  std::map<std::string, AnnotationRange, std::less<>> annotation;
  std::map<std::string, uint16_t, std::less<>> port;  // "compound/name:protocol"
};

/// What one element sees of them.
class Router::Scope final : public NameScope {
 public:
  Scope(Router& router, const Element* element);

  std::optional<IpAddress> find_ip(std::string_view name) const override;
  std::optional<IpPrefix> find_prefix(std::string_view name) const override;
  std::optional<Ip6Address> find_ip6(std::string_view name) const override;
  std::optional<Ip6Prefix> find_ip6_prefix(std::string_view name) const override;
  std::optional<EtherAddress> find_ether(std::string_view name) const override;
  std::optional<AnnotationRange> find_annotation(std::string_view name) const override;
  std::optional<uint16_t> find_port(std::string_view name, int protocol) const override;
  Element* find_element(std::string_view name) const override;

  std::string find_file(std::string_view name) const override;

  bool define(std::string_view name, IpAddress value) override;
  bool define(std::string_view name, const IpPrefix& value) override;
  bool define(std::string_view name, const Ip6Address& value) override;
  bool define(std::string_view name, const Ip6Prefix& value) override;
  bool define(std::string_view name, const EtherAddress& value) override;
  bool define(std::string_view name, AnnotationRange value) override;
  bool define_port(std::string_view name, int protocol, uint16_t port) override;

  int ninputs() const override { return element_ ? element_->ninputs() : 0; }
  int noutputs() const override { return element_ ? element_->noutputs() : 0; }

 private:
  Router& router_;
  const Element* element_;
  std::string prefix_;  // "outer/inner/" or ""
};

}  // namespace headrace
