#include <headrace/device/embedded.hh>
#include <map>
#include <mutex>

namespace headrace {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string_view, std::string_view> texts;
};

// Built on first use: static objects of other files register before main(), in no known order.
Registry& embedded_texts() {
  static Registry instance;
  return instance;
}

}  // namespace

void register_embedded_header(const char* path, const char* text) {
  Registry& all = embedded_texts();
  const std::lock_guard lock(all.mutex);
  all.texts.insert_or_assign(path, text);
}

EmbeddedText find_embedded_header(std::string_view path) {
  Registry& all = embedded_texts();
  const std::lock_guard lock(all.mutex);
  const auto found = all.texts.find(path);
  return found == all.texts.end() ? EmbeddedText{} : EmbeddedText{found->first, found->second};
}

EmbeddedText find_embedded_element(std::string_view name) {
  Registry& all = embedded_texts();
  const std::lock_guard lock(all.mutex);
  for (const auto& [path, text] : all.texts) {
    if (!path.ends_with(".hh")) continue;
    std::string_view stem = path.substr(0, path.size() - 3);
    stem.remove_prefix(stem.rfind('/') + 1);  // npos + 1 is 0: a path without a folder
    if (stem == name) return {path, text};
  }
  return {};
}

std::vector<EmbeddedText> embedded_headers() {
  Registry& all = embedded_texts();
  const std::lock_guard lock(all.mutex);
  std::vector<EmbeddedText> result;
  result.reserve(all.texts.size());
  for (const auto& [path, text] : all.texts) result.push_back({path, text});
  return result;
}

}  // namespace headrace
