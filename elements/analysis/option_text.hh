#pragma once
/// \file
/// IP and TCP options as summary dumps write them, such as "mss1460;sackok;wscale7" or "rr{1.0.0.1}+2".

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

/// Which TCP options are meant.
enum class TcpOptions { kAll, kNoTimestamp, kSack };

/// Appends the options in bytes [begin, end). "." stands for none, "?" for options that are not well-formed. Padding is
/// left out.
void append_ip_options(const uint8_t* begin, const uint8_t* end, std::string& text);
void append_tcp_options(const uint8_t* begin, const uint8_t* end, TcpOptions which, std::string& text);

/// The bytes of options written as text, at most 40; false when it makes no sense.
bool parse_ip_options(std::string_view text, std::string& bytes);
bool parse_tcp_options(std::string_view text, TcpOptions which, std::string& bytes);

/// The TCP options of a kind, without the others.
std::string select_tcp_options(const uint8_t* begin, const uint8_t* end, TcpOptions which);

}  // namespace headrace
