#include "elements/control/StaticThreadSched.hh"

#include "headrace/router.hh"

namespace headrace {

Status StaticThreadSched::configure(Args& args) {
  std::vector<std::string> entries;
  args.consume_rest(entries);
  Status status = args.complete();
  for (const std::string& entry : entries) {
    std::string name;
    int thread = -1;
    Args words = Args::from_words(entry, args.scope(), args.errors());
    if (!words.read_mp("ELEMENT", name).read_mp("THREAD", thread).complete()) {
      status = Status::failed();
      continue;
    }
    if (const int threads = router().threads(); thread < -1 || thread >= threads) {
      args.errors().warning("thread preference {} out of range", thread);
      thread = thread < 0 ? -1 : 0;
    }
    if (!router().set_home_thread(name, this, thread))
      status &= args.errors().error("'{}' does not name an element", name);
  }
  return status;
}

}  // namespace headrace
