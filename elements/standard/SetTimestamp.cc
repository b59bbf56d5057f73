#include "elements/standard/SetTimestamp.hh"

namespace headrace {

Status SetTimestamp::configure(Args& args) { return args.read_p("TIMESTAMP", time_).read("FIRST", first_).complete(); }

void SetTimestamp::set(Packet** begin, Packet** end) const {
  const Timestamp time = time_ ? *time_ : clock::now();
  for (Packet** p = begin; p != end; ++p) {
    if (first_)
      (*p)->set_anno_u64(anno_offset::kFirstTimestamp, static_cast<uint64_t>(time.ns));
    else
      (*p)->set_timestamp(time);
  }
}

void SetTimestamp::push(int, Batch& batch) {
  set(batch.begin(), batch.end());
  output(0).push(batch);
}

int SetTimestamp::pull(int, Batch& batch, int max) {
  const int before = batch.size();
  const int n = input(0).pull(batch, max);
  set(batch.begin() + before, batch.end());
  return n;
}

}  // namespace headrace
