#pragma once
/// \file
/// A connection to the kernel's IPsec databases.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "headrace/error.hh"
#include "src/io/linux/xfrm_message.hh"

struct nl_sock;

namespace headrace::io {

/// Hears of all changes to the associations and policies of this process's network namespace, and can ask for all of them.
/// All functions make system calls; one thread at a time calls. What the kernel sends has keys: it is erased once it has
/// been read.
class XfrmSocket {
 public:
  using Take = std::function<void(XfrmMessage&)>;

  XfrmSocket();
  ~XfrmSocket();
  XfrmSocket(const XfrmSocket&) = delete;
  XfrmSocket& operator=(const XfrmSocket&) = delete;

  /// Begins to hear of changes. Needs CAP_NET_ADMIN.
  Status open(Errors& errors);
  /// Readable when read() has something to do.
  int fd() const;
  /// Takes the changes that have come. False if the kernel had more than there was room for, and some are lost.
  bool read(const Take& take);
  /// Takes all states, then all policies. False, with the reason, if the kernel does not answer.
  bool dump(const Take& take, Errors& errors);
  /// Sends a message that xfrm_message.hh makes. 0, or the kernel's errno.
  int send(std::span<const uint8_t> message);

 private:
  /// Takes what one answer says.
  int answer(std::span<const uint8_t> request, const Take& take);
  /// As read(2).
  int64_t receive(int fd);

  nl_sock* events_ = nullptr;
  nl_sock* requests_ = nullptr;
  std::vector<uint8_t> buffer_;
};

}  // namespace headrace::io
