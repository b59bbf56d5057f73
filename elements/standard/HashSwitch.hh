#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Chooses the output by a hash of some bytes, so packets with the same bytes leave by the same output.
///
///     HashSwitch(OFFSET, LENGTH)
///
/// Input 0 and one or more outputs, push. A packet that is too short leaves by output 0.
///
/// OFFSET, LENGTH: where the bytes are. LENGTH is at least 1.
class HashSwitch final : public Element {
 public:
  static constexpr Ports kPorts{"1/1-"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override {
    if (!args.read_mp("OFFSET", offset_, Between{0, 65535}).read_mp("LENGTH", length_, Between{0, 65535}).complete())
      return Status::failed();
    return length_ == 0 ? args.errors().error("length must be > 0") : Status();
  }
  void push(int, Batch& batch) override {
    Next nexts[Batch::kCapacity];
    for (int i = 0; i < batch.size(); ++i) nexts[i] = static_cast<Next>(choose(*batch[i]));
    push_split(batch, nexts);
  }

 private:
  uint32_t choose(const Packet& p) const {
    if (p.length() < offset_ + length_) return 0;
    uint32_t sum = 0;
    for (uint32_t i = offset_; i < offset_ + length_; ++i) sum += p.data()[i];
    const uint32_t n = static_cast<uint32_t>(noutputs());
    // As Click chooses: few outputs see all bits of a byte.
    return n == 2 || n == 4 || n == 8 ? (sum ^ (sum >> 4)) & (n - 1) : sum % n;
  }

  uint32_t offset_ = 0;
  uint32_t length_ = 1;
};

HEADRACE_ELEMENT(HashSwitch)

}  // namespace headrace
