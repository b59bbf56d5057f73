#include <gtest/gtest.h>

#include "support/element_test.hh"

namespace headrace {
namespace {

using testing::Capture;
using testing::TestRouter;

TEST(ToIPSummaryDump, WhatAFullDiskDoesNotTakeIsCountedAsByIPPrintAndARPPrint) {
  ::testing::internal::CaptureStderr();
  TestRouter r(
      "Idle -> d :: ToIPSummaryDump(/dev/full, HEADER false) -> MarkIPHeader -> p :: IPPrint(OUTFILE /dev/full)"
      " -> a :: ARPPrint(OUTFILE /dev/full) -> cap :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string packet = "\x45" + std::string(2, '\0') + '\x1c' + std::string(24, '\0');
  for (int i = 0; i < 3; ++i) r.push("d", packet);
  for (const char* element : {"d", "p", "a"}) EXPECT_EQ(r.read(std::string(element) + ".lost"), "3") << element;
  EXPECT_EQ(dynamic_cast<const Capture&>(*r.router().find("cap")).seen().size(), 3u);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("p: /dev/full: No space left on device"), std::string::npos);
}

}  // namespace
}  // namespace headrace
