#pragma once
/// \file
/// Telling keys apart without keeping them.

#include <array>
#include <cstdint>
#include <span>

namespace headrace {

/// 128 bits that stand for a key within this process.
using KeyFingerprint = std::array<uint8_t, 16>;

/// Two SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT 2012) under keys that
/// are drawn when the process starts: who sees a fingerprint learns nothing about the key, and it means nothing to
/// another process.
KeyFingerprint fingerprint_of(std::span<const uint8_t> bytes);

/// SipHash-2-4 under a key of 16 bytes.
uint64_t sip_hash(std::span<const uint8_t, 16> key, std::span<const uint8_t> bytes);

}  // namespace headrace
