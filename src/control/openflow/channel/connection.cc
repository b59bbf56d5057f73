#include "control/openflow/channel/connection.hh"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace headrace::openflow {

namespace {

constexpr uint8_t kHelloType = 0, kErrorType = 1, kEchoRequestType = 2, kEchoReplyType = 3;
/// In place of Options::probe if that is 0.
constexpr int64_t kDefaultInterval = 5 * kSecond;
/// So long a peer may take to read our last words.
constexpr int64_t kLastWords = kSecond;
/// A peer that reads nothing for so many intervals, although much is to be read, is given up.
constexpr int kStalledIntervals = 2;
constexpr uint16_t kDefaultMissSendLen = 128;

std::string describe(const Error& error, Version version) {
  const std::string text(error.data.begin(), error.data.end());
  const bool readable =
      !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= 32 && c < 127; });
  return fmt::format("{}{}{}", error_text(version, error.type, error.code), readable ? ": " : "", readable ? text : "");
}

}  // namespace

Connection::Connection(Host& host, uint64_t id, Origin origin, std::unique_ptr<Link> link)
    : host_(host),
      id_(id),
      origin_(std::move(origin)),
      link_(std::move(link)),
      version_(origin_.versions.highest()),
      miss_send_len_(origin_.primary ? kDefaultMissSendLen : 0),
      begun_at_(host.now()),
      heard_at_(begun_at_),
      moved_at_(begun_at_) {
  push(hello_of(origin_.versions, next_xid_++));
}

Role Connection::role() {
  const Connection* const main = host_.main_of(*this);
  return main != nullptr ? main->role_ : role_;
}

void Connection::set_miss_send_len(uint16_t bytes) {
  miss_send_len_ = bytes;
  asked_ = bytes != 0;
}

// --- Out ----------------------------------------------------------------------------------------------------------

void Connection::push(const Message& message) {
  std::vector<uint8_t>& out = link_->out();
  const size_t before = out.size();
  if (link_->unsent() == 0) moved_at_ = host_.now();
  (void)encode(message, out);  // what the version cannot say is left out
  if (out.size() == before) return;
  pushed_ += out.size() - before;
  ++counters_.sent;
  if (message.type() == MessageType::kError) ++counters_.errors;
  host_.wake();
}

void Connection::send(uint32_t xid, Body body) {
  if (!established()) return;
  Message message;
  message.version = version_;
  message.xid = xid;
  message.body = std::move(body);
  if (auto* features = std::get_if<FeaturesReply>(&message.body)) features->auxiliary = origin_.auxiliary;
  push(message);
  replied_ = pushed_;
}

void Connection::refuse(ErrorCode code, std::span<const uint8_t> bytes) {
  if (!established()) return;
  Message error = error_message(code, bytes);
  if (error.version != version_)
    error = error_message(code, version_, error.xid, std::move(std::get<Error>(error.body).data));
  push(error);
  replied_ = pushed_;
}

bool Connection::wants(const Body& body) const {
  return established() && origin_.auxiliary == 0 && (origin_.primary || asked_) && passes(async_, role_, body);
}

void Connection::notify(const Message& message) {
  if (!established()) return;
  const bool packet_in = message.type() == MessageType::kPacketIn;
  if (packet_in && congested()) {
    ++counters_.packet_ins_dropped;
    return;
  }
  counters_.packet_ins += packet_in ? 1 : 0;
  Message sent = message;
  sent.version = version_;
  push(sent);
  const size_t most = host_.options().limits.unsent_events;
  if (pushed_ - replied_ > most && link_->unsent() > most)
    fail(fmt::format("the controller reads nothing: {} bytes are unsent, {} packet-ins were dropped", link_->unsent(),
                     counters_.packet_ins_dropped));
}

void Connection::release() {
  if (holds_ > 0) --holds_;
  host_.wake();
}

void Connection::finish(std::string why) {
  if (ended()) return;
  why_ = std::move(why);
  begun_at_ = host_.now();
  state_ = link_->secured() ? State::kClosing : State::kOver;
  host_.wake();
}

void Connection::fail(std::string why) {
  if (!ended()) why_ = std::move(why);
  state_ = State::kOver;
  host_.wake();
}

void Connection::flush() {
  if (state_ == State::kOver) return;
  if (!link_->flush()) return fail(link_->error());
  if (link_->sent() != moved_to_ || link_->unsent() == 0) {
    moved_to_ = link_->sent();
    moved_at_ = host_.now();
  }
  if (state_ == State::kClosing && link_->unsent() == 0) {
    link_->end_writing();
    if (peer_done_) state_ = State::kOver;
  }
}

// --- In -----------------------------------------------------------------------------------------------------------

bool Connection::wants_to_read() const {
  if (state_ == State::kOver || peer_done_) return false;
  return state_ == State::kClosing || (!congested() && waiting_.size() < host_.options().limits.waiting);
}

void Connection::readable() {
  if (!wants_to_read()) return;
  received_.clear();
  const bool more = link_->receive(received_);
  if (!received_.empty()) heard_at_ = host_.now();
  if (!more) {
    peer_done_ = true;
    if (state_ != State::kEstablished) return fail(link_->error());
  }
  if (!more || !received_.empty()) probed_at_ = -1;
  if (state_ == State::kClosing || received_.empty()) return;
  // Who speaks something else might never send what would be a whole message.
  if (state_ == State::kHello && framer_.waiting() < 2 && framer_.waiting() + received_.size() >= 2) {
    const uint8_t type = received_[1 - framer_.waiting()];
    if (type != kHelloType && type != kErrorType) return refuse_hello("the first message is not a hello");
  }
  framer_.add(received_);
  for (auto one = framer_.next(); !one.empty() && !ended(); one = framer_.next()) sort(one);
  if (framer_.broken() && !ended()) {
    if (state_ == State::kHello) return refuse_hello("the first message is not a hello");
    refuse(ErrorCode::kRequestBadLen, framer_.offending());
    finish("a message has a length under 8 bytes");
  }
}

void Connection::sort(std::span<const uint8_t> bytes) {
  ++counters_.received;
  if (state_ == State::kHello) return take_hello(bytes);
  const Header header = read_header(bytes);
  // Echoes show that both are alive, however much there is to do.
  if (header.version == static_cast<uint8_t>(version_) && header.type == kEchoReplyType) return;
  if (header.version == static_cast<uint8_t>(version_) && header.type == kEchoRequestType)
    return send(header.xid, EchoReply{{bytes.begin() + kHeaderBytes, bytes.end()}});
  waiting_.tail().insert(waiting_.tail().end(), bytes.begin(), bytes.end());
}

void Connection::refuse_hello(const std::string& why) {
  Message error = error_message(ErrorCode::kHelloIncompatible, version_, 0, {why.begin(), why.end()});
  push(error);
  finish(why);
}

void Connection::take_hello(std::span<const uint8_t> bytes) {
  Message message;
  const ErrorCode code = decode(bytes, message);
  version_ = std::min(message.version, origin_.versions.highest());
  if (const auto* error = std::get_if<Error>(&message.body); code == ErrorCode::kNone && error != nullptr)
    return finish(fmt::format("the controller refuses: {}", describe(*error, message.version)));
  if (code != ErrorCode::kNone || message.type() != MessageType::kHello)
    return refuse_hello("the first message is not a hello");
  const std::optional<Version> version = negotiate(origin_.versions, message);
  if (!version) return refuse_hello(incompatible(origin_.versions, message));
  version_ = *version;
  state_ = State::kEstablished;
  begun_at_ = established_at_ = moved_at_ = host_.now();
  host_.log(*this, fmt::format("connected, OpenFlow {}", version_ == Version::k1_0 ? "1.0" : "1.3"));
  if (Handler* const handler = host_.handler()) handler->on_connected(*this);
}

bool Connection::has_turn() const {
  return established() && !waiting_.empty() && !held() && !congested() && host_.handler() != nullptr;
}

void Connection::turn() {
  const bool was_reading = wants_to_read();
  for (size_t done = 0; has_turn() && done < host_.options().limits.turn;) {
    const size_t length = read_header(waiting_.front()).length;
    // Handlers may do anything, but not add to what waits.
    handle(waiting_.front().first(length));
    waiting_.remove(length);
    done += length;
  }
  flush();
  // Silence while we did not listen is not the peer's.
  if (!was_reading && wants_to_read()) heard_at_ = host_.now();
  if (established() && peer_done_ && waiting_.empty() && !held() && link_->unsent() == 0)
    fail(framer_.waiting() == 0 ? link_->error() : fmt::format("{}, within a message", link_->error()));
}

void Connection::handle(std::span<const uint8_t> bytes) {
  const Header header = read_header(bytes);
  Message message;
  const ErrorCode code = decode(bytes, message);
  if (header.type == kErrorType) {  // never answered
    if (const auto* error = std::get_if<Error>(&message.body); code == ErrorCode::kNone && error != nullptr)
      host_.log(*this, fmt::format("error from the controller: {}", describe(*error, message.version)));
    return;
  }
  if (header.version != static_cast<uint8_t>(version_)) return refuse(ErrorCode::kRequestBadVersion, bytes);
  if (code != ErrorCode::kNone) return refuse(code, bytes);
  if (sender_of(message.type()) == Sender::kSwitch) return refuse(ErrorCode::kRequestBadType, bytes);
  if (const ErrorCode unknown = unknown_experimenter(message); unknown != ErrorCode::kNone)
    return refuse(unknown, bytes);
  if (role() == Role::kSlave && modifies(message.body)) return refuse(ErrorCode::kRequestIsSlave, bytes);
  switch (message.type()) {
    case MessageType::kHello:
      return;
    case MessageType::kRoleRequest:
      return take_role(std::get<RoleRequest>(message.body), message.xid, bytes);
    case MessageType::kGetAsyncRequest:
    case MessageType::kSetAsync:
      if (Connection* const main = host_.main_of(*this)) {
        if (const auto* wanted = std::get_if<SetAsync>(&message.body)) {
          main->async_ = *wanted;
          main->asked_ = true;
        } else {
          send(message.xid, GetAsyncReply{main->async_});
        }
      }
      return;
    case MessageType::kMultipartRequest:
      return take_part(std::move(message), bytes);
    default:
      return host_.handler()->on_message(*this, std::move(message), bytes);
  }
}

void Connection::take_role(const RoleState& request, uint32_t xid, std::span<const uint8_t> bytes) {
  Connection* const main = host_.main_of(*this);
  if (main == nullptr) return;
  if (request.role != Role::kNoChange) {
    const bool ordered = version_ != Version::k1_0 && request.role != Role::kEqual;
    if (ordered && !host_.election().accept(request.generation)) return refuse(ErrorCode::kRoleStale, bytes);
    host_.set_role(*main, request.role);
  }
  RoleReply reply;
  reply.role = main->role_;
  reply.generation = host_.election().generation();
  send(xid, std::move(reply));
}

void Connection::take_part(Message&& message, std::span<const uint8_t> bytes) {
  const Limits& limits = host_.options().limits;
  auto& request = std::get<MultipartRequest>(message.body);
  const bool more = (request.flags & multipart_flag::kMore) != 0;
  auto it = parts_.find(message.xid);
  if (it == parts_.end()) {
    if (!more) return host_.handler()->on_message(*this, std::move(message), bytes);
    if (parts_.size() >= limits.part_requests) return refuse(ErrorCode::kRequestMultipartBufferOverflow, bytes);
    parts_[message.xid] = {std::move(request), bytes.size(), false};
    return;
  }
  Parts& parts = it->second;
  parts.bytes += bytes.size();
  if (!parts.refused) {
    const bool same = parts.whole.type() == request.type();
    parts.refused =
        !same || parts.bytes > limits.part_bytes || !append_part(parts.whole, std::move(request), limits.part_elements);
    if (parts.refused) {
      parts.whole = {};
      refuse(same ? ErrorCode::kRequestMultipartBufferOverflow : ErrorCode::kRequestBadMultipart, bytes);
    }
  }
  if (more) return;
  const Parts last = std::move(parts);
  parts_.erase(it);
  if (last.refused) return;
  message.body = std::move(last.whole);
  host_.handler()->on_message(*this, std::move(message), bytes);
}

// --- Time ---------------------------------------------------------------------------------------------------------

int64_t Connection::interval() const {
  const int64_t probe = host_.options().probe;
  return probe > 0 ? probe : kDefaultInterval;
}

int64_t Connection::next_due() const {
  switch (state_) {
    case State::kHello:
      return begun_at_ + interval();
    case State::kClosing:
      return begun_at_ + kLastWords;
    case State::kOver:
      return INT64_MAX;
    case State::kEstablished:
      break;
  }
  int64_t due = INT64_MAX;
  if (congested() || (peer_done_ && link_->unsent() > 0)) due = moved_at_ + kStalledIntervals * interval();
  if (host_.options().probe > 0 && wants_to_read())
    due = std::min(due, (probed_at_ < 0 ? heard_at_ : probed_at_) + interval());
  return due;
}

void Connection::on_time() {
  const int64_t now = host_.now();
  if (now < next_due()) return;
  const double seconds = static_cast<double>(interval()) / static_cast<double>(kSecond);
  if (state_ == State::kHello) return fail(fmt::format("no hello within {} s", seconds));
  if (state_ == State::kClosing) return fail({});
  if (link_->unsent() > 0 && now - moved_at_ >= kStalledIntervals * interval())
    return fail(fmt::format("the controller reads nothing: {} bytes are unsent, {} packet-ins were dropped",
                            link_->unsent(), counters_.packet_ins_dropped));
  if (probed_at_ >= 0) return fail(fmt::format("no answer to an echo request within {} s", seconds));
  probed_at_ = now;
  Message echo;
  echo.version = version_;
  echo.xid = next_xid_++;
  echo.body = EchoRequest{};
  push(echo);
}

}  // namespace headrace::openflow
