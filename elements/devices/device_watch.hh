#pragma once
/// \file
/// How elements of one interface look after it.

#include <string_view>

#include "headrace/timestamp.hh"

namespace headrace {

/// Interval between checks for an interface that is, or may be, gone.
inline constexpr Timestamp kLookEvery = Timestamp::from_ms(250);
/// Rounds that found nothing before a device's descriptor is waited for instead.
inline constexpr int kQuietRounds = 16;
/// A device by this name is a capture file.
inline constexpr std::string_view kFilePrefix = "pcap:";

}  // namespace headrace
