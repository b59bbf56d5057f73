#include "elements/ipsec/IPsecAES.hh"

#include "elements/ipsec/esp_shader.hh"

namespace headrace {

Status IPsecAES::configure(Args& args, Owner& owner) { return owner.configure(args, "ENCRYPT", encrypt); }

void IPsecAES::refresh(const Owner& owner) {
  associations = owner.keys();
  host = &owner;
}

void IPsecAES::mirror(Mirror& mirror, const Owner& owner) {
  associations = owner.mirror(mirror);
  host = nullptr;
}

void IPsecAES::shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events, ESPResult* results) const {
  using Work = ESPShaderOwner::Work;
  host->shade(encrypt ? Work::kEncrypt : Work::kDecrypt, packets, n, nexts, events, results);
}

Next IPsecAES::escape(Packet*& p, Emitter& emit, Owner& owner) const {
  using Work = ESPShaderOwner::Work;
  Next next = kDrop;
  uint64_t events[kCounters.kCount] = {};
  ESPResult result;
  owner.shade(encrypt ? Work::kEncrypt : Work::kDecrypt, &p, 1, &next, events, &result);
  owner.count(Results<ESPResult>(&result), 1);
  for (int i = 0; i < kCounters.kCount; ++i)
    if (events[i] != 0) static_cast<ShaderElementBase&>(emit.element()).count_event(i);
  return next;
}

void IPsecAES::release(Packet* const*, Results<ESPResult> results, int n, Owner& owner) const {
  owner.count(results, n);
}

HEADRACE_ELEMENT(IPsecAES)

}  // namespace headrace
