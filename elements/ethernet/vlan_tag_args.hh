#pragma once
/// \file
/// The arguments VLAN_TCI, VLAN_PCP, VLAN_ID and NATIVE_VLAN, and their handlers.

#include <string>
#include <string_view>

#include "elements/ethernet/vlan_tag.hh"
#include "headrace/args.hh"
#include "headrace/handlers.hh"

namespace headrace {

/// A TCI as a number, or ANNO for that of the packet's annotation.
struct VlanTciArg {
  bool allow_annotation = true;

  bool parse(std::string_view text, VlanTag& out, const ArgContext& context) const {
    if (allow_annotation && text == "ANNO") {
      out.from_annotation = true;
      return true;
    }
    return parse_argument(text, out.tci, context);
  }
};

/// Collects the arguments while an element reads its own, and makes a tag of them.
class VlanTagArgs {
 public:
  explicit VlanTagArgs(bool allow_annotation = true) : tci_{allow_annotation} {}

  /// Reads VLAN_TCI and VLAN_PCP, which may be positional, and VLAN_ID.
  Args& read(Args& args) {
    return args.read_p_status("VLAN_TCI", tag_, tci_, has_tci_)
        .read_p("VLAN_PCP", pcp_, Between{0, 7})
        .read_status("VLAN_ID", id_, Between{0, 0xfff}, has_id_);
  }
  Args& read_native(Args& args) { return args.read("NATIVE_VLAN", native_, Between{-1, 0xfff}); }

  /// The tag, once the arguments are complete.
  Status finish(Errors& errors, VlanTag& out) const {
    if (has_tci_ && has_id_) return errors.error("VLAN_TCI and VLAN_ID exclude each other");
    out = tag_;
    if (!has_tci_) out.tci = id_;
    out.tci = static_cast<uint16_t>(out.tci | pcp_ << 13);
    out.native = native_;
    return {};
  }

 private:
  VlanTciArg tci_;
  VlanTag tag_;
  uint16_t id_ = 0;
  uint8_t pcp_ = 0;
  int16_t native_ = 0;
  bool has_tci_ = false, has_id_ = false;
};

/// Adds `vlan_tci`, `vlan_id` and `vlan_pcp`; reading shows what is in effect.
/// \param position of VLAN_TCI among the element's arguments
inline void add_vlan_handlers(Handlers& handlers, const VlanTag& tag, int position) {
  handlers.argument("vlan_tci", "VLAN_TCI", position, true);
  handlers.argument("vlan_id", "VLAN_ID", -1, true);
  handlers.argument("vlan_pcp", "VLAN_PCP", -1, true);
  handlers.read("vlan_tci", [&tag] { return tag.from_annotation ? std::string("ANNO") : std::to_string(tag.tci); });
  handlers.read("vlan_id", [&tag] { return std::to_string(tag.tci & vlan::kIdMask); });
  handlers.read("vlan_pcp", [&tag] { return std::to_string(tag.tci >> 13); });
}

/// Adds `native_vlan`.
inline void add_native_vlan_handler(Handlers& handlers, const VlanTag& tag) {
  handlers.argument("native_vlan", "NATIVE_VLAN", -1, true);
  handlers.read("native_vlan", [&tag] { return std::to_string(tag.native); });
}

}  // namespace headrace
