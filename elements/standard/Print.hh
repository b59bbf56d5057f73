#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Prints a line for each packet to standard error and sends the packet on.
///
///     Print([LABEL, MAXLENGTH, keyword CONTENTS, TIMESTAMP, PRINTANNO, HEADROOM, CPU, ACTIVE])
///
/// A line reads `LABEL: length | contents`, the contents in groups of four bytes in hexadecimal.
///
/// LABEL: printed at the start of each line. Default: none.
/// MAXLENGTH: maximum number of bytes shown; negative: all. Default 24.
/// CONTENTS: NONE, HEX, or ASCII (groups of eight characters, a dot for nonprintable ones). Default HEX.
/// TIMESTAMP true: shows the packet's time. Default false.
/// PRINTANNO true: shows the bytes of the annotations. Default false.
/// HEADROOM true: shows the bytes free before and behind the data, as `(h128 t1920)`. Default false.
/// CPU true: shows the number of the thread. Default false.
/// ACTIVE false: prints nothing. Default true.
///
/// Handlers: `active` (rw).
class Print final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  bool can_live_reconfigure() const override { return true; }
  Packet* act(Packet* p, Emitter& emit) override;
  std::vector<RegionInfo> annotations() const override {
    return annotations_ ? declared(Read{anno::any}) : std::vector<RegionInfo>{};
  }

 private:
  enum class Contents : uint8_t { kNone, kHex, kAscii };
  std::string describe(const Packet& p) const;

  std::string label_;
  int max_length_ = 24;
  Contents contents_ = Contents::kHex;
  bool timestamp_ = false;
  bool annotations_ = false;
  bool headroom_ = false;
  bool cpu_ = false;
  bool active_ = true;
};

HEADRACE_ELEMENT(Print)

}  // namespace headrace
