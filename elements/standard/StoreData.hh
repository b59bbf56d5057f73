#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Writes bytes into packets.
///
///     StoreData(OFFSET, DATA [, MASK, keyword GROW])
///
/// Bytes beyond the packet's end are not written. A packet that ends at OFFSET or before passes unchanged.
///
/// OFFSET: where the bytes go, from the beginning of the packet.
/// DATA: the bytes, for instance `\<00 FF>`.
/// MASK: only these bits are changed; at most as long as DATA, bytes of DATA behind it are written as a whole.
/// GROW true: the packet is extended where DATA goes beyond its end; one whose buffer has no room is dropped and
/// counted. Default false.
class StoreData final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  uint32_t offset_ = 0;
  std::string data_;
  std::string mask_;  // as long as data_
  bool grow_ = false;
};

HEADRACE_ELEMENT(StoreData)

}  // namespace headrace
