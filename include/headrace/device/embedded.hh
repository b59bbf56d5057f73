#pragma once
/// \file
/// The texts of the headers that the build embeds in the binary: every element's header, the headers of this folder and
/// the table views. `headrace elements NAME` prints an element's page from them, and device programs are compiled from
/// them, so no source tree has to be installed.

#include <string_view>
#include <vector>

namespace headrace {

/// One header. Both members live as long as the process, or as the loaded module that contains them.
struct EmbeddedText {
  /// As an #include names it: "headrace/shader.hh", "tables/lpm4/lpm4_view.hh", "elements/ip/DecIPTTL.hh".
  std::string_view path;
  std::string_view text;
};

/// Registers a header; generated code calls this. If a path is registered twice, the later text counts, so an element
/// loaded at run time replaces a built-in one of the same name. Safe before main() and from several threads.
void register_embedded_header(const char* path, const char* text);

/// The header at exactly `path`; path and text are empty if there is none.
EmbeddedText find_embedded_header(std::string_view path);

/// The header named `name`.hh in any folder (for example "DecIPTTL"); path and text are empty if there is none.
EmbeddedText find_embedded_element(std::string_view name);

/// All headers, ordered by path.
std::vector<EmbeddedText> embedded_headers();

/// A static object of this type registers a list of headers; each generated source contains one.
class EmbeddedHeaders {
 public:
  struct Entry {
    const char* path;
    const char* text;
  };
  template <std::size_t N>
  explicit EmbeddedHeaders(const Entry (&entries)[N]) {
    for (const Entry& entry : entries) register_embedded_header(entry.path, entry.text);
  }
};

}  // namespace headrace
