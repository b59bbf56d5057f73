#pragma once
/// \file
/// The texts of headers that the build puts into the binary: every element's header, the headers of this folder and
/// the views of the tables. `headrace elements NAME` prints an element's page from them, and programs for a device are
/// compiled from them where no source tree is installed.

#include <string_view>
#include <vector>

namespace headrace {

/// One header. Both members live as long as the process, or as the loaded module that brought them.
struct EmbeddedText {
  /// As an #include names it: "headrace/shader.hh", "tables/lpm4/lpm4_view.hh", "elements/ip/DecIPTTL.hh".
  std::string_view path;
  std::string_view text;
};

/// Makes a header known; the build generates the calls. A path registered twice keeps the later text, so that an
/// element loaded at run time wins over a built-in one of the same name. Safe before main() and from several threads.
void register_embedded_header(const char* path, const char* text);

/// The header at exactly `path`, or an empty text and path when there is none.
EmbeddedText find_embedded_header(std::string_view path);

/// The header that is called `name`.hh in any folder ("DecIPTTL"), or an empty text and path when there is none.
EmbeddedText find_embedded_element(std::string_view name);

/// All headers, ordered by path.
std::vector<EmbeddedText> embedded_headers();

/// A static object of this type registers a list of headers; the generated sources hold one each.
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
