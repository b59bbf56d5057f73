#pragma once
/// \file
/// What the kernel says about its IPsec databases (XFRM netlink, linux/xfrm.h).

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/addresses.hh"
#include "tables/sa/association_config.hh"
#include "tables/sa/security_policy.hh"

namespace headrace::io {

/// What names a state, as the kernel calls an association. IPv4 addresses are IPv4-mapped, here and below.
struct XfrmStateId {
  Ip6Address destination;
  uint32_t spi = 0;
  uint8_t protocol = 0;

  auto operator<=>(const XfrmStateId&) const = default;
};

/// By what a policy's template finds states (xfrm_state_find() of Linux).
struct XfrmBinding {
  bool tunnel = false;
  Ip6Address source, destination;
  uint32_t reqid = 0, if_id = 0;

  auto operator<=>(const XfrmBinding&) const = default;
};

/// Packets and bytes after which a daemon replaces a state (soft), and after which it ends (hard); 0: never.
struct XfrmLimits {
  uint64_t soft_bytes = 0, hard_bytes = 0, soft_packets = 0, hard_packets = 0;

  bool operator==(const XfrmLimits&) const = default;
};

/// A state.
struct XfrmState {
  XfrmStateId id;
  bool v6 = false;  ///< the family of its addresses
  XfrmBinding binding;
  /// Its direction and reqid are not set: the kernel does not know the one, and the other is a matter of all states.
  AssociationConfig config;
  XfrmLimits limits;
  uint64_t added_at = 0;  ///< seconds since 1970
  /// The last number that was sent or received.
  uint64_t sequence = 0;
  /// The state has numbers in the form of xfrm_replay_state_esn, with so many words for its window, of this size.
  std::optional<uint32_t> esn_words;
  uint32_t window = 0;
  /// Reserved for a daemon that has no keys for it yet.
  bool larval = false;
  /// Why nobody but the kernel can work with it; empty: nothing is in the way.
  std::string problem;
};

/// What names a policy: selector, direction and interface number, in the kernel's own form.
struct XfrmPolicyId {
  std::array<uint8_t, 56> selector{};
  uint8_t direction = 0;
  uint32_t if_id = 0;

  auto operator<=>(const XfrmPolicyId&) const = default;
};

/// A policy.
struct XfrmPolicy {
  XfrmPolicyId id;
  /// One for each family that it is about. The reqid is not set, the SPI is the template's. Where the problem is with how to
  /// protect, they discard. Empty with other problems, and where the policy means nothing to a gateway: that of a socket,
  /// or one to forward what leaves by another policy.
  std::vector<Policy> policies;
  /// Which states protect; none: the policy does not protect.
  std::optional<XfrmBinding> binding;
  std::string problem;
};

enum class XfrmChange : uint8_t {
  kNone,          ///< a message of no interest
  kState,         ///< a state is new, or is changed
  kStateGone,     ///< a state was deleted, or its time is over
  kStatesGone,    ///< all were deleted
  kPolicy,        ///< a policy is new, or is changed
  kPolicyGone,    ///< a policy was deleted, or its time is over
  kPoliciesGone,  ///< all were deleted
  kEnd,           ///< of an answer
};

struct XfrmMessage {
  XfrmChange change = XfrmChange::kNone;
  XfrmState state;    ///< kState; of kStateGone only the id
  XfrmPolicy policy;  ///< kPolicy; of kPolicyGone only the id
  int error = 0;      ///< an errno, in place of an answer
};

/// Reads the message at the front of `bytes`, and takes it off. Nothing if there is no whole message. Keys are only in the
/// result's SecretBytes: who owns `bytes` has to erase them.
std::optional<XfrmMessage> read_xfrm_message(std::span<const uint8_t>& bytes);

/// What a state has done, for XFRM_MSG_NEWAE.
struct XfrmUse {
  uint64_t bytes = 0, packets = 0;
  uint64_t used_at = 0;  ///< first, in seconds since 1970
  uint64_t sequence = 0;
  bool outbound = false;
};
/// The message that tells the kernel what a state has done.
std::vector<uint8_t> xfrm_use_message(const XfrmState& state, const XfrmUse& use);
/// The message by which daemons learn that a state has reached a limit. A hard one ends it.
std::vector<uint8_t> xfrm_expire_message(const XfrmState& state, bool hard);
/// The question for all states, or all policies.
std::vector<uint8_t> xfrm_dump_states_message();
std::vector<uint8_t> xfrm_dump_policies_message();

}  // namespace headrace::io
