#include "src/io/input_file.hh"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace headrace::io {

namespace {

constexpr size_t kBufferSize = 64 * 1024;

}  // namespace

InputFile::Opened InputFile::open(const std::string& name, Errors& errors, bool may_miss) {
  close();
  const bool standard = name.empty() || name == "-";
  name_ = standard ? "<stdin>" : name;
  line_ = 0;
  size_ = -1;
  if (standard) {
    reader_.open_stdin();
  } else if (const int error = reader_.open(name)) {
    const bool missing = error == ENOENT;
    if (!missing || !may_miss) (void)errors.error("{}: {}", name_, std::strerror(error));
    return missing ? Opened::kMissing : Opened::kFailed;
  } else {
    size_ = reader_.stored_size();
  }
  source_ = Source::kFile;
  const int before = errors.error_count();
  if (!fill(errors)) {
    close();
    if (errors.error_count() > before) return Opened::kFailed;
    if (!may_miss) (void)errors.error("{}: empty file", name_);
    return Opened::kMissing;
  }
  return Opened::kYes;
}

void InputFile::open_text(std::string text) {
  close();
  name_ = "<data>";
  line_ = 0;
  size_ = static_cast<int64_t>(text.size());
  buffer_ = std::move(text);
  source_ = Source::kText;
}

void InputFile::close() {
  reader_.close();
  source_ = Source::kNone;
  buffer_.clear();
  used_ = 0;
  position_ = 0;
}

bool InputFile::fill(Errors& errors) {
  if (source_ != Source::kFile) return false;
  buffer_.resize(kBufferSize);
  used_ = 0;
  const size_t got = reader_.read(buffer_.data(), buffer_.size());
  buffer_.resize(got);
  if (got == 0 && !reader_.fault().empty()) {
    (void)errors.error("{}: {}", name_, reader_.fault());
    source_ = Source::kNone;
  }
  return got > 0;
}

size_t InputFile::read_some(void* to, size_t n, Errors& errors) {
  if (used_ == buffer_.size() && !fill(errors)) return 0;
  n = std::min(n, buffer_.size() - used_);
  std::memcpy(to, buffer_.data() + used_, n);
  used_ += n;
  position_ += n;
  return n;
}

size_t InputFile::read(void* to, size_t n, Errors& errors) {
  size_t done = 0;
  while (done < n) {
    const size_t got = read_some(static_cast<uint8_t*>(to) + done, n - done, errors);
    if (got == 0) break;
    done += got;
  }
  return done;
}

bool InputFile::read_all(void* to, size_t n, Errors& errors, size_t* short_by) {
  const size_t got = read(to, n, errors);
  if (short_by) *short_by = got == 0 ? 0 : n - got;
  return got == n;
}

bool InputFile::skip(uint64_t n, Errors& errors) {
  while (n > 0) {
    if (used_ == buffer_.size() && !fill(errors)) return false;
    const size_t part = static_cast<size_t>(std::min<uint64_t>(n, buffer_.size() - used_));
    used_ += part;
    position_ += part;
    n -= part;
  }
  return true;
}

bool InputFile::read_line(std::string& line, Errors& errors) {
  line.clear();
  bool any = false;
  for (;;) {
    if (used_ == buffer_.size() && !fill(errors)) break;
    any = true;
    const size_t end = buffer_.find_first_of("\r\n", used_);
    const size_t part = std::min(end, buffer_.size()) - used_;
    line.append(buffer_, used_, part);
    used_ += part;
    position_ += part;
    if (end == std::string::npos) continue;
    const bool cr = buffer_[used_] == '\r';
    ++used_;
    ++position_;
    if (cr && (used_ < buffer_.size() || fill(errors)) && buffer_[used_] == '\n') {
      ++used_;
      ++position_;
    }
    break;
  }
  if (any) ++line_;
  return any;
}

Status InputFile::seek(uint64_t position, Errors& errors) {
  if (!is_open()) return errors.error("{}: not open", name_);
  if (position >= position_) {
    if (!skip(position - position_, errors)) return errors.error("FILEPOS out of range");
    return {};
  }
  if (source_ == Source::kText) {
    used_ = position;
  } else {
    if (!reader_.seek(position)) return errors.error("{}: cannot go back in this file", name_);
    buffer_.clear();
    used_ = 0;
  }
  position_ = position;
  return {};
}

void InputFile::add_handlers(Handlers& handlers) {
  handlers.read(
      "filename", [this] { return name_; }, Handler::kCalm);
  handlers.read("filesize", [this] { return size_ < 0 ? std::string("-") : std::to_string(size_); });
  handlers.read("filepos", [this] { return std::to_string(position_); });
  handlers.write("filepos", [this](const std::string& text, Errors& errors) {
    uint64_t position;
    if (!parse_argument(text, position, ArgContext())) return errors.error("argument must be file position");
    return seek(position, errors);
  });
}

}  // namespace headrace::io
