#include "elements/devices/ToDump.hh"

#include <cstring>

#include "headrace/chatter.hh"
#include "headrace/router.hh"
#include "src/io/pcap/link_type.hh"

namespace headrace {

Status ToDump::configure(Args& args) {
  std::string encap;
  bool unbuffered = false, encap_from = false;
  std::optional<bool> pcapng;
  options_.snap_length = 2000;
  args.read_mp("FILENAME", filename_, FileName{}).read_p("SNAPLEN", options_.snap_length);
  args.read_p("ENCAP", encap, WordArg{}).read_status("USE_ENCAP_FROM", encap_from_, encap_from);
  args.read("EXTRA_LENGTH", options_.extra_length).read("UNBUFFERED", unbuffered).read("NANO", options_.nanoseconds);
  args.read("FORMAT", pcapng, Choice<std::optional<bool>>{{"PCAP", false}, {"PCAPNG", true}});
  if (!args.complete()) return Status::failed();
  options_.buffered = !unbuffered;
  options_.pcapng = pcapng.value_or(filename_.ends_with(".pcapng") || filename_.ends_with(".pcapng.gz"));
  if (encap_from && !encap.empty()) return args.errors().error("specify at most one of 'ENCAP' and 'USE_ENCAP_FROM'");
  if (encap_from && encap_from_.empty()) return args.errors().error("element names missing after 'USE_ENCAP_FROM'");
  options_.link_type = io::parse_link_type(encap.empty() ? "ETHER" : encap);
  return options_.link_type < 0 ? args.errors().error("bad encapsulation type") : Status();
}

Status ToDump::find_link_type(Errors& errors) {
  int found = -1;
  std::string disagreement;
  for (const Element* e : encap_from_) {
    const Handler* handler = e->handlers().find("encap");
    if (!handler || !handler->read) return errors.error("'{}' has no 'encap' read handler", e->declaration());
    std::string name;
    if (!handler->read("", name, errors)) return Status::failed();
    const int type = io::parse_link_type(name);
    if (type < 0) return errors.error("'{}.encap' did not return a valid encapsulation type", e->name());
    disagreement += "\n  " + e->declaration() + " has " + name;
    if (found >= 0 && type != found) return errors.error("source encapsulation types disagree:{}", disagreement);
    found = type;
  }
  if (found >= 0) options_.link_type = found;
  return {};
}

Status ToDump::initialize(Errors& errors) {
  options_.complain = [this](const std::string& message) { chatter("{}: {}", declaration(), message); };
  if (!find_link_type(errors) || !writer_.open(filename_, options_, errors)) return Status::failed();
  if (input_is_pull(0) && noutputs() == 0) {
    task_.initialize(true);
    signal_ = Signal::upstream_nonempty(this, 0, &task_);
  }
  return {};
}

std::vector<Element::DropCount> ToDump::drop_counts() const {
  const uint64_t lost = noutputs() == 0 ? writer_.lost() : 0;
  if (lost == 0) return {};
  return {{std::string("not written: ") + std::strerror(writer_.error()), lost}};
}

void ToDump::push(int, Batch& batch) {
  (void)writer_.write(batch.begin(), batch.size());
  if (noutputs() > 0)
    output(0).push(batch);
  else
    batch.kill();
}

int ToDump::pull(int, Batch& batch, int max) {
  const int n = input(0).pull(batch, max);
  (void)writer_.write(batch.end() - n, n);
  return n;
}

bool ToDump::run_task(Task& task) {
  Batch batch;
  const bool worked = input(0).pull(batch, 32) > 0;
  (void)writer_.write(batch.begin(), batch.size());
  batch.kill();
  if (worked || signal_.active()) task.fast_reschedule();
  return worked;
}

void ToDump::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(writer_.written().packets); });
  handlers.read("not_written", [this] { return std::to_string(writer_.lost()); });
  handlers.button("reset_counts", [this] { writer_.reset_counts(); });
  handlers.read(
      "filename", [this] { return writer_.name(); }, Handler::kCalm);
  handlers.button("flush", [this] { writer_.flush(); });
}

}  // namespace headrace
