#include "elements/devices/McastSocket.hh"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/element_test.hh"

namespace headrace::testing {
namespace {

constexpr const char* kGroup = "233.252.0.77";

/// A member of the group on the loopback interface, at a port that is free.
class GroupMember {
 public:
  GroupMember() : socket_(::socket(AF_INET, SOCK_DGRAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = ::inet_addr(kGroup);
    const in_addr loopback{::inet_addr("127.0.0.1")};
    const ip_mreq membership{address_.sin_addr, loopback};
    const int one = 1;
    const timeval patience{5, 0};
    socklen_t length = sizeof address_;
    good_ = ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
            ::bind(socket_, reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0 &&
            ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address_), &length) == 0 &&
            ::setsockopt(socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership) == 0 &&
            ::setsockopt(socket_, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback) == 0 &&
            ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0;
  }
  ~GroupMember() { ::close(socket_); }
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;

  bool good() const { return good_; }
  std::string group() const { return std::string(kGroup) + ", " + std::to_string(ntohs(address_.sin_port)); }
  bool send(const std::string& bytes) {
    return ::sendto(socket_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&address_), sizeof address_) >=
           0;
  }
  std::string receive() {
    char bytes[2048];
    const ssize_t n = ::recv(socket_, bytes, sizeof bytes, 0);
    return n < 0 ? "nothing" : std::string(bytes, static_cast<size_t>(n));
  }

 private:
  int socket_;
  sockaddr_in address_{};
  bool good_ = false;
};

TEST(McastSocket, SendsPushedAndPulledPackets) {
  GroupMember member;
  if (!member.good()) GTEST_SKIP() << "no multicast on the loopback interface";
  TestRouter r("Idle -> s :: McastSocket(" + member.group() + ", 127.0.0.1); Idle -> q :: Queue -> t :: McastSocket(" +
               member.group() + ", 127.0.0.1); Script(wait 1ms, stop);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "hello");
  EXPECT_EQ(member.receive(), "hello");
  EXPECT_EQ(r.read("s.sent"), "1");
  r.push("q", "pulled");
  r.run();
  EXPECT_EQ(member.receive(), "pulled");
  EXPECT_EQ(r.read("t.sent"), "1");
}

TEST(McastSocket, ReceivesFromOthersNotFromItself) {
  GroupMember member;
  if (!member.good()) GTEST_SKIP() << "no multicast on the loopback interface";
  TestRouter r("Idle -> s :: McastSocket(" + member.group() +
               ", 127.0.0.1, SNAPLEN 4) -> n :: Counter(COUNT_CALL 2 stop) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "own");
  ASSERT_TRUE(member.send("abc"));
  ASSERT_TRUE(member.send("abcdefg"));
  r.run();
  ASSERT_EQ(capture(r, "c").seen().size(), 2u);
  EXPECT_EQ(capture(r, "c").bytes(0), "abc");
  EXPECT_EQ(capture(r, "c").bytes(1), "abcd");
  const Packet& cut = *capture(r, "c").seen()[1].packet;
  EXPECT_EQ(cut.anno_u32(anno_offset::kExtraLength), 3u);
  EXPECT_TRUE(cut.timestamp());
  EXPECT_EQ(r.read("s.count"), "2");
}

TEST(McastSocket, AnAddressThatIsNotOursIsAnError) {
  TestRouter r("Idle -> s :: McastSocket(" + std::string(kGroup) + ", 9, SOURCEIP 203.0.113.77) -> Discard;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("SOURCEIP: "), std::string::npos) << r.errors();
}

TEST(McastSocket, DropsWhatTheSocketRefuses) {
  GroupMember member;
  if (!member.good()) GTEST_SKIP() << "no multicast on the loopback interface";
  TestRouter r("Idle -> s :: McastSocket(" + member.group() + ", 127.0.0.1);");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", std::string(65530, 'x'));  // longer than a datagram
  EXPECT_EQ(r.read("s.drop_reasons"), "1\tnot sent\n");
}

TEST(McastSocket, Errors) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"", "MCASTIP: required argument missing"},
      {"233.252.0.1", "MCASTPORT: required argument missing"},
      {"10.0.0.1, 9", "MCASTIP: 10.0.0.1 is no multicast address"},
      {"233.252.0.1, 70000", "MCASTPORT: "},
      {"233.252.0.1, 9, SOURCEPORT 5", "SOURCEPORT needs SOURCEIP"},
      {"233.252.0.1, 9, LOOP 7", "LOOP: "},
      {"233.252.0.1, 9, SNAPLEN 0", "SNAPLEN: out of range, bound 1"},
      {"233.252.0.1, 9, HEADROOM 2000", "HEADROOM: out of range"},
      {"233.252.0.1, 9, TIMESTAMP 5", "TIMESTAMP: "},
      {"233.252.0.1, 9, SNDBUF x", "SNDBUF: "},
      {"233.252.0.1, 9, RCVBUF x", "RCVBUF: "}};
  for (const auto& [arguments, message] : kErrors) {
    TestRouter r("Idle -> McastSocket(" + std::string(arguments) + ") -> Discard;");
    EXPECT_FALSE(r.ok()) << arguments;
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
