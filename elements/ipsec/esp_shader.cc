#include "elements/ipsec/esp_shader.hh"

#include <algorithm>

#include "headrace/scratch.hh"

namespace headrace {

static_assert(ESPKeysView::kIndexBits == IPsecDatabase::Tag::kIndexBits);

namespace {

/// The library ciphers so many packets while the processor fetches as many others.
constexpr int kGroup = 8;

void prefetch(const ESPJob* jobs, int n) {
  for (int i = 0; i < n; ++i)
    for (uint32_t at = 0; at < jobs[i].length; at += 64) __builtin_prefetch(jobs[i].esp + at, 1);
}

}  // namespace

ESPKeysView ESPShaderOwner::keys() const {
  const IPsecDatabase::View view = database_->view();
  return {view.keys, view.tags, database_->capacity()};
}

ESPKeysView ESPShaderOwner::mirror(Mirror& mirror) const {
  const IPsecDatabase::View view = database_->mirror(mirror);
  return {view.keys, view.tags, database_->capacity()};
}

void ESPShaderOwner::shade(Work work, Packet* const* packets, int n, Next* nexts, uint64_t* events,
                           ESPResult* results) const {
  const ESPKeysView view = keys();
  const bool hashes = work == Work::kAuthenticate || work == Work::kVerify;
  Scratch<ESPJob, Batch::kCapacity> scratch;
  ESPJob* const jobs = scratch.data();
  int of[Batch::kCapacity];
  ESPOutcome outcomes[Batch::kCapacity];
  int k = 0;
  for (int i = 0; i < n; ++i) {
    Packet& p = *packets[i];
    const uint32_t tag = p.anno_u32(anno::esp_association.kOffset);
    results[i] = {tag, 0};
    const ESPKeys* const keys = view.find(tag);
    if (keys == nullptr) {
      outcomes[i] = ESPOutcome::kGone;
      continue;
    }
    outcomes[i] = ESPOutcome::kGood;
    if (hashes && keys->integrity == Integrity::kNone) continue;
    const ESPPlace esp =
        esp_place({p.data(), p.length(), p.has_network_header() ? p.network_header_offset() : PacketBytes::kNone});
    if (!keys->fits(esp.length)) {
      outcomes[i] = ESPOutcome::kShort;
      continue;
    }
    jobs[k] = {p.data() + esp.at, esp.length, p.anno_u32(anno::esp_sequence_high.kOffset), keys,
               database_->host_keys(IPsecDatabase::Tag::index(tag))};
    of[k++] = i;
  }
  ESPLibrary& library = database_->library();
  const auto jobs_now = static_cast<uint32_t>(k);
  switch (work) {
    case Work::kEncrypt:
    case Work::kDecrypt:
      prefetch(jobs, std::min(k, kGroup));
      for (int at = 0; at < k; at += kGroup) {
        const int group = std::min(k - at, kGroup);
        prefetch(jobs + at + group, std::min(k - at - group, kGroup));
        if (work == Work::kEncrypt)
          library.encrypt(jobs + at, static_cast<uint32_t>(group));
        else
          library.decrypt(jobs + at, static_cast<uint32_t>(group));
      }
      break;
    case Work::kAuthenticate:
      library.authenticate(jobs, jobs_now);
      break;
    case Work::kVerify:
      library.verify(jobs, jobs_now);
      break;
  }
  for (int i = 0; i < k; ++i)
    if (!jobs[i].good) outcomes[of[i]] = ESPOutcome::kBadICV;
  struct Counting {
    uint64_t* events;
    void count(int event) { events[event] += 1; }
  } counting{events};
  for (int i = 0; i < n; ++i) {
    results[i].bad = outcomes[i] == ESPOutcome::kBadICV;
    nexts[i] = esp_next(counting, outcomes[i]);
  }
}

void ESPShaderOwner::count(Results<ESPResult> results, int n) const {
  const AssociationView associations = database_->associations();
  for (int i = 0; i < n; ++i) {
    if (results[i].bad == 0) continue;
    if (Association* const a = database_->find(associations, results[i].tag)) a->count(AssociationEvent::kBadICV);
  }
}

}  // namespace headrace
