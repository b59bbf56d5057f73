/// Programs of others at the other end: ovs-ofctl, ovs-testcontroller, os-ken, and certificates of openssl.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/wait.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "support/openflow_channel.hh"

namespace headrace::openflow {
namespace {

bool installed(const std::string& command) {
  return std::system(("command -v " + command + " >/dev/null 2>&1").c_str()) == 0;
}

#define NEEDS(command, package) \
  if (!installed(command)) GTEST_SKIP() << "not installed: " << command << " (" << package << ", tools/deps test)"

size_t count_flows(const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find("cookie="); at != text.npos; at = text.find("cookie=", at + 1)) ++count;
  return count;
}

/// A shell command whose output goes to a file.
class Program {
 public:
  Program(const std::string& command, std::string output) : output_(std::move(output)), pid_(fork()) {
    if (pid_ != 0) return;
    const int fd = open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
    _exit(127);
  }
  ~Program() {
    if (!done()) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  bool done() {
    if (!done_ && waitpid(pid_, &status_, WNOHANG) == pid_) done_ = true;
    return done_;
  }
  int status() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }
  std::string output() const {
    std::ifstream in(output_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  std::string output_;
  pid_t pid_;
  int status_ = 0;
  bool done_ = false;
};

struct OpenFlowPeers : testing::Test {
  /// The output of a command that runs while the channel does, and ends well.
  std::string run(const std::string& command) {
    Program program(command, folder.file("output"));
    EXPECT_TRUE(under_test.run_until([&] { return program.done(); })) << command;
    EXPECT_EQ(program.status(), 0) << command << "\n" << program.output() << under_test.log;
    return program.output();
  }
  void listen(Target target) {
    options.targets = {std::move(target)};
    under_test.start(options);
  }
  void show(const std::string& version, const std::string& target, const std::string& more = {}) {
    const std::string out = run("ovs-ofctl " + more + " -O " + version + " show " + target);
    EXPECT_NE(out.find("dpid:0000000000001234"), std::string::npos) << out;
    EXPECT_NE(out.find("miss_send_len=0"), std::string::npos) << out;
  }
  /// An authority and a certificate for each name.
  void make_certificates() {
    const auto shell = [&](const std::string& command) {
      ASSERT_EQ(std::system(("cd " + folder.file("") + " && " + command + " >/dev/null 2>&1").c_str()), 0) << command;
    };
    const std::string key = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes ";
    for (const std::string authority : {"ca", "otherca"}) {
      const std::string name = authority == "ca" ? "" : "other";
      shell(key + "-x509 -days 2 -subj /CN=" + authority + " -keyout " + authority + ".key -out " + authority + ".pem");
      for (const std::string who : {"switch", "controller"}) {
        const std::string file = name + who;
        shell(key + "-subj /CN=" + who + " -keyout " + file + ".key -out " + file + ".csr");
        shell("openssl x509 -req -days 2 -in " + file + ".csr -CA " + authority + ".pem -CAkey " + authority +
              ".key -CAcreateserial -out " + file + ".pem");
      }
    }
    options.tls = TlsFiles{folder.file("switch.key"), folder.file("switch.pem"), folder.file("ca.pem")};
  }
  std::string certificates(const std::string& who) const {
    return "-p " + folder.file(who + ".key") + " -c " + folder.file(who + ".pem") + " -C " + folder.file("ca.pem");
  }

  TemporaryFolder folder;
  Options options;
  ChannelUnderTest under_test;
};

TEST_F(OpenFlowPeers, OvsOfctlOverAFile) {
  NEEDS("ovs-ofctl", "openvswitch-common");
  const std::string file = folder.file("s");
  listen({Target::Kind::kUnix, true, "", 0, file});
  for (const std::string version : {"OpenFlow10", "OpenFlow13"}) {
    show(version, file);
    EXPECT_NE(run("ovs-ofctl -O " + version + " dump-desc " + file).find("Manufacturer: Headrace"), std::string::npos);
    run("ovs-ofctl -O " + version + " probe " + file);
    Program ping("timeout 0.3 ovs-ofctl -O " + version + " ping " + file + " 1000", folder.file("ping"));
    EXPECT_TRUE(under_test.run_until([&] { return ping.done(); }));
    EXPECT_NE(ping.output().find("1000 bytes from"), std::string::npos) << ping.output();
  }
  under_test.handler.flows = 3000;  // several parts
  const std::string flows = run("ovs-ofctl -O OpenFlow13 dump-flows " + file);
  EXPECT_EQ(count_flows(flows), 3000u);
}

TEST_F(OpenFlowPeers, OvsOfctlOverTcp) {
  NEEDS("ovs-ofctl", "openvswitch-common");
  listen({Target::Kind::kTcp, true, "127.0.0.1", 0, ""});
  for (const std::string version : {"OpenFlow10", "OpenFlow13"})
    show(version, "tcp:127.0.0.1:" + std::to_string(under_test.channel.ports().at(0)));
  EXPECT_NE(under_test.log.find(": ptcp:0:127.0.0.1 127.0.0.1:"), std::string::npos) << under_test.log;
}

TEST_F(OpenFlowPeers, OvsOfctlOverTls) {
  NEEDS("ovs-ofctl", "openvswitch-common");
  NEEDS("openssl", "openssl");
  make_certificates();
  listen({Target::Kind::kSsl, true, "127.0.0.1", 0, ""});
  const std::string target = "ssl:127.0.0.1:" + std::to_string(under_test.channel.ports().at(0));
  for (const std::string version : {"OpenFlow10", "OpenFlow13"}) show(version, target, certificates("controller"));
  under_test.handler.flows = 5000;
  const std::string flows = run("ovs-ofctl " + certificates("controller") + " -O OpenFlow13 dump-flows " + target);
  EXPECT_EQ(count_flows(flows), 5000u);

  // Whom our authority does not know, and who has no certificate.
  const size_t connected = under_test.handler.connected.size();
  under_test.log.clear();
  Program stranger("timeout 5 ovs-ofctl " + certificates("othercontroller") + " show " + target, folder.file("output"));
  EXPECT_TRUE(under_test.run_until([&] { return stranger.done(); }));
  EXPECT_NE(stranger.status(), 0);
  EXPECT_NE(under_test.log.find("TLS: certificate verify failed"), std::string::npos) << under_test.log;
  under_test.log.clear();
  Program nobody("openssl s_client -connect " + target.substr(4) + " </dev/null", folder.file("output"));
  EXPECT_TRUE(under_test.run_until([&] { return nobody.done() && !under_test.log.empty(); }));
  EXPECT_NE(under_test.log.find("TLS: peer did not return a certificate"), std::string::npos) << under_test.log;
  EXPECT_EQ(under_test.handler.connected.size(), connected);
}

TEST_F(OpenFlowPeers, SwitchAndSwitchOverTls) {
  NEEDS("openssl", "openssl");
  make_certificates();
  // A controller that presents what another authority has signed.
  ChannelUnderTest controller;
  Options theirs;
  theirs.targets = {{Target::Kind::kSsl, true, "127.0.0.1", 0, ""}};
  theirs.tls = TlsFiles{folder.file("othercontroller.key"), folder.file("othercontroller.pem"), folder.file("ca.pem")};
  controller.start(theirs);
  listen({Target::Kind::kSsl, false, "127.0.0.1", controller.channel.ports().at(0), ""});
  EXPECT_TRUE(under_test.run_until([&] {
    controller.channel.run();
    return !under_test.log.empty();
  }));
  EXPECT_NE(under_test.log.find("no connection: TLS: certificate verify failed"), std::string::npos) << under_test.log;
}

TEST_F(OpenFlowPeers, OvsTestcontroller) {
  NEEDS("ovs-testcontroller", "openvswitch-testcontroller");
  NEEDS("openssl", "openssl");
  make_certificates();
  int port = 0;
  {
    TestController free_port(under_test, socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    ::listen(free_port.fd(), 1);
    getsockname(free_port.fd(), reinterpret_cast<sockaddr*>(&address), &length);
    port = ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  const std::string file = folder.file("c");
  Program program("ovs-testcontroller --max-idle=60 " + certificates("controller") + " --unixctl=none punix:" + file +
                      " pssl:" + std::to_string(port) + ":127.0.0.1",
                  folder.file("controller"));
  options.targets = {{Target::Kind::kUnix, false, "", 0, file},
                     {Target::Kind::kSsl, false, "127.0.0.1", static_cast<uint16_t>(port), ""}};
  under_test.start(options);
  const auto configured = [&] {
    const auto& seen = under_test.handler.seen;
    return std::count_if(seen.begin(), seen.end(),
                         [](const Message& m) { return std::holds_alternative<FeaturesRequest>(m.body); }) == 2;
  };
  EXPECT_TRUE(under_test.run_until(configured)) << under_test.log << program.output();
  EXPECT_EQ(under_test.handler.controllers, std::vector<bool>{true});
  // It answers a packet-in with a packet-out or a flow entry.
  PacketIn packet;
  packet.data =
      from_hex("ffffffffffff 020000000001 0806 0001 0800 0604 0001 020000000001 0a000001 000000000000 0a000002");
  packet.total_len = static_cast<uint16_t>(packet.data.size());
  EXPECT_EQ(add_to_match(packet.match.key, "in_port=1"), "");
  under_test.channel.packet_in(packet, false);
  EXPECT_TRUE(under_test.run_until([&] {
    const auto& seen = under_test.handler.seen;
    return std::any_of(seen.begin(), seen.end(), [](const Message& m) {
      return std::holds_alternative<PacketOut>(m.body) || std::holds_alternative<FlowMod>(m.body);
    });
  })) << under_test.log
      << program.output();
}

/// What a controller of os-ken does first, with its own codec.
constexpr const char* kOsKen = R"(
import socket, struct, sys
from os_ken.ofproto import ofproto_parser, ofproto_protocol, ofproto_v1_0, ofproto_v1_0_parser, ofproto_v1_3, ofproto_v1_3_parser
version = int(sys.argv[2])
class Datapath(ofproto_protocol.ProtocolDesc): pass
datapath = Datapath(version)
parser, ofproto = datapath.ofproto_parser, datapath.ofproto
stream = socket.socket(socket.AF_UNIX)
stream.connect(sys.argv[1])
def receive():
    data = b''
    while len(data) < 8: data += stream.recv(8 - len(data))
    length = struct.unpack_from('!H', data, 2)[0]
    while len(data) < length: data += stream.recv(length - len(data))
    return ofproto_parser.msg(datapath, *ofproto_parser.header(data), data)
def send(message, xid):
    message.set_xid(xid)
    message.serialize()
    stream.sendall(message.buf)
def ask(message, answer, xid):
    send(message, xid)
    reply = receive()
    assert isinstance(reply, answer) and reply.xid == xid, reply
    return reply
send(parser.OFPHello(datapath), 1)
hello = receive()
assert isinstance(hello, parser.OFPHello) or version == 1, hello
features = ask(parser.OFPFeaturesRequest(datapath), parser.OFPSwitchFeatures, 2)
assert features.datapath_id == 0x1234
assert ask(parser.OFPEchoRequest(datapath, data=b'abc'), parser.OFPEchoReply, 3).data == b'abc'
ask(parser.OFPBarrierRequest(datapath), parser.OFPBarrierReply, 4)
if version == 4:
    role = ask(parser.OFPRoleRequest(datapath, ofproto.OFPCR_ROLE_MASTER, 5), parser.OFPRoleReply, 5)
    assert (role.role, role.generation_id) == (ofproto.OFPCR_ROLE_MASTER, 5)
    error = ask(parser.OFPRoleRequest(datapath, ofproto.OFPCR_ROLE_MASTER, 4), parser.OFPErrorMsg, 6)
    assert (error.type, error.code) == (ofproto.OFPET_ROLE_REQUEST_FAILED, ofproto.OFPRRFC_STALE)
    asynchronous = ask(parser.OFPGetAsyncRequest(datapath), parser.OFPGetAsyncReply, 7)
    assert asynchronous.packet_in_mask == [3, 0] and asynchronous.port_status_mask == [7, 7], asynchronous
    assert asynchronous.flow_removed_mask == [15, 0]
print('all well')
)";

TEST_F(OpenFlowPeers, OsKen) {
  if (std::system("/usr/bin/python3 -c 'import os_ken.ofproto' >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "not installed: os_ken (python3-os-ken, tools/deps test)";
  const std::string file = folder.file("s"), script = folder.file("peer.py");
  std::ofstream(script) << kOsKen;
  listen({Target::Kind::kUnix, true, "", 0, file});
  for (const std::string version : {"1", "4"})
    EXPECT_EQ(run("/usr/bin/python3 " + script + " " + file + " " + version), "all well\n");
}

}  // namespace
}  // namespace headrace::openflow
