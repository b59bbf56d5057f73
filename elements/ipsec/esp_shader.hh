#pragma once
/// \file
/// What IPsecAES and IPsecAuthHMACSHA1 have on the host.

#include <headrace/shader.hh>

#include "elements/ipsec/IPsecDatabase.hh"
#include "elements/ipsec/esp_shader_view.hh"

namespace headrace {

class ESPShaderOwner {
 public:
  enum class Work : uint8_t { kEncrypt, kDecrypt, kAuthenticate, kVerify };

  /// Reads DATABASE and a flag.
  Status configure(Args& args, const char* flag, bool& value) {
    return args.read_mp("DATABASE", database_).read_mp(flag, value).complete();
  }
  ESPKeysView keys() const;
  ESPKeysView mirror(Mirror& mirror) const;
  /// Does the work for a batch, with the library. On a worker.
  /// \param events counters of the shader, as ESPCounters has them
  void shade(Work work, Packet* const* packets, int n, Next* nexts, uint64_t* events, ESPResult* results) const;
  /// Counts wrong ICVs by association.
  void count(Results<ESPResult> results, int n) const;

 private:
  IPsecDatabase* database_ = nullptr;
};

}  // namespace headrace
