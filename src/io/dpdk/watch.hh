#pragma once
/// \file
/// Looks after ports that run: says once that a link went down or up or that a device is gone, and brings a virtual
/// device back when the interface behind it is.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "io/dpdk/port.hh"

namespace headrace::io::dpdk {

/// A thread of its own while there are ports, for a look may call the system and a restart takes long.
class Watch {
 public:
  static Watch& instance();

  void add(Port* port);
  /// Returns once nothing is done with the port any more.
  void remove(Port* port);

 private:
  struct Watched {
    Port* port;
    bool up = true;
    bool known = false;  // `up` was seen, not assumed
    bool gone = false;
    int looks_until_retry = 0;
  };
  void run();
  void look(Watched& w);
  void lose(Watched& w, const char* why);
  bool restart(Watched& w);

  std::mutex lock_;  // the list, and each look
  std::condition_variable changed_;
  std::vector<Watched> ports_;
  std::thread thread_;
};

}  // namespace headrace::io::dpdk
