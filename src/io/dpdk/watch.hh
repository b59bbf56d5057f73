#pragma once
/// \file
/// Looks after ports that run: says once that a link went down or up or that a device is gone, and brings a virtual
/// device back when the interface behind it is.

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "io/dpdk/port.hh"
#include "src/io/linux/link_watch.hh"

namespace headrace::io::dpdk {

/// A thread of its own while there are ports, for a look may call the system and a restart takes long. It looks when an
/// interface of Linux has changed; ports without one cannot tell, and are looked at often.
class Watch {
 public:
  static Watch& instance();

  void add(Port* port, const std::shared_ptr<LinkWatch>& links);
  /// Returns once nothing is done with the port any more.
  void remove(Port* port);

 private:
  struct Watched {
    Port* port;
    std::unique_ptr<LinkWatch::Subscription> link;  // null: no interface of Linux is behind the port
    bool up = true;
    bool known = false;  // `up` was seen, not assumed
    bool gone = false;
    bool back = false;  // the interface of a device that is gone is there
    int looks_until_retry = 0;
  };
  void run();
  void wake();
  /// Waits until there is something to look at.
  void wait(bool often);
  void look(Watched& w);
  void lose(Watched& w, const char* why);
  bool restart(Watched& w);

  std::mutex lock_;  // the list, and each look
  std::list<Watched> ports_;
  std::thread thread_;

  std::mutex wake_lock_;
  std::condition_variable wake_changed_;
  bool woken_ = false;
};

}  // namespace headrace::io::dpdk
