#include "elements/ipsec/IPsecAuthHMACSHA1.hh"

#include "elements/ipsec/esp_shader.hh"

namespace headrace {

Status IPsecAuthHMACSHA1::configure(Args& args, Owner& owner) { return owner.configure(args, "VERIFY", verify); }

void IPsecAuthHMACSHA1::refresh(const Owner& owner) {
  associations = owner.keys();
  host = &owner;
}

void IPsecAuthHMACSHA1::mirror(Mirror& mirror, const Owner& owner) {
  associations = owner.mirror(mirror);
  host = nullptr;
}

void IPsecAuthHMACSHA1::shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events,
                                    ESPResult* results) const {
  using Work = ESPShaderOwner::Work;
  host->shade(verify ? Work::kVerify : Work::kAuthenticate, packets, n, nexts, events, results);
}

void IPsecAuthHMACSHA1::release(Packet* const*, Results<ESPResult> results, int n, Owner& owner) const {
  owner.count(results, n);
}

HEADRACE_ELEMENT(IPsecAuthHMACSHA1)

}  // namespace headrace
