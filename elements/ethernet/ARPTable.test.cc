#include "elements/ethernet/neighbor_table.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(ARPTable, OfEntriesRenewedInOneMillisecondTheLastIsListedFirst) {
  constexpr int64_t kNow = 200'000'000;
  const EtherAddress ether({2, 1, 0, 0, 0, 1});
  const IpAddress first = IpAddress::from_octets(1, 0, 0, 1), second = IpAddress::from_octets(1, 0, 0, 2);
  ArpTable table;
  ArpTable::Limits limits;
  limits.timeout = Interval::from_ms(100);
  table.set_limits(limits);
  table.insert(first, ether, 0);
  table.insert(second, ether, 1);
  // Both have timed out, and packets want them.
  ASSERT_EQ(table.append(first, Packet::make("x", 1), kNow), ArpTable::Append::kAsk);
  ASSERT_EQ(table.append(second, Packet::make("y", 1), kNow + 5), ArpTable::Append::kAsk);
  EXPECT_EQ(table.unparse(kNow + 10),
            "1.0.0.2 0 02-01-00-00-00-01 0.100000\n"
            "1.0.0.1 0 02-01-00-00-00-01 0.100000\n");
}

}  // namespace
}  // namespace headrace::testing
