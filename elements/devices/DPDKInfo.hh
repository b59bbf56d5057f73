#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Accepts FastClick's parameters of DPDK.
///
///     DPDKInfo([NB_MBUF, keyword NB_SOCKET_MBUF, MBUF_SIZE, MBUF_CACHE_SIZE, RX_PTHRESH, RX_HTHRESH, RX_WTHRESH,
///              TX_PTHRESH, TX_HTHRESH, TX_WTHRESH, MEMPOOL_PREFIX, DEF_RING_NDESC, DEF_BURST_SIZE, RING_FLAGS,
///              RING_SIZE, RING_POOL_CACHE_SIZE, RING_PRIV_DATA_SIZE])
///
/// No ports, and at most one in a configuration. In FastClick it sizes the pools and rings of DPDK. Here packets live
/// in Headrace's own buffers, whose number is an option of `headrace run`, and drivers choose thresholds. The
/// parameters are accepted but ignored.
class DPDKInfo final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
};

HEADRACE_ELEMENT(DPDKInfo)

}  // namespace headrace
