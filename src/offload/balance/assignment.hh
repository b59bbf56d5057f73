#pragma once
/// \file
/// Which part of each chain's packets goes to which device: a linear program over groups of workers, small enough to be
/// solved in each step of a balancer.

#include <cstddef>
#include <vector>

namespace headrace::balance {

/// Workers that are alike: the same devices are near to them, and they run the same mixture of chains. Costs in cycles
/// per packet.
struct WorkerGroup {
  struct Chain {
    double part = 0;             ///< of the group's packets
    double cpu = 0;              ///< c
    std::vector<double> device;  ///< d by device; a device whose d is not below c is not used
  };
  double cycles = 0;    ///< of all its workers in a second
  double outside = 0;   ///< o
  double weight = 1;    ///< of groups without limit: its part of their packets
  double arrivals = 0;  ///< packets a second, at most; 0: without limit
  std::vector<Chain> chains;
};

struct Assignment {
  double rate = 0;                                       ///< packets a second, of all groups
  std::vector<double> rates;                             ///< by group
  std::vector<std::vector<std::vector<double>>> shares;  ///< by group, chain and device
};

/// The shares with the highest rate of all groups, and among those with this rate the shares that save most cycles.
/// Groups without limit all get their part of one rate, so none is left behind. The others come before them.
/// \param device_s by chain and device: the device's time for a packet in seconds; 0: it has no limit
Assignment assign(const std::vector<WorkerGroup>& groups, const std::vector<std::vector<double>>& device_s);

}  // namespace headrace::balance
