#pragma once
/// \file
/// What OpenFlowTables knows of its switch, on the host.

#include <headrace/element.hh>
#include <memory>
#include <string>

#include "tables/openflow/datapath.hh"

namespace headrace {

class OpenFlowOwner {
 public:
  Status attach(const std::string& name, Errors& errors) {
    datapath_ = openflow::find_datapath(name);
    if (!datapath_) return errors.error("NAME: no OpenFlow switch '{}'", name);
    return {};
  }
  openflow::Datapath& datapath() const { return *datapath_; }

  bool knows_edits = false;  ///< EDITS was given

 private:
  std::shared_ptr<openflow::Datapath> datapath_;
};

}  // namespace headrace
