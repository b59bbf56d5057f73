#include "elements/standard/Clipboard.hh"

#include <algorithm>
#include <cstring>

#include "headrace/packet.hh"

namespace headrace {

Status Clipboard::configure(Args& args) {
  std::vector<std::string> texts;
  if (!args.consume_rest(texts).complete()) return Status::failed();
  Status status;
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string& text = texts[i];
    const size_t slash = text.find('/');
    Range range{};
    const Between length{0u, Packet::kMaxLength};
    if (slash == std::string::npos || !length.parse(text.substr(0, slash), range.offset, ArgContext()) ||
        !length.parse(text.substr(slash + 1), range.length, ArgContext())) {
      status &= args.errors().error("range {}: expected OFFSET/LENGTH, got '{}'", i + 1, text);
      continue;
    }
    ranges_.push_back(range);
    size_ += range.length;
    needed_ = std::max(needed_, range.offset + range.length);
  }
  if (texts.empty()) return args.errors().error("expected OFFSET/LENGTH");
  for (int i = 0; i < memory_.size(); ++i) memory_[i].bytes.resize(size_);
  return status;
}

void Clipboard::copy(const Packet& p) {
  if (p.length() < needed_) return;
  Memory& memory = memory_.local();
  uint8_t* to = memory.bytes.data();
  for (const Range& r : ranges_) {
    std::memcpy(to, p.data() + r.offset, r.length);
    to += r.length;
  }
  memory.filled = true;
}

void Clipboard::paste(Packet& p) {
  const Memory& memory = memory_.local();
  if (p.length() < needed_ || !memory.filled) return;
  const uint8_t* from = memory.bytes.data();
  for (const Range& r : ranges_) {
    std::memcpy(p.data() + r.offset, from, r.length);
    from += r.length;
  }
}

void Clipboard::push(int port, Batch& batch) {
  for (Packet* p : batch) port == 0 ? copy(*p) : paste(*p);
  output(port).push(batch);
}

int Clipboard::pull(int port, Batch& batch, int max) {
  const int n = input(port).pull(batch, max);
  for (int i = batch.size() - n; i < batch.size(); ++i) port == 0 ? copy(*batch[i]) : paste(*batch[i]);
  return n;
}

}  // namespace headrace
