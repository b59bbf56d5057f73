#include "control/openflow/codec.hh"

#include <algorithm>

#include "control/openflow/bodies.hh"
#include "control/openflow/bodies_control.hh"
#include "control/openflow/bodies_flow.hh"
#include "control/openflow/bodies_multipart.hh"

namespace headrace::openflow {

namespace {

/// Of the offending message, in an error (ONF TS-023, section 7.5.4: at least 64).
constexpr size_t kErrorDataBytes = 64;

constexpr size_t kMultipartFlagsAt = kHeaderBytes + 2;

/// Where 1.0 has a message of 1.3 in Nicira's form.
MessageType nicira_type(const Reader& body) {
  if (body.peek_u32(0) != kNiciraVendor) return MessageType::kExperimenter;
  const uint32_t subtype = body.peek_u32(4);
  return subtype == kNiciraRoleRequest ? MessageType::kRoleRequest
         : subtype == kNiciraRoleReply ? MessageType::kRoleReply
                                       : MessageType::kExperimenter;
}

/// The number of a message's type; kAbsent if the version does not have it.
int64_t type_number(const Message& message) {
  const MessageType type = message.type();
  const bool nicira = type == MessageType::kRoleRequest || type == MessageType::kRoleReply;
  const MessageType as = nicira && message.version == Version::k1_0 ? MessageType::kExperimenter : type;
  return message_types()[static_cast<size_t>(as)].number(message.version);
}

/// Cuts the message at `start` of `out` into several, where its parts end.
void split(std::vector<uint8_t>& out, size_t start, size_t parts_at, const std::vector<size_t>& ends) {
  const std::vector<uint8_t> whole(out.begin() + static_cast<std::ptrdiff_t>(start), out.end());
  out.resize(start);
  parts_at -= start;
  size_t from = parts_at;
  for (size_t i = 0; i < ends.size(); ++i) {
    const size_t end = ends[i] - start;
    const bool last = i + 1 == ends.size();
    if (!last && parts_at + (ends[i + 1] - start) - from <= kMaxMessageBytes) continue;
    const size_t at = out.size();
    out.insert(out.end(), whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(parts_at));
    out.insert(out.end(), whole.begin() + static_cast<std::ptrdiff_t>(from),
               whole.begin() + static_cast<std::ptrdiff_t>(end));
    const size_t length = out.size() - at;
    out[at + 2] = static_cast<uint8_t>(length >> 8);
    out[at + 3] = static_cast<uint8_t>(length);
    if (!last) out[at + kMultipartFlagsAt + 1] |= multipart_flag::kMore;
    from = end;
  }
}

template <typename T>
bool append_list(T& whole, T&& part, size_t limit) {
  return std::visit(
      [&](auto& list) {
        using List = std::remove_reference_t<decltype(list)>;
        auto* const more = std::get_if<List>(&part);
        if (more == nullptr) return false;
        if constexpr (requires { list.push_back(std::move(more->front())); }) {
          if (list.size() + more->size() > limit) return false;
          std::move(more->begin(), more->end(), std::back_inserter(list));
          return true;
        }
        return false;
      },
      whole);
}

}  // namespace

Header read_header(std::span<const uint8_t> bytes) {
  Header header;
  header.version = bytes[0];
  header.type = bytes[1];
  header.length = static_cast<uint16_t>(bytes[2] << 8 | bytes[3]);
  header.xid = uint32_t{bytes[4]} << 24 | uint32_t{bytes[5]} << 16 | uint32_t{bytes[6]} << 8 | bytes[7];
  return header;
}

ErrorCode decode(std::span<const uint8_t> bytes, Message& message, Reading reading) {
  if (bytes.size() < kHeaderBytes) return ErrorCode::kRequestBadLen;
  const Header header = read_header(bytes);
  const bool ours =
      header.version == static_cast<uint8_t>(Version::k1_0) || header.version == static_cast<uint8_t>(Version::k1_3);
  // A hello has the same number in all versions.
  if (!ours && (header.type != 0 || header.version == 0)) return ErrorCode::kRequestBadVersion;
  if (header.length != bytes.size()) return ErrorCode::kRequestBadLen;
  message = {};
  message.version = header.version < static_cast<uint8_t>(Version::k1_3) ? Version::k1_0 : Version::k1_3;
  message.xid = header.xid;
  if (!ours) message.hello_version = header.version;

  Reader io(bytes.subspan(kHeaderBytes), message.version, reading);
  const int row = find_number(message_types(), message.version, header.type);
  if (row < 0) return ErrorCode::kRequestBadType;
  auto type = static_cast<MessageType>(row);
  if (type == MessageType::kExperimenter && message.version == Version::k1_0) type = nicira_type(io);
  transfer_alternative(io, message.body, static_cast<size_t>(type));
  if (io.ok() && io.left() > 0) io.fail(ErrorCode::kRequestBadLen);
  if (!io.ok()) message.body = Hello{};
  return io.error();
}

bool encode(const Message& message, std::vector<uint8_t>& out) {
  const int64_t type = type_number(message);
  if (type == kAbsent) return false;
  const size_t start = out.size();
  Writer io(out, message.version);
  const bool foreign = message.type() == MessageType::kHello && message.hello_version != 0;
  io.u8(foreign ? message.hello_version : static_cast<uint8_t>(message.version));
  io.u8(type);
  io.pad(2);
  io.u32(message.xid);
  std::visit([&](const auto& body) { transfer(io, body); }, message.body);
  const size_t length = out.size() - start;
  if (io.refused() || (length > kMaxMessageBytes && io.part_ends().empty())) {
    out.resize(start);
    return false;
  }
  if (length > kMaxMessageBytes) {
    split(out, start, io.parts_at(), io.part_ends());
  } else {
    io.put_u16(start + 2, length);
  }
  return io.exact();
}

Message error_message(ErrorCode code, std::span<const uint8_t> offending) {
  const auto data = offending.first(std::min(offending.size(), kErrorDataBytes));
  const Header header = offending.size() >= kHeaderBytes ? read_header(offending) : Header{};
  const Version version = header.version == static_cast<uint8_t>(Version::k1_0) ? Version::k1_0 : Version::k1_3;
  return error_message(code, version, header.xid, {data.begin(), data.end()});
}

Message error_message(ErrorCode code, Version version, uint32_t xid, std::vector<uint8_t> data) {
  const ErrorDefinition* definition = &definition_of(code);
  // Only messages of 1.3 cause the others.
  if (definition->type(version) < 0) definition = &definition_of(ErrorCode::kRequestBadType);
  Error error;
  error.type = static_cast<uint16_t>(definition->type(version));
  error.code = static_cast<uint16_t>(definition->code(version));
  error.data = std::move(data);
  Message message;
  message.version = version;
  message.xid = xid;
  message.body = std::move(error);
  return message;
}

ErrorCode unknown_experimenter(const Message& message) {
  if (const auto* experimenter = std::get_if<Experimenter>(&message.body)) {
    const bool nicira = message.version == Version::k1_0 && experimenter->experimenter == kNiciraVendor;
    return nicira ? ErrorCode::kRequestBadExpType : ErrorCode::kRequestBadExperimenter;
  }
  const auto* const request = std::get_if<MultipartRequest>(&message.body);
  return request != nullptr && request->type() == MultipartType::kExperimenter ? ErrorCode::kRequestBadExperimenter
                                                                               : ErrorCode::kNone;
}

bool append_part(MultipartReply& whole, MultipartReply&& part, size_t limit) {
  whole.flags = part.flags;
  return append_list(whole.body, std::move(part.body), limit);
}
bool append_part(MultipartRequest& whole, MultipartRequest&& part, size_t limit) {
  whole.flags = part.flags;
  return append_list(whole.body, std::move(part.body), limit);
}

}  // namespace headrace::openflow
