#pragma once
/// \file
/// The hooks of a shader: the functions that an element calls if the shader has them. A hook whose type is not among
/// those given here does not compile. The build rejects public member functions with any other name, since they could
/// only be misspelled hooks (EmbedHeaders.cmake reads the names below). Helper functions of a shader are private.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "headrace/payload_shader.hh"
#include "headrace/shader_base.hh"

namespace headrace {

/// What a shader is as long as the router runs: what `specialize` returns.
struct ShaderCode {
  std::string members;                  ///< of a struct that is derived from the shader and takes its place
  std::vector<std::string> known = {};  ///< what holds for the shader's members: "offset == 0"

  bool operator==(const ShaderCode&) const = default;
};

/// A member of a shader, as its functions name it, and the value that it has as long as the router runs.
struct KnownMember {
  const char* name;
  std::variant<int32_t, uint32_t, uint64_t> value;
};
/// Code that tells the compiler of a chain what members hold. Name those that change what the shader does: a number that
/// it only compares with costs the same in memory.
inline ShaderCode known_members(std::initializer_list<KnownMember> members) {
  ShaderCode code;
  for (const KnownMember& m : members) {
    const auto text = [](auto value) { return std::to_string(value) + (std::is_signed_v<decltype(value)> ? "" : "u"); };
    code.known.push_back(std::string(m.name) + " == " + std::visit(text, m.value));
  }
  return code;
}

namespace detail {

struct NoOwner {};
template <typename S>
struct OwnerOf {
  using Type = NoOwner;
};
template <typename S>
requires requires { typename S::Owner; }
struct OwnerOf<S> {
  using Type = typename S::Owner;
};

/// The return type of `scan` or `rewrite`; void without them.
template <typename S>
struct FoundOf {
  using Type = void;
};
template <typename S>
requires(reads_payload<S>()) struct FoundOf<S> {
  using Type = FoundBy<S>;
};

/// The type of a member function without its class.
template <typename F>
struct MemberFunction {
  using Type = void;
  static constexpr bool kConst = false;
};
template <typename C, typename R, typename... A>
struct MemberFunction<R (C::*)(A...)> {
  using Type = R(A...);
  static constexpr bool kConst = false;
};
template <typename C, typename R, typename... A>
struct MemberFunction<R (C::*)(A...) const> {
  using Type = R(A...);
  static constexpr bool kConst = true;
};
template <typename C, typename R, typename... A>
struct MemberFunction<R (C::*)(A...) noexcept> : MemberFunction<R (C::*)(A...)> {};
template <typename C, typename R, typename... A>
struct MemberFunction<R (C::*)(A...) const noexcept> : MemberFunction<R (C::*)(A...) const> {};
template <typename R, typename... A>
struct MemberFunction<R (*)(A...)> {
  using Type = R(A...);
  static constexpr bool kConst = true;
};

enum class Const : bool { kNo, kYes };

template <typename F, Const C, typename... Allowed>
inline constexpr bool kFits = (std::is_same_v<typename MemberFunction<F>::Type, Allowed> || ...) &&
                              (MemberFunction<F>::kConst || C == Const::kNo);

}  // namespace detail

/// HOOK(name, how it is declared, whether it must be const, its allowed types).
// clang-format off
#define HEADRACE_SHADER_HOOKS(HOOK)                                                                                   \
  HOOK(configure, "Status configure(Args&) or Status configure(Args&, Owner&)", kNo,                                  \
       Status(Args&), Status(Args&, Owner&))                                                                          \
  HOOK(initialize, "Status initialize(Errors&), with Owner& and Element& as further arguments if wanted", kNo,        \
       Status(Errors&), Status(Errors&, Owner&), Status(Errors&, Owner&, Element&),                                   \
       Status(Errors&, Owner&, ShaderElementBase&), Status(Errors&, Owner&, ShaderElement<S>&))                       \
  HOOK(add_handlers, "void add_handlers(Handlers&), with Owner& and ShaderElement<...>& as further arguments if "     \
       "wanted", kNo,                                                                                                 \
       void(Handlers&), void(Handlers&, Owner&), void(Handlers&, Element&), void(Handlers&, ShaderElementBase&),      \
       void(Handlers&, ShaderElement<S>&), void(Handlers&, Owner&, Element&),                                         \
       void(Handlers&, Owner&, ShaderElementBase&), void(Handlers&, Owner&, ShaderElement<S>&))                       \
  HOOK(note, "std::string note(const Owner&) const", kYes, std::string(const Owner&))                                 \
  HOOK(refresh, "void refresh(const Owner&)", kNo, void(const Owner&))                                                \
  HOOK(mirror, "void mirror(Mirror&) or void mirror(Mirror&, const Owner&)", kNo,                                     \
       void(Mirror&), void(Mirror&, const Owner&))                                                                    \
  HOOK(move, "void move(Offsets&) const", kYes, void(Offsets&))                                                       \
  HOOK(extent, "Extent extent(Anchor) const", kYes, Extent(Anchor))                                                   \
  HOOK(usually_written, "Extent usually_written(Anchor) const", kYes, Extent(Anchor))                                 \
  HOOK(escape, "Next escape(Packet*&, Emitter&) or Next escape(Packet*&, Emitter&, Owner&)", kNo,                     \
       Next(Packet*&, Emitter&), Next(Packet*&, Emitter&, Owner&))                                                    \
  HOOK(shade_batch, "void shade_batch(Packet* const*, int n, Next*, uint64_t* counters) const, with Result* as a "    \
       "further argument if the shader has results", kYes,                                                            \
       void(Packet* const*, int, Next*, uint64_t*), void(Packet* const*, int, Next*, uint64_t*, Result*))             \
  HOOK(prefetch, "HEADRACE_SHADER void prefetch(const auto& p) const", kYes, )                                        \
  HOOK(release, "only beside a type Result, void release(Packet* const*, Results<Result>, int n) const, with Owner& "   \
       "and ShaderElementBase& as further arguments if wanted; with Packet** if it takes packets away", kYes,         \
       void(Packet* const*, Results<Result>, int), void(Packet* const*, Results<Result>, int, Owner&),                    \
       void(Packet* const*, Results<Result>, int, Owner&, ShaderElementBase&),                                          \
       void(Packet**, Results<Result>, int), void(Packet**, Results<Result>, int, Owner&),                                \
       void(Packet**, Results<Result>, int, Owner&, ShaderElementBase&))                                                \
  HOOK(specialize, "ShaderCode specialize() const or ShaderCode specialize(const Owner&) const", kYes,                \
       ShaderCode(), ShaderCode(const Owner&))                                                                        \
  HOOK(payload, "PayloadBytes payload(const PacketBytes&) const", kYes, PayloadBytes(const PacketBytes&))             \
  HOOK(scan_on_cpu, "only beside scan, Found scan_on_cpu(const PayloadBytes&, const Owner&) const or Found "          \
       "scan_on_cpu(const PayloadBytes&, const PacketBytes&, const Owner&) const", kYes,                              \
       Found(const PayloadBytes&, const Owner&), Found(const PayloadBytes&, const PacketBytes&, const Owner&))        \
  HOOK(scan, "Found scan(const Team&, const PayloadBytes&) const or Found scan(const Team&, const PayloadBytes&, "    \
       "const PacketBytes&) const, a template of Team", kYes, )                                                       \
  HOOK(prepare_block, "only beside kBlockBytes, HEADRACE_SHADER static void prepare_block()", kYes, void())            \
  HOOK(about, "only beside rewrite and a type About, HEADRACE_SHADER About about(const auto& p) const", kYes, )        \
  HOOK(rewrite, "Found rewrite(const Team&, PacketEdit&) const, with const About& at the end if the shader has about, " \
       "a template of Team; not beside scan", kYes, )                                                                 \
  HOOK(shade, "HEADRACE_SHADER Next shade(auto& p) const, with const Found& beside scan and rewrite", kYes, )
// clang-format on

namespace detail {

// A member name that both bases have is ambiguous, whatever its type and access. So the expression is invalid if S has
// the hook.
#define HEADRACE_FIND_HOOK(hook, expected, constness, ...)                                 \
  struct Named_##hook {                                                                    \
    int hook;                                                                              \
  };                                                                                       \
  template <typename S>                                                                    \
  struct Both_##hook : S, Named_##hook {};                                                 \
  template <typename S>                                                                    \
  inline constexpr bool kHas_##hook = !requires {                                          \
    &Both_##hook<S>::hook;                                                                 \
  };                                                                                       \
  template <typename S, Const C, typename... Allowed>                                      \
  consteval bool fits_##hook() {                                                           \
    if constexpr (sizeof...(Allowed) == 0) return true;                                    \
    if constexpr (requires { &S::hook; }) return kFits<decltype(&S::hook), C, Allowed...>; \
    return false;                                                                          \
  }
HEADRACE_SHADER_HOOKS(HEADRACE_FIND_HOOK)
#undef HEADRACE_FIND_HOOK

}  // namespace detail

/// Tells which hooks a shader has: `Hooks<S>::refresh` and so on. Using one of these checks all hooks.
template <typename S>
struct Hooks {
  using Owner = typename detail::OwnerOf<S>::Type;
  using Found = typename detail::FoundOf<S>::Type;
  using Result = typename detail::ResultOf<S>::Type;

#define HEADRACE_CHECK_HOOK(hook, expected, constness, ...)                                             \
  static constexpr bool hook = detail::kHas_##hook<S>;                                                  \
  static_assert(!hook || detail::fits_##hook<S, detail::Const::constness __VA_OPT__(, ) __VA_ARGS__>(), \
                "wrong hook of a shader, " #hook ": " expected);
  HEADRACE_SHADER_HOOKS(HEADRACE_CHECK_HOOK)
#undef HEADRACE_CHECK_HOOK

  static_assert(release == detail::ResultOf<S>::kExists, "a shader has either both of Result and release, or none");
  static_assert(std::is_trivially_copyable_v<Result> && alignof(Result) <= 8, "a Result is copied byte by byte");
  static_assert(shade, "a shader needs shade: HEADRACE_SHADER Next shade(auto& p) const");
  static_assert(!scan || scans_payload<S>(),
                "wrong hook of a shader, scan: Found scan(const Team&, const PayloadBytes&) const or Found scan(const "
                "Team&, const PayloadBytes&, const PacketBytes&) const, a template of Team");
  static_assert(
      !rewrite || rewrites_packet<S>(),
      "wrong hook of a shader, rewrite: Found rewrite(const Team&, PacketEdit&) const, or with const About& at the "
      "end beside about, a template of Team");
  static_assert(
      about == requires { typename S::About; } && (!about || rewrite),
      "a shader has either both of About and about, beside rewrite, or none");
  static_assert(!S::kSerial || rewrite, "only rewrite is serial");
  static_assert(prepare_block == (S::kBlockBytes != 0), "a shader has both of kBlockBytes and prepare_block, or none");
  static_assert(!rewrite || !scan, "a shader has at most one of scan and rewrite");
  static_assert(!rewrite || !detail::kUsesBytes<S>,
                "beside rewrite, shade uses annotations and header positions only: bytes are for rewrite");
  static_assert(!rewrite || move, "a shader that rewrites packets tells by move where headers lie then");
};

}  // namespace headrace
