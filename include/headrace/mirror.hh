#pragma once
/// \file
/// How a table gets to a device. A shader's views hold host addresses; a mirror replaces them by those of device
/// copies.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace headrace {

/// Records which pages of an array changed, and when, so that copies of it can be updated with little more than what
/// changed. Whoever calls mark() must exclude readers; several readers may run at a time.
class ChangedPages {
 public:
  static constexpr size_t kPage = 256;

  /// \param secret copies of what has changed since are erased as soon as nothing uses them, and before their memory is
  /// freed
  explicit ChangedPages(size_t bytes, bool secret = false)
      : secret_(secret),
        pages_((bytes + kPage - 1) / kPage),
        when_(new uint64_t[pages_ + 1]()),
        group_when_(new uint64_t[pages_ / kGroup + 1]()),
        id_(++last_id_) {}

  /// Bytes [begin, end) have changed, or are about to.
  void mark(size_t begin, size_t end) {
    if (begin >= end) return;
    last_ = now_.load(std::memory_order_relaxed);
    const size_t last = (end - 1) / kPage;
    for (size_t page = begin / kPage; page <= last; ++page) when_[page] = last_;
    for (size_t group = begin / kPage / kGroup; group <= last / kGroup; ++group) group_when_[group] = last_;
  }
  /// Unique among all objects that ever existed, because memory may be reused.
  uint64_t id() const { return id_; }
  bool secret() const { return secret_; }
  /// Begins a new moment and returns the one that ended. What was marked until now is not later than that one.
  uint64_t advance() { return now_.fetch_add(1, std::memory_order_relaxed); }
  /// True if something was marked after `moment`.
  bool any_since(uint64_t moment) const { return last_ > moment; }
  /// Calls `f(begin, end)`, in bytes, for each run of pages marked after `moment`; the last run may extend past the
  /// array.
  template <typename Function>
  void each_since(uint64_t moment, Function&& f) const {
    if (!any_since(moment)) return;
    for (size_t page = next_marked(0, moment); page < pages_;) {
      const size_t begin = page;
      while (page < pages_ && when_[page] > moment) ++page;
      f(begin * kPage, page * kPage);
      page = next_marked(page, moment);
    }
  }

 private:
  /// Pages are looked through by groups, because few of the millions of pages of a large table change at a time.
  static constexpr size_t kGroup = 64;

  size_t next_marked(size_t page, uint64_t moment) const {
    while (page < pages_) {
      if (group_when_[page / kGroup] <= moment)
        page = (page / kGroup + 1) * kGroup;
      else if (when_[page] > moment)
        return page;
      else
        ++page;
    }
    return page;
  }

  static inline std::atomic<uint64_t> last_id_{0};
  const bool secret_;
  size_t pages_;
  std::unique_ptr<uint64_t[]> when_, group_when_;
  uint64_t id_;
  uint64_t last_ = 0;  // the moment of the last mark()
  std::atomic<uint64_t> now_{1};
};

/// Receives what a shader points to, and returns where the device has its copy. A shader with table views has a member
///
///     void mirror(Mirror& m, const Owner& owner);   // or mirror(Mirror&)
///
/// that replaces its addresses by those of the copies. It is called on a copy of the shader whenever the table may have
/// changed, by one thread at a time. It must keep writers of the table out while it calls array().
class Mirror {
 public:
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  /// `count` objects that stay in place as long as the router lives, or until they are replaced as a whole.
  /// \param changes records which of them changed; without it they are compared with the last copy, which suits small
  /// arrays
  template <typename T>
  const T* array(const T* objects, size_t count, ChangedPages* changes = nullptr) {
    static_assert(std::is_trivially_copyable_v<T> || std::is_void_v<T>);
    return reinterpret_cast<const T*>(place(objects, count * sizeof(T), changes));
  }
  const void* bytes(const void* objects, size_t size, ChangedPages* changes = nullptr) {
    return reinterpret_cast<const void*>(place(objects, size, changes));
  }
  /// One small object, made of numbers and addresses from this mirror. It need not outlive the call.
  template <typename T>
  const T* object(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    return reinterpret_cast<const T*>(put(&value, sizeof value));
  }

 protected:
  Mirror() = default;
  ~Mirror() = default;

 private:
  virtual uint64_t place(const void* objects, size_t size, ChangedPages* changes) = 0;
  virtual uint64_t put(const void* value, size_t size) = 0;
};

}  // namespace headrace
