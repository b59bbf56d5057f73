#pragma once
#include <headrace/element.hh>
#include <memory>
#include <string>
#include <vector>

#include "elements/ipsec/IPsecDatabase.hh"

namespace headrace {

/// Keeps an IPsecDatabase as the kernel's IPsec databases are, so that an IKE daemon such as strongSwan's charon keys it.
///
///     IPsecXFRM(DATABASE, ADDRESS [, ADDRESS ...])
///
/// Has no ports. Takes over the kernel's ESP associations and policies (XFRM) of this process's network namespace when the
/// router starts, and all changes from then on, by netlink. The database may have others besides, from files and
/// handlers; the kernel's policies have the priorities 0 and less, the smaller the larger the kernel's number is, so those
/// of files are asked first.
///
/// An association to one of the ADDRESSes is inbound, one from such an address outbound. A policy protects by the newest
/// association that its template finds, by mode, addresses, reqid, if_id and, where it has one, SPI. The kernel's
/// policies `in` and `fwd` are policies `in` here.
///
/// What cannot be taken over is counted, and said once for each reason: algorithms that are not those of IPsecDatabase,
/// marks, other protocols than ESP, templates that are optional or more than one, types of ICMP. Where only the
/// protection is the problem, the policy discards.
///
/// Each second the kernel is told what associations have done, so that `ip -s xfrm state` and daemons see it, and that
/// limits of bytes and packets are reached. After a restart associations go on from there: outbound 2^25 numbers later.
///
/// DATABASE: an IPsecDatabase. ADDRESS: the gateway's own outside, IPv4 or IPv6.
///
/// Needs CAP_NET_ADMIN. Keys are never shown.
///
/// Handlers: `counts` (r) what has been taken over and refused, and how often messages of the kernel were lost and
/// all was asked for anew; `refused` (r) a line for each association and policy of the kernel that is not here, with the
/// reason; `resync` (w) asks for all anew.
class IPsecXFRM : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  IPsecXFRM();
  ~IPsecXFRM() override;

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  std::string note() const override;

 private:
  class Session;

  IPsecDatabase* database_ = nullptr;
  std::vector<Ip6Address> own_;
  std::shared_ptr<Session> session_;
};

}  // namespace headrace
