/// What encode() writes is kept in tests/data/openflow, where tests/system/test_openflow_messages.py has other programs read
/// it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "sample_messages.hh"
#include "stored_data.hh"

namespace headrace::openflow {
namespace {

using OpenFlowSamples = StoredData;

using namespace samples;

/// Encodes bodies one behind the other; their xids are their places.
Bytes encoded(const std::vector<Body>& bodies, Version version) {
  Bytes bytes;
  for (size_t i = 0; i < bodies.size(); ++i) {
    Message message;
    message.version = version;
    message.xid = static_cast<uint32_t>(i + 1);
    message.body = bodies[i];
    const size_t before = bytes.size();
    EXPECT_TRUE(encode(message, bytes)) << i;
    Message read;
    EXPECT_EQ(decode(std::span(bytes).subspan(before), read), ErrorCode::kNone) << i;
    EXPECT_EQ(read, message) << i;
  }
  return bytes;
}

void expect_kept(const char* file, const Bytes& bytes) {
  const std::string path = kSourceDir + "/tests/data/openflow/" + file;
  if (std::getenv("HEADRACE_WRITE_SAMPLES") != nullptr)
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  EXPECT_EQ(read_file(path), bytes) << file;
}

TEST_F(OpenFlowSamples, AreThoseThatOtherProgramsRead) {
  expect_kept("samples_10.bin", encoded(bodies_1_0(), Version::k1_0));
  expect_kept("samples_13.bin", encoded(bodies_1_3(), Version::k1_3));
  expect_kept("samples_13_more.bin", encoded(more_bodies_1_3(), Version::k1_3));
}

TEST_F(OpenFlowSamples, HaveEveryMessage) {
  std::set<size_t> types, requests, replies;
  std::vector<Body> bodies = bodies_1_3();
  for (Body& body : more_bodies_1_3()) bodies.push_back(std::move(body));
  for (const Body& body : bodies) {
    types.insert(body.index());
    if (const auto* request = std::get_if<MultipartRequest>(&body)) requests.insert(request->body.index());
    if (const auto* reply = std::get_if<MultipartReply>(&body)) replies.insert(reply->body.index());
  }
  EXPECT_EQ(types.size(), std::variant_size_v<Body>);
  EXPECT_EQ(requests.size(), std::variant_size_v<RequestBody>);
  EXPECT_EQ(replies.size(), std::variant_size_v<ReplyBody>);
}

/// Entries as one version makes them, in both.
TEST_F(OpenFlowSamples, ShowTheSameEntriesInBothVersions) {
  std::vector<Body> entries;
  const auto add = [&](const char* match, std::vector<Action> actions) {
    FlowMod mod = flow_mod(match, {});
    if (!actions.empty()) mod.instructions = {apply(std::move(actions))};
    entries.emplace_back(mod);
  };
  add("in_port=1", {output(2)});
  add("in_port=4294967294", {output(port::kInPort), output(port::kFlood), output(port::kController, 64)});
  add("vlan_vid=0", {action(ActionType::kSetVlanVid, 10), output(2)});
  add("dl_vlan=10,dl_vlan_pcp=3", {action(ActionType::kPopVlan), output(port::kNormal)});
  add("dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02",
      {set_field("dl_src", "02:00:00:00:00:03"), output(port::kAll)});
  add("tcp,nw_src=10.0.0.0/8,nw_dst=10.1.2.3,nw_tos=184,tp_dst=80",
      {set_field("nw_dst", "10.0.0.9"), set_field("tcp_dst", "8080"), output(2)});
  add("udp,tp_src=53", {set_field("ip_dscp", "46"), set_field("udp_src", "54"), output(3)});
  add("icmp,icmp_type=8,icmp_code=0", {});
  add("arp,arp_op=1,arp_tpa=10.0.0.1", {output(port::kLocal)});
  const auto both = [](const std::vector<Body>& bodies, Version version) {
    Bytes bytes;
    for (size_t i = 0; i < bodies.size(); ++i) {
      Message message;
      message.version = version;
      message.xid = static_cast<uint32_t>(i + 1);
      message.body = bodies[i];
      EXPECT_TRUE(encode(message, bytes)) << i;
    }
    return bytes;
  };
  expect_kept("views_10.bin", both(entries, Version::k1_0));
  expect_kept("views_13.bin", both(entries, Version::k1_3));
}

}  // namespace
}  // namespace headrace::openflow
