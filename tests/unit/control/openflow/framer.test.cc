/// Streams cut into messages, and multipart messages cut into parts.

#include "control/openflow/framer.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/openflow_messages.hh"

namespace headrace::openflow {
namespace {

Bytes echo_of(size_t size) {
  Message message;
  message.body = EchoRequest{Bytes(size, 0x5a)};
  Bytes bytes;
  EXPECT_TRUE(encode(message, bytes));
  return bytes;
}

TEST(OpenFlowFramer, AnyPiecesGiveTheSameMessages) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Bytes stream;
    std::vector<Bytes> sent;
    for (int i = 0; i < 20; ++i) {
      sent.push_back(echo_of(random() % (round % 10 == 0 ? 65528 : 100)));
      stream.insert(stream.end(), sent.back().begin(), sent.back().end());
    }
    Framer framer;
    std::vector<Bytes> received;
    for (size_t at = 0; at < stream.size();) {
      const size_t piece = std::min(stream.size() - at, 1 + random() % (round % 10 == 0 ? 100000 : 50));
      framer.add(std::span(stream).subspan(at, piece));
      at += piece;
      for (auto one = framer.next(); !one.empty(); one = framer.next()) received.emplace_back(one.begin(), one.end());
      EXPECT_LE(framer.waiting(), kMaxMessageBytes);
    }
    EXPECT_EQ(received, sent);
    EXPECT_EQ(framer.waiting(), 0u);
    EXPECT_FALSE(framer.broken());
  }
}

TEST(OpenFlowFramer, ALengthThatCannotBeBreaksTheStream) {
  Framer framer;
  Bytes stream = echo_of(4);
  const Bytes bad = from_hex("0402000700000009");
  stream.insert(stream.end(), bad.begin(), bad.end());
  framer.add(stream);
  EXPECT_EQ(framer.next().size(), 12u);
  EXPECT_FALSE(framer.broken());
  EXPECT_TRUE(framer.next().empty());
  EXPECT_TRUE(framer.broken());
  EXPECT_EQ(Bytes(framer.offending().begin(), framer.offending().end()), bad);
  framer.add(echo_of(4));
  EXPECT_TRUE(framer.next().empty());
}

template <typename T>
std::vector<Message> parts_of(Version version, T&& list) {
  Message message;
  message.version = version;
  message.xid = 77;
  message.body = MultipartReply{0, std::forward<T>(list)};
  Bytes bytes;
  EXPECT_TRUE(encode(message, bytes));
  Framer framer;
  framer.add(bytes);
  std::vector<Message> parts;
  for (auto one = framer.next(); !one.empty(); one = framer.next()) {
    EXPECT_EQ(decode(one, parts.emplace_back()), ErrorCode::kNone);
    EXPECT_EQ(parts.back().xid, 77u);
  }
  EXPECT_EQ(framer.waiting(), 0u);
  return parts;
}

TEST(OpenFlowMultipart, LongRepliesBecomeParts) {
  Action output;
  output.value = 3;
  for (const Version version : {Version::k1_0, Version::k1_3}) {
    std::vector<FlowStats> flows(3000);
    for (size_t i = 0; i < flows.size(); ++i) {
      flows[i].priority = static_cast<uint16_t>(i);
      flows[i].cookie = i * i;
      EXPECT_EQ(add_to_match(flows[i].match.key, "in_port=" + std::to_string(1 + i)), "");
      if (i % 2 == 0) flows[i].instructions.emplace_back().actions.resize(i % 7 + 1, output);
    }
    auto parts = parts_of(version, flows);
    ASSERT_GT(parts.size(), 4u);
    MultipartReply whole = std::get<MultipartReply>(parts[0].body);
    for (size_t i = 1; i < parts.size(); ++i) {
      EXPECT_EQ(whole.flags, multipart_flag::kMore);
      ASSERT_TRUE(append_part(whole, std::get<MultipartReply>(std::move(parts[i].body)), 3000));
    }
    EXPECT_EQ(whole.flags, 0);
    EXPECT_EQ(std::get<std::vector<FlowStats>>(whole.body), flows);
    // One more is one too many.
    MultipartReply more{0, std::vector<FlowStats>(1)};
    EXPECT_FALSE(append_part(whole, std::move(more), 3000));
    EXPECT_FALSE(append_part(whole, MultipartReply{0, std::vector<PortStats>(1)}, 9000));
    EXPECT_FALSE(append_part(whole, MultipartReply{0, AggregateStats{}}, 9000));
  }
}

TEST(OpenFlowMultipart, PartsAreAsLongAsTheyCanBe) {
  // 65,519 bytes are left behind the header: 2,729 tables of 24 bytes, and 23 bytes.
  EXPECT_EQ(parts_of(Version::k1_3, std::vector<TableStats>(2729)).size(), 1u);
  EXPECT_EQ(parts_of(Version::k1_3, std::vector<TableStats>(2730)).size(), 2u);
  EXPECT_EQ(parts_of(Version::k1_3, std::vector<TableStats>()).size(), 1u);
}

TEST(OpenFlowMultipart, WhatFitsNoMessageIsLeftOut) {
  std::vector<FlowStats> flows(2);
  flows[0].instructions.emplace_back().actions.resize(4100);
  flows[1].cookie = 5;
  Message message;
  message.body = MultipartReply{0, flows};
  Bytes bytes;
  EXPECT_FALSE(encode(message, bytes));
  Message read;
  ASSERT_EQ(decode(bytes, read), ErrorCode::kNone);
  EXPECT_EQ(std::get<std::vector<FlowStats>>(std::get<MultipartReply>(read.body).body), std::vector{flows[1]});
  // Other messages cannot lose anything.
  bytes.clear();
  message.body = EchoRequest{Bytes(65528)};
  EXPECT_FALSE(encode(message, bytes));
  EXPECT_TRUE(bytes.empty());
}

TEST(OpenFlowMultipart, NothingIsWrittenThatAVersionDoesNotHave) {
  Bytes bytes;
  Message message;
  message.version = Version::k1_0;
  message.body = GroupMod{};
  EXPECT_FALSE(encode(message, bytes));
  message.body = MultipartReply{0, std::vector<GroupStats>(1)};
  EXPECT_FALSE(encode(message, bytes));
  message.body = MeterMod{};
  EXPECT_FALSE(encode(message, bytes));
  EXPECT_TRUE(bytes.empty());
}

}  // namespace
}  // namespace headrace::openflow
