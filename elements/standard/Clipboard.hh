#pragma once
#include <headrace/element.hh>
#include <vector>

namespace headrace {

/// Copies bytes of one packet into others.
///
///     Clipboard(OFFSET/LENGTH, ...)
///
/// Input 0 to output 0: copies the bytes at these positions of each packet to the clipboard; the packet passes
/// unchanged. Input 1 to output 1: writes the bytes of the clipboard to the same positions. A packet too short for one
/// of them is not copied, and passes input 1 unchanged; so does every packet while the clipboard is empty. Each pair of
/// ports may be push or pull. Each worker has its own clipboard.
///
/// OFFSET, LENGTH: numbers of bytes.
class Clipboard final : public Element {
 public:
  static constexpr Ports kPorts{"2/2"};
  static constexpr Flow kFlow{"#/#"};

  Status configure(Args& args) override;
  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;

 private:
  struct Range {
    uint32_t offset, length;
  };
  void copy(const Packet& p);
  void paste(Packet& p);

  std::vector<Range> ranges_;
  uint32_t size_ = 0;    // of all ranges
  uint32_t needed_ = 0;  // by the range that ends last
  struct Memory {
    std::vector<uint8_t> bytes;
    bool filled = false;
  };
  PerThread<Memory> memory_;
};

HEADRACE_ELEMENT(Clipboard)

}  // namespace headrace
