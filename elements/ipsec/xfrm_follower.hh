#pragma once
/// \file
/// Keeps an IPsecDatabase as the kernel's databases are.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "elements/ipsec/IPsecDatabase.hh"
#include "src/io/linux/xfrm_message.hh"

namespace headrace {

/// Takes over the states and policies that messages of the kernel tell of, under these rules:
///
/// - A state whose destination is an address of the gateway is inbound, one whose source is, outbound.
/// - A policy protects by the newest of the states that its template finds: by mode, addresses, reqid and if_id, and by
///   the SPI where it has one (strongSwan's do: a successor is there before the peer is ready for it). Each such
///   combination gets a reqid of its own in the database, which is the kernel's unless others have it.
/// - What cannot be taken over is counted, and said once for each reason.
///
/// One thread at a time calls.
class XfrmFollower {
 public:
  /// \param own addresses of the gateway, IPv4-mapped for IPv4
  /// \param say gets lines for the operator
  XfrmFollower(IPsecDatabase& database, std::vector<Ip6Address> own, std::function<void(const std::string&)> say)
      : database_(database), own_(std::move(own)), say_(std::move(say)) {}

  /// Takes a message. Its keys go to the database.
  void take(io::XfrmMessage& message);
  /// Ends a series of messages: policies hold from now on, and keys of what has gone are erased.
  void settle();
  /// Between the two, messages are the answer to a question for all states and policies: what they do not have is gone.
  void begin_dump();
  void end_dump();

  /// Tells the kernel, by messages that `send` takes, what states have done since the last time, and which have reached
  /// their limits.
  void report(const std::function<void(std::span<const uint8_t>)>& send);

  /// Lines "N states" and so on.
  std::string counts() const;
  /// A line for each state and policy that the kernel has and the database has not, with the reason.
  std::string refused() const;

 private:
  struct StateEntry {
    io::XfrmState state;  // its keys are erased
    KeyFingerprint keys{};
    std::string text;  // of the configuration
    uint32_t index = AssociationTable::kNone;
    uint64_t serial = 0;
    bool seen = false, soft_told = false, hard_told = false;
    io::XfrmUse told;
  };
  struct PolicyEntry {
    io::XfrmPolicy policy;
    bool seen = false;
  };
  struct Bound {
    uint32_t reqid = 0;
    uint32_t users = 0;
  };

  void take_state(io::XfrmState& state);
  void take_policy(io::XfrmPolicy& policy);
  bool add(StateEntry& entry);
  void remove(StateEntry& entry);
  void remove(PolicyEntry& entry);
  void change_policies();
  void refuse(const std::string& what, const std::string& problem);
  uint32_t bind(const io::XfrmBinding& binding);
  void unbind(const io::XfrmBinding& binding);
  bool is_own(const Ip6Address& address) const;

  IPsecDatabase& database_;
  const std::vector<Ip6Address> own_;
  const std::function<void(const std::string&)> say_;

  std::map<io::XfrmStateId, StateEntry> states_;
  std::map<io::XfrmPolicyId, PolicyEntry> policies_;
  std::map<io::XfrmBinding, Bound> bindings_;
  std::set<uint32_t> reqids_;
  std::vector<Policy> gone_, fresh_;  // policies, until settle()
  bool erase_ = false;
  std::set<std::string> said_;
  uint64_t refused_states_ = 0, refused_policies_ = 0, expired_ = 0;
};

}  // namespace headrace
