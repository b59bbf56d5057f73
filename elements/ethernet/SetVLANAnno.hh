#pragma once
#include "elements/ethernet/vlan_tag.hh"

namespace headrace {

/// Sets the VLAN_TCI annotation.
///
///     SetVLANAnno([VLAN_TCI, VLAN_PCP, keyword VLAN_ID])
///
/// VLANEncap(ANNO) and EtherVLANEncap with ANNO create a tag from it.
///
/// VLAN_TCI: 16 bits, VLAN and priority.
/// VLAN_PCP: the priority, 0 to 7. Default 0.
/// VLAN_ID: the VLAN, 0 to 4095, instead of VLAN_TCI. Default 0.
///
/// Handlers: `vlan_tci`, `vlan_id`, `vlan_pcp` (rw).
struct SetVLANAnno : Shader<SetVLANAnno> {
  static constexpr auto kRegions = regions(Write{vlan::tci_anno});

  VlanTag tag;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  HEADRACE_SHADER Next shade(auto& p) const {
    p.set(vlan::tci_anno, tag.tci);
    return 0;
  }
};

HEADRACE_ELEMENT(SetVLANAnno)
HEADRACE_ELEMENT_ALIAS(SetVlanAnno, SetVLANAnno)

}  // namespace headrace
