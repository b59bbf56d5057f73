#include "elements/ip/icmp_names.hh"

#include "headrace/args.hh"

namespace headrace {

namespace {

struct TypeName {
  int type;
  std::string_view name;
};
constexpr TypeName kTypes[] = {
    {0, "echo-reply"},
    {3, "unreachable"},
    {4, "sourcequench"},
    {5, "redirect"},
    {8, "echo"},
    {9, "routeradvert"},
    {10, "routersolicit"},
    {11, "timeexceeded"},
    {12, "parameterproblem"},
    {13, "timestamp"},
    {14, "timestamp-reply"},
    {15, "inforeq"},
    {16, "inforeq-reply"},
    {17, "maskreq"},
    {18, "maskreq-reply"},
};

struct CodeName {
  int type;
  int code;
  std::string_view name;
};
constexpr CodeName kCodes[] = {
    {3, 0, "net"},
    {3, 1, "host"},
    {3, 2, "protocol"},
    {3, 3, "port"},
    {3, 4, "needfrag"},
    {3, 5, "srcroutefail"},
    {3, 6, "netunknown"},
    {3, 7, "hostunknown"},
    {3, 8, "isolated"},
    {3, 9, "netprohibited"},
    {3, 10, "hostprohibited"},
    {3, 11, "tosnet"},
    {3, 12, "toshost"},
    {3, 13, "filterprohibited"},
    {3, 14, "hostprecedence"},
    {3, 15, "precedencecutoff"},
    {5, 0, "net"},
    {5, 1, "host"},
    {5, 2, "tosnet"},
    {5, 3, "toshost"},
    {11, 0, "transit"},
    {11, 1, "reassembly"},
    {12, 0, "erroratptr"},
    {12, 1, "missingopt"},
    {12, 2, "length"},
};

std::optional<int> find_number(std::string_view text) {
  uint8_t number;
  if (!parse_argument(text, number, ArgContext())) return std::nullopt;
  return number;
}

}  // namespace

std::string_view icmp_type_name(int type) {
  for (const TypeName& t : kTypes)
    if (t.type == type) return t.name;
  return {};
}

std::string_view icmp_code_name(int type, int code) {
  for (const CodeName& c : kCodes)
    if (c.type == type && c.code == code) return c.name;
  return {};
}

std::optional<int> find_icmp_type(std::string_view name) {
  for (const TypeName& t : kTypes)
    if (t.name == name) return t.type;
  return find_number(name);
}

std::optional<int> find_icmp_code(int type, std::string_view name) {
  for (const CodeName& c : kCodes)
    if (c.type == type && c.name == name) return c.code;
  return find_number(name);
}

bool is_icmp_error(int type) { return type == 3 || type == 4 || type == 5 || type == 11 || type == 12; }

}  // namespace headrace
