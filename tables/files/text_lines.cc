#include "tables/files/text_lines.hh"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tables/files/byte_reader.hh"

namespace headrace {

namespace {

/// Cuts a stream of bytes into lines.
class LineSplitter {
 public:
  LineSplitter(const std::function<void(std::string_view)>& consumer, size_t longest)
      : consumer_(consumer), longest_(longest) {}

  void feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const size_t end = bytes.find('\n');
      const std::string_view piece = bytes.substr(0, end);
      if (end != std::string_view::npos && rest_.empty()) {
        consumer_(piece);
      } else {
        // One byte above the bound is kept, for the consumer to see that the line is too long.
        rest_.append(piece.substr(0, longest_ + 1 - std::min(rest_.size(), longest_ + 1)));
        if (end == std::string_view::npos) return;
        finish();
      }
      bytes.remove_prefix(end + 1);
    }
  }

  /// Hands over the last line if no newline ended it.
  void finish() {
    if (!rest_.empty()) consumer_(rest_);
    rest_.clear();
  }

 private:
  const std::function<void(std::string_view)>& consumer_;
  const size_t longest_;
  std::string rest_;
};

}  // namespace

std::string read_text_lines(const std::string& path, const std::function<void(std::string_view)>& consumer,
                            size_t longest) {
  ByteReader file;
  if (const int error = file.open(path)) return std::strerror(error);
  LineSplitter lines(consumer, longest);
  std::vector<char> buffer(size_t{1} << 16);
  while (const size_t got = file.read(buffer.data(), buffer.size())) lines.feed({buffer.data(), got});
  if (!file.fault().empty()) return file.fault();
  lines.finish();
  return {};
}

}  // namespace headrace
