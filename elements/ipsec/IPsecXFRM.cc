#include "elements/ipsec/IPsecXFRM.hh"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "elements/ipsec/xfrm_follower.hh"
#include "headrace/chatter.hh"
#include "headrace/control_watch.hh"
#include "headrace/router.hh"
#include "src/io/linux/xfrm_socket.hh"

namespace headrace {

/// What the control thread works on. It may still hold it when the element goes.
class IPsecXFRM::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(IPsecXFRM& element)
      : follower_(*element.database_, element.own_,
                  [name = element.name()](const std::string& line) { chatter("{}: {}", name, line); }),
        watch_(control_watch(element.router())) {}
  ~Session() {
    if (clock_ >= 0) ::close(clock_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status start(Errors& errors) {
    constexpr itimerspec kEachSecond{{1, 0}, {1, 0}};
    if (!socket_.open(errors)) return Status::failed();
    clock_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (clock_ < 0 || timerfd_settime(clock_, 0, &kEachSecond, nullptr) < 0)
      return errors.error("timerfd: {}", std::strerror(errno));
    if (!resync(errors)) return Status::failed();
    watch_(socket_.fd(), [weak = weak_from_this()] {
      if (const auto session = weak.lock()) session->read();
    });
    watch_(clock_, [weak = weak_from_this()] {
      if (const auto session = weak.lock()) session->report();
    });
    started_ = true;
    return {};
  }

  /// The element is going, and its database with it.
  void stop() {
    if (started_) {
      watch_(socket_.fd(), nullptr);
      watch_(clock_, nullptr);
    }
    const std::lock_guard hold(mutex_);
    stopped_ = true;
  }

  bool resync(Errors& errors) {
    const std::lock_guard hold(mutex_);
    return dump(errors);
  }

  std::string counts() {
    const std::lock_guard hold(mutex_);
    return follower_.counts() + fmt::format("{} times all was asked for anew\n", resynchronizations_);
  }
  std::string refused() {
    const std::lock_guard hold(mutex_);
    return follower_.refused();
  }

 private:
  bool dump(Errors& errors) {
    follower_.begin_dump();
    // An answer that is not whole must not make anything go.
    if (!socket_.dump([this](io::XfrmMessage& m) { follower_.take(m); }, errors)) {
      follower_.settle();
      return false;
    }
    follower_.end_dump();
    return true;
  }

  void read() {
    const std::lock_guard hold(mutex_);
    if (stopped_) return;
    const bool whole = socket_.read([this](io::XfrmMessage& m) { follower_.take(m); });
    follower_.settle();
    if (!whole) lost_ = true;
    if (lost_) catch_up();
  }

  /// Messages were lost. What could not be asked for now is asked for a second later.
  void catch_up() {
    ++resynchronizations_;
    Errors errors;
    lost_ = !dump(errors);
  }

  void report() {
    uint64_t times = 0;
    (void)::read(clock_, &times, sizeof times);
    const std::lock_guard hold(mutex_);
    if (stopped_) return;
    if (lost_) catch_up();
    // An association may have gone meanwhile; then the kernel answers that there is none.
    follower_.report([this](std::span<const uint8_t> message) { (void)socket_.send(message); });
  }

  std::mutex mutex_;
  XfrmFollower follower_;
  io::XfrmSocket socket_;
  const std::function<void(int, std::function<void()>)> watch_;
  int clock_ = -1;
  bool started_ = false, stopped_ = false, lost_ = false;
  uint64_t resynchronizations_ = 0;
};

IPsecXFRM::IPsecXFRM() = default;
IPsecXFRM::~IPsecXFRM() {
  if (session_) session_->stop();
}

Status IPsecXFRM::configure(Args& args) {
  std::vector<std::string> addresses;
  if (!args.read_mp("DATABASE", database_).consume_rest(addresses).complete()) return Status::failed();
  Status status;
  for (const std::string& text : addresses) {
    const ArgContext context(args.scope());
    IpAddress v4;
    Ip6Address v6;
    if (parse_argument(text, v4, context)) {
      own_.push_back(Ip6Address::v4_mapped(v4));
    } else if (parse_argument(text, v6, context)) {
      own_.push_back(v6);
    } else {
      status &= args.errors().error("'{}': expected an IPv4 or IPv6 address", text);
    }
  }
  if (addresses.empty()) status &= args.errors().error("expected an ADDRESS of the gateway outside");
  return status;
}

Status IPsecXFRM::initialize(Errors& errors) {
  session_ = std::make_shared<Session>(*this);
  return session_->start(errors);
}

void IPsecXFRM::add_handlers(Handlers& handlers) {
  handlers.read("counts", [this] { return session_ ? session_->counts() : ""; });
  handlers.read("refused", [this] { return session_ ? session_->refused() : ""; });
  handlers.write(
      "resync",
      [this](const std::string&, Errors& errors) {
        return session_ && session_->resync(errors) ? Status() : Status::failed();
      },
      Handler::kThreadSafe);
}

std::string IPsecXFRM::note() const { return "keys of the kernel"; }

HEADRACE_ELEMENT(IPsecXFRM)

}  // namespace headrace
