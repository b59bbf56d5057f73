#pragma once
/// \file
/// How elements of one interface look after it.

#include <string_view>

#include "headrace/timestamp.hh"

namespace headrace {

/// How soon an interface that is there, but could not be opened or made, is tried again.
inline constexpr Timestamp kRetryAfter = Timestamp::from_ms(250);
/// Rounds that found nothing before a device's descriptor is waited for instead.
inline constexpr int kQuietRounds = 16;
/// A device by this name is a capture file.
inline constexpr std::string_view kFilePrefix = "pcap:";

}  // namespace headrace
