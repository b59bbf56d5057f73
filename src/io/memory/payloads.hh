#pragma once
/// \file
/// What synthetic frames carry.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

/// Requests and responses of HTTP, one behind the other, as browsers and servers write them: headers, HTML and JSON
/// from lists of words. The same for the same seed. `bytes` of it.
std::string make_text_payload(size_t bytes, uint64_t seed);
/// Bytes drawn evenly.
std::string make_random_payload(size_t bytes, uint64_t seed);

/// Writes parts of `content`, which has at least 64 KiB, into all free buffers of the packet pool: frames that a source
/// makes in them carry that behind the headers it writes, as if a card had put them there. Packets that are in use stay
/// as they are.
void fill_buffers(std::string_view content);

}  // namespace headrace
