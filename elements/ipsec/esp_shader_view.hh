#pragma once
/// \file
/// What the shaders of ESP have in common. Read by the host compiler and by NVRTC.

#include "elements/ipsec/esp_place.hh"
#include "headrace/shader.hh"
#include "tables/sa/esp_crypto_view.hh"

namespace headrace {

/// What has become of a packet.
enum class ESPOutcome : uint8_t {
  kGood,
  kBadICV,
  kGone,   ///< its association has been removed
  kShort,  ///< it is no ESP packet of the association
  kHost,   ///< only the host can do it
};

/// What release() gets for each packet.
struct ESPResult {
  uint32_t tag;
  uint32_t bad;  ///< 1: the ICV was wrong
};

/// What annotations say of a packet, and the keys of its association; null: it is gone.
struct ESPAbout {
  const ESPKeys* keys;
  uint32_t tag;
  uint32_t sequence_high;
};

/// The keys of associations, by index.
struct ESPKeysView {
  static constexpr uint32_t kIndexBits = 20;  // as IPsecDatabase::Tag

  const ESPKeys* keys = nullptr;
  const uint32_t* tags = nullptr;
  uint32_t capacity = 0;

  /// Those of a packet, or null.
  HEADRACE_SHADER const ESPKeys* find(uint32_t tag) const {
    const uint32_t index = tag & ((1u << kIndexBits) - 1);
    return index < capacity && load_shared(tags + index) == tag ? keys + index : nullptr;
  }
};

/// The counters of these shaders.
struct ESPCounters {
  enum { kGone, kShort, kBadICV };
  static constexpr auto kList = counters(reason("association gone"), reason("too short"), reason("bad ICV"));
};

/// Counts, and chooses the output.
HEADRACE_SHADER Next esp_next(auto& p, ESPOutcome outcome) {
  switch (outcome) {
    case ESPOutcome::kGood:
      return 0;
    case ESPOutcome::kHost:
      return kEscape;
    case ESPOutcome::kBadICV:
      p.count(ESPCounters::kBadICV);
      return 1;
    case ESPOutcome::kGone:
      p.count(ESPCounters::kGone);
      return kDrop;
    default:
      p.count(ESPCounters::kShort);
      return kDrop;
  }
}

}  // namespace headrace
