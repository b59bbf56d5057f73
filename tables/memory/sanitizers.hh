#pragma once
/// \file
/// Whether this is built with a sanitizer that must be told of.

namespace headrace {

/// ThreadSanitizer takes words that are loaded together, in one register, for races with stores of one of them.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace headrace
