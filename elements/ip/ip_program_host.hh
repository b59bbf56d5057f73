#pragma once
/// \file
/// What IPFilter and IPClassifier share on the host.

#include <cstring>
#include <headrace/element.hh>
#include <string>
#include <vector>

#include "elements/ip/ip_program.hh"
#include "tables/decision/ip_filter.hh"

namespace headrace {

/// The sections of a packet in this host's memory.
struct IpPacketWords {
  explicit IpPacketWords(const Packet& p) {
    if (p.has_mac_header()) set(decision_section::kMac, p.mac_header(), p);
    if (p.has_network_header()) set(decision_section::kNetwork, p.network_header(), p);
    if (p.has_transport_header()) set(decision_section::kTransport, p.transport_header(), p);
  }

  uint32_t length(uint32_t section) const { return lengths[section]; }
  uint32_t load(uint32_t section, uint32_t offset) const {
    uint32_t word;
    std::memcpy(&word, begins[section] + offset, sizeof word);
    return word;
  }
  uint8_t byte(uint32_t section, uint32_t offset) const { return begins[section][offset]; }

  const uint8_t* begins[decision_section::kCount] = {};
  uint32_t lengths[decision_section::kCount] = {};

 private:
  void set(uint32_t section, const uint8_t* begin, const Packet& p) {
    begins[section] = begin;
    if (begin < p.end_data()) lengths[section] = static_cast<uint32_t>(p.end_data() - begin);
  }
};

template <typename Self>
void IpProgramShader<Self>::refresh(const Owner& owner) {
  renew(program, owner.view());
}

template <typename Self>
void IpProgramShader<Self>::mirror(Mirror& mirror, const Owner& owner) {
  program = owner.view_at(mirror.array(owner.image(), owner.image_size()));
}

template <typename Self>
ShaderCode IpProgramShader<Self>::specialize(const Owner& owner) const {
  return {shade_by_code(owner)};
}

template <typename Self>
Next IpProgramShader<Self>::escape(Packet*& p, Emitter& emit, Owner& owner) {
  const int output = owner.view().match(IpPacketWords(*p));
  if (output >= 0) return static_cast<Next>(output);
  static_cast<ShaderElementBase&>(emit.element()).count_event(kNoMatch);
  return kDrop;
}

/// Takes all arguments as texts. Quotation marks only keep commas from parting them.
inline Status read_patterns(Args& args, std::vector<std::string>& patterns) {
  if (!args.consume_rest(patterns).complete()) return Status::failed();
  for (std::string& pattern : patterns) std::erase_if(pattern, [](char c) { return c == '"' || c == '\''; });
  return {};
}

}  // namespace headrace
