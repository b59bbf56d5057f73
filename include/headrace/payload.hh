#pragma once
/// \file
/// Where a packet's payload begins and ends. Read by the host compiler and by NVRTC.

#include "headrace/headers_of.hh"
#include "headrace/team.hh"

namespace headrace {

namespace detail {

/// Bytes from `at` to `end`; none if `end` is not after `at`.
HEADRACE_SHADER PayloadBytes bytes_between(const PacketBytes& p, int32_t at, int32_t end) {
  if (at >= end) return {p.data, 0};
  return {p.data + at, static_cast<uint32_t>(end - at)};
}

/// Length of the transport header at `place`, according to its protocol.
HEADRACE_SHADER int32_t transport_length(const PacketBytes& p, const TransportPlace& place) {
  if (!place.has_header) return 0;
  switch (place.protocol) {
    case ip_protocol::kTcp: {  // RFC 9293: at least 20 bytes, whatever a broken header says
      const int32_t header = place.at + 13 <= place.end ? static_cast<int32_t>(p.byte(place.at + 12) >> 4) * 4 : 20;
      return header < 20 ? 20 : header;
    }
    case ip_protocol::kUdp:
    case ip_protocol::kUdpLite:
    case ip_protocol::kIcmp:
    case ip_protocol::kIcmp6:
      return 8;
    case ip_protocol::kSctp:
      return 12;
    default:
      return 0;
  }
}

/// Where the payload of the packet at `place` ends. UDP has its own length, and a receiver drops what IP carries after
/// it. A length that is less than the header, or more than IP carries, is ignored.
HEADRACE_SHADER int32_t payload_end(const PacketBytes& p, const TransportPlace& place) {
  if (place.protocol != ip_protocol::kUdp || !place.has_header || place.at + 8 > place.end) return place.end;
  const int32_t length = static_cast<int32_t>(p.half(place.at + 4));
  return length >= 8 && place.at + length < place.end ? place.at + length : place.end;
}

}  // namespace detail

/// The payload of a packet: what follows the headers that find_transport() finds (TCP with options, UDP, ICMP, SCTP).
/// For other protocols it is everything that IP carries. Padding of the link is left out, and so is anything after
/// UDP's length. Invalid lengths shorten the payload or leave none; they never give bytes outside the packet. (Only a
/// stripped network header is read where it was.)
/// \param place what find_transport(p) returned
HEADRACE_SHADER PayloadBytes l4_payload(const PacketBytes& p, const TransportPlace& place) {
  const PayloadBytes payload =
      detail::bytes_between(p, place.at + detail::transport_length(p, place), detail::payload_end(p, place));
  // The marked header may lie before the current start of the packet.
  if (payload.length != 0 && payload.data < p.data) {
    const uint32_t stripped = static_cast<uint32_t>(p.data - payload.data);
    return stripped < payload.length ? PayloadBytes{p.data, payload.length - stripped} : PayloadBytes{p.data, 0};
  }
  return payload;
}
HEADRACE_SHADER PayloadBytes l4_payload(const PacketBytes& p) { return l4_payload(p, find_transport(p)); }

}  // namespace headrace
