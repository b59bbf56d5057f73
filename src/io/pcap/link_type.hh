#pragma once
/// \file
/// The link layers that capture files name, and where IP packets begin in them. Numbers are libpcap's DLT_ values.

#include <string>
#include <string_view>

#include "headrace/packet.hh"

namespace headrace::io {

/// "ETHER", "IP", ... or "#number"; -1 when the name is not known.
int parse_link_type(std::string_view name);
/// The reverse.
std::string link_type_name(int type);
/// The number that capture files have for a type.
int file_link_type(int type);

/// True if mark_ip_header() understands the type.
bool can_find_ip(int type);
/// Finds the IPv4 or IPv6 header of a packet that begins with a link header, and sets the network header and, for IPv4,
/// the destination annotation. False, with the packet unchanged, when it holds no complete IP header.
bool mark_ip_header(Packet& p, int type);

}  // namespace headrace::io
