#include "elements/standard/RatedSplitter.hh"

#include "elements/standard/bucket_args.hh"

namespace headrace {

Status RatedSplitter::configure(Args& args) {
  BucketArgs bucket;
  if (!bucket.read(args, is_bandwidth())) return Status::failed();
  count_reasons({"above the rate"});
  bucket_.assign(bucket.rate, bucket.capacity, clock::steady());
  return {};
}

void RatedSplitter::push(int, Batch& batch) {
  // A share of a token is lost to rounding at most.
  const double threshold = (is_bandwidth() ? BucketArgs::kBandwidthThreshold : 1) - 1e-6;
  Next nexts[Batch::kCapacity];
  bucket_.take(clock::steady(), [&](double tokens) {
    double spent = 0;
    for (int i = 0; i < batch.size(); ++i) {
      const bool pass = tokens - spent >= threshold;
      nexts[i] = pass ? 0 : 1;
      if (pass) spent += is_bandwidth() ? batch[i]->length() : 1;
    }
    return spent;
  });
  push_split(batch, nexts);
}

std::string RatedSplitter::unparse_rate() const {
  return is_bandwidth() ? Bandwidth{bucket_.rate()}.unparse() : std::to_string(bucket_.rate());
}

void RatedSplitter::add_handlers(Handlers& handlers) {
  handlers.argument("rate", "RATE", 0, true);
  handlers.read("rate", [this] { return unparse_rate(); });
}

}  // namespace headrace
