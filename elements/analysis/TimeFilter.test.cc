#include "support/element_test.hh"

namespace headrace::testing {
namespace {

/// Pushes packets of these times; returns those that left by the first output.
std::vector<double> passed(TestRouter& r, std::initializer_list<double> times) {
  for (const double time : times) {
    Packet* p = Packet::make("x", 1);
    p->set_timestamp(Timestamp::from_double(time));
    r.push("t", p);
  }
  std::vector<double> out;
  for (const auto& seen : capture(r, "c").seen()) out.push_back(seen.packet->timestamp().to_double());
  return out;
}

std::string time_filter(const std::string& arguments) {
  return "Idle -> t :: TimeFilter(" + arguments + ") -> c :: Capture;";
}

TEST(TimeFilter, PassesARange) {
  using Times = std::vector<double>;
  const std::pair<const char*, Times> kRanges[] = {{"2, 4", {2, 3}},
                                                   {"3", {3, 4, 5}},
                                                   {"START_AFTER 1, END_AFTER 3", {2, 3}},
                                                   {"END 2", {1}},
                                                   {"START 2, INTERVAL 1", {2}},
                                                   {"START_AFTER 1, INTERVAL 2", {2, 3}},
                                                   {"START_DELAY 1", {}},
                                                   {"END_DELAY 1", {1, 2, 3, 4, 5}}};
  for (const auto& [arguments, times] : kRanges) {
    TestRouter r(time_filter(arguments));
    ASSERT_TRUE(r.ok()) << r.errors();
    EXPECT_EQ(passed(r, {1, 2, 3, 4, 5}), times) << arguments;
  }
}

TEST(TimeFilter, OthersLeaveByTheSecondOutput) {
  TestRouter r(time_filter("2, 4") + "t[1] -> d :: Capture;");
  passed(r, {1, 2, 3, 4, 5});
  EXPECT_EQ(capture(r, "d").seen().size(), 3u);
  TestRouter one(time_filter("2, 4"));
  passed(one, {1, 2, 3, 4, 5});
  EXPECT_EQ(one.read("t.drop_reasons"), "3\toutside the time range\n");
}

TEST(TimeFilter, CallsAtTheEnd) {
  TestRouter r(time_filter("0, 2, END_CALL t.extend_interval $t"));
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(passed(r, {1, 2, 3, 4, 50}), (std::vector<double>{1, 2, 3, 4, 50}));
  EXPECT_EQ(r.read("t.end"), "58.000000");
  ASSERT_TRUE(r.write("t.interval", "5"));
  EXPECT_EQ(r.read("t.end"), "5.000000");
  ASSERT_TRUE(r.write("t.start", "2"));
  EXPECT_EQ(r.read("t.interval"), "3.000000");
}

TEST(TimeFilter, Errors) {
  const std::pair<const char*, const char*> kErrors[] = {
      {"START 1, START_AFTER 2", "START, START_AFTER and START_DELAY are mutually exclusive"},
      {"END 1, INTERVAL 2", "END, END_AFTER, END_DELAY and INTERVAL are mutually exclusive"},
      {"STOP true, END_CALL stop", "END_CALL and STOP are mutually exclusive"},
      {"soon", "START"},
      {"END_CALL nothing.there", "nothing"}};
  for (const auto& [arguments, message] : kErrors) {
    TestRouter r(time_filter(arguments));
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
