#include "elements/devices/DPDKInfo.hh"

#include "headrace/router.hh"

namespace headrace {

Status DPDKInfo::configure(Args& args) {
  static constexpr const char* kNumbers[] = {
      "MBUF_SIZE",  "MBUF_CACHE_SIZE", "RX_PTHRESH",           "RX_HTHRESH",         "RX_WTHRESH",
      "TX_PTHRESH", "TX_HTHRESH",      "TX_WTHRESH",           "DEF_RING_NDESC",     "DEF_BURST_SIZE",
      "RING_FLAGS", "RING_SIZE",       "RING_POOL_CACHE_SIZE", "RING_PRIV_DATA_SIZE"};
  uint32_t number = 0;
  std::vector<uint32_t> numbers;
  std::string prefix;
  args.read_p("NB_MBUF", number).read_all("NB_SOCKET_MBUF", numbers).read("MEMPOOL_PREFIX", prefix);
  for (const char* keyword : kNumbers) args.read(keyword, number);
  return args.complete();
}

Status DPDKInfo::initialize(Errors& errors) {
  if (router().first<DPDKInfo>() != this) return errors.error("there can be only one instance of DPDKInfo");
  return {};
}

}  // namespace headrace
