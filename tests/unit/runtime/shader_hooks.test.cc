// A shader's hooks and flags: a right one is called, a wrong one does not build.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <headrace/shader.hh>

#include "support/element_test.hh"
#include "support/source_dir.hh"
#include "support/temporary_file.hh"
#include "unit/offload/offload_fixture.hh"

namespace headrace {

/// Its flags say no, which must be the same as saying nothing.
struct HookFlagsOff : Shader<HookFlagsOff> {
  static constexpr auto kRegions = regions(Read{ip4::ttl});
  static constexpr bool kChecksHeaders = false;
  static constexpr bool kKeepsOwner = false;
  static constexpr bool kLiveReconfigure = false;
  struct Owner {};

  Status configure(Args& args, Owner&) { return args.complete(); }
  HEADRACE_SHADER Next shade(auto& p) const { return p.get(ip4::ttl) > 0 ? 0 : kDrop; }
};
HEADRACE_ELEMENT(HookFlagsOff)

namespace testing {
namespace {

TEST(ShaderHooks, AFlagThatIsFalseIsOff) {
  TestRouter r("Idle -> a :: HookFlagsOff -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_FALSE(r.router().find("a")->can_live_reconfigure());
  r.push("a", from_hex("4500"));  // no header is marked
  EXPECT_EQ(capture(r, "c").seen().size(), 0u);
}

std::string shader_with(const std::string& name, const std::string& members) {
  return "struct " + name + " : Shader<" + name +
         "> {\n  static constexpr auto kRegions = regions(Read{ip4::ttl}, Read{Span<Anchor::kData, 0, 8>{}});\n"
         "  struct Owner {};\n  HEADRACE_SHADER Next shade(auto&) const { return 0; }\n  " +
         members + "\n};\nHEADRACE_ELEMENT(" + name + ")\n";
}

std::string header_with(const std::string& shaders) {
  return "#include \"headrace/shader.hh\"\nnamespace headrace {\n" + shaders + "}\n";
}

/// True if the compiler says `message` about shader `name`.
bool complains(const std::string& messages, const std::string& name, const std::string& message) {
  constexpr std::string_view kBegin = "In instantiation of";
  for (size_t at = messages.find(kBegin), end; at != std::string::npos; at = end) {
    end = messages.find(kBegin, at + 1);
    const std::string about = messages.substr(at, end - at);
    const bool names = about.find(name + ">") != std::string::npos || about.find(name + "]") != std::string::npos;
    if (names && about.find(message) != std::string::npos) return true;
  }
  return false;
}

TEST(ShaderHooks, AHookOfAWrongTypeDoesNotCompile) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  const char* const right =
      "Status configure(Args&, Owner&); Status initialize(Errors&, Owner&, Element&);"
      "void add_handlers(Handlers&, Owner&, ShaderElement<Mine>&); std::string note(const Owner&) const;"
      "void refresh(const Owner&); void mirror(Mirror&, const Owner&); void move(Offsets&) const;"
      "Extent extent(Anchor) const; Next escape(Packet*&, Emitter&, Owner&) const;"
      "void shade_batch(Packet* const*, int, Next*, uint64_t*) const;";
  EXPECT_EQ(compile_text(header_with(shader_with("Mine", right)), false), "");
  const struct {
    const char *member, *expected;
  } cases[] = {
      {"bool configure(Args&);", "configure: Status configure(Args&)"},
      {"Status initialize();", "initialize: Status initialize(Errors&)"},
      {"void add_handlers(Handlers&, int);", "add_handlers: void add_handlers(Handlers&)"},
      {"std::string note() const;", "note: std::string note(const Owner&) const"},
      {"void refresh();", "refresh: void refresh(const Owner&)"},
      {"void mirror(const Owner&, Mirror&);", "mirror: void mirror(Mirror&)"},
      {"void move(Offsets&);", "move: void move(Offsets&) const"},
      {"Offsets move(Offsets) const;", "move: void move(Offsets&) const"},
      {"Extent extent() const;", "extent: Extent extent(Anchor) const"},
      {"Next escape(Packet*, Emitter&);", "escape: Next escape(Packet*&, Emitter&)"},
      {"void shade_batch(Packet**, int, Next*) const;", "shade_batch: void shade_batch(Packet* const*, int"},
      {"int note = 0;", "note: std::string note(const Owner&) const"},
      {"int scan(const PayloadBytes&) const;", "scan: Found scan(const Team&, const PayloadBytes&"},
      {"PayloadBytes payload(const Packet&) const;", "payload: PayloadBytes payload(const PacketBytes&) const"},
      {"int scan_on_cpu(const PayloadBytes&, const Owner&) const;", "scan_on_cpu: only beside scan"},
      {"private: void refresh(const Owner&);", "refresh: void refresh(const Owner&)"},
      {"int kKeepsOwner = 1;", "kKeepsOwner"},
      {"static constexpr bool kConfigurePhase() { return true; } using Owners = int; template <typename T> void "
       "refresh(T);",
       "refresh: void refresh(const Owner&)"},
  };
  std::string shaders;
  for (size_t i = 0; i < std::size(cases); ++i) shaders += shader_with("Mine" + std::to_string(i), cases[i].member);
  const std::string messages = compile_text(header_with(shaders), false);
  for (size_t i = 0; i < std::size(cases); ++i)
    EXPECT_TRUE(complains(messages, "Mine" + std::to_string(i), cases[i].expected)) << cases[i].member;
  if (HasFailure()) ADD_FAILURE() << messages;
}

/// What the build says of an element's header: nothing if all is well.
std::string embed(const std::string& text) {
  TemporaryFile header(text, ".hh"), list(header.path() + "\n", ".list"), output("", ".cc");
  const std::string command = "cmake -DOUTPUT=" + output.path() + " -DBASE=/tmp -DPREFIX= -DLIST=" + list.path() +
                              " -DHOOKS=" + kSourceDir + "/include/headrace/shader_hooks.hh -P " + kSourceDir +
                              "/cmake/EmbedHeaders.cmake 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string messages;
  std::array<char, 4096> piece;
  while (const size_t n = fread(piece.data(), 1, piece.size(), pipe)) messages.append(piece.data(), n);
  pclose(pipe);
  return messages;
}

TEST(ShaderHooks, AMisspelledHookDoesNotBuild) {
  if (!std::ifstream(std::string(kSourceDir) + "/cmake/EmbedHeaders.cmake"))
    GTEST_SKIP() << "the source tree is not on this machine";
  const char* const right =
      "Status configure(Args& args);  // not a function: add_handler(x)\n"
      "  enum { kOther };\n  uint32_t table[4] = {};\n  PatternView view{};\n"
      "  void add_handlers(Handlers& handlers, Owner& owner, Element& element);\n"
      "  Extent extent(Anchor a) const { return {offset(a), 4}; }\n"
      "  static constexpr auto kCounters = counters(reason(\"a; } b\"), counter(\"'\"));\n"
      " private:\n  HEADRACE_SHADER int offset(Anchor) const { return 0; }\n";
  EXPECT_EQ(embed(header_with(shader_with("Mine", right))), "");
  const struct {
    const char *member, *message;
  } cases[] = {
      {"void add_handler(Handlers& handlers);", "'add_handler' is not a hook of a shader"},
      {"Next escapes(Packet*& p, Emitter& emit) const { return 0; }", "'escapes' is not a hook of a shader"},
      {"void\n  mirrors(Mirror& mirror,\n const Owner& owner);", "'mirrors' is not a hook of a shader"},
      {"template <typename Team> HEADRACE_SHADER auto scans(const Team& t, const PayloadBytes& p) const { return t; }",
       "'scans' is not a hook of a shader"},
      {"static constexpr bool kKeepOwner = true;", "'kKeepOwner' is not a flag of a shader"},
      {"static constexpr Processing kProcesing{\"h/h\"};", "'kProcesing' is not a flag of a shader"},
      {"static constexpr auto kCounter = counters(reason(\"x\"));", "'kCounter' is not a flag of a shader"},
      {"enum { kA };\n private:\n  int helper();\n public:\n  void refreshes(const Owner& owner);",
       "'refreshes' is not a hook of a shader"},
  };
  for (const auto& c : cases) {
    const std::string messages = embed(header_with(shader_with("Mine", c.member)));
    EXPECT_NE(messages.find(c.message), std::string::npos) << c.member << "\n" << messages;
  }
  EXPECT_EQ(embed("struct Helper {\n  void add_handler();\n};\n"), "");
}

}  // namespace
}  // namespace testing
}  // namespace headrace
