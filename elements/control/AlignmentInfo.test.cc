#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(AlignmentInfo, TakesWhatClickAlignWrites) {
  TestRouter r("AlignmentInfo(a 4 2, b 4 0 2 1, c); a :: Idle -> b :: Null -> c :: Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
}

TEST(AlignmentInfo, Errors) {
  for (const auto& [arguments, message] : {std::pair("nosuch 4 2", "expected an element's name, got 'nosuch'"),
                                           std::pair("a 4", "expected 'ELEMENT [MODULUS OFFSET ...]'"),
                                           std::pair("a 4 4", "expected MODULUS and a smaller OFFSET"),
                                           std::pair("a 4 x", "expected MODULUS and a smaller OFFSET")}) {
    TestRouter r("AlignmentInfo(" + std::string(arguments) + "); a :: Idle -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
