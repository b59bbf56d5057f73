#pragma once
#include <headrace/element.hh>
#include <vector>

#include "headrace/random_numbers.hh"
#include "headrace/single_writer.hh"
#include "headrace/storage.hh"

namespace headrace {

/// Drops packets at random as queues fill: Random Early Detection (S. Floyd and V. Jacobson, "Random Early Detection
/// gateways for congestion avoidance", 1993).
///
///     RED(MIN_THRESH, MAX_THRESH, MAX_P [, keyword QUEUES, STABILITY, GENTLE])
///
/// Input 0 and output 0, push or pull. Output 1 (optional), push: marked packets; without it they are dropped and
/// counted. It looks at the nearest Queues (and LinkUnqueues): downstream if packets are pushed to it, upstream if they
/// are pulled from it. It uses the average of the sum of their lengths; each worker keeps its own average.
///
/// MIN_THRESH: up to this average length no packet is marked.
/// MAX_THRESH: at this average length packets are marked with probability MAX_P, between the two thresholds with a
/// probability that grows linearly. At least MIN_THRESH, at most 65535.
/// MAX_P: from 0 to 1.
/// QUEUES: names of Queues, separated by spaces, instead of the nearest ones.
/// STABILITY: the average moves by 1/2^STABILITY of the difference with each packet. 0 to 16; 0: no averaging.
/// Default 4.
/// GENTLE true: between MAX_THRESH and twice that, the probability grows from MAX_P to 1; false: above MAX_THRESH all
/// packets are marked. Default true.
///
/// Handlers: `min_thresh`, `max_thresh`, `max_p` (rw); `drops` (r) marked packets; `queues` (r) a name in each line;
/// `avg_queue_size`, `stats` (r); `config` (rw).
class RED final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  bool can_live_reconfigure() const override { return true; }
  Status live_reconfigure(Args& args) override;
  std::string configuration() const override;
  void add_handlers(Handlers& handlers) override;
  /// The averages stay.
  void take_state(Element& old, Errors& errors) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  struct Parameters {
    uint32_t min_thresh = 0, max_thresh = 0;
    double max_p = 0;
    uint32_t stability = 4;
    bool gentle = true;
  };
  /// What a worker knows; others read `average`.
  struct Average {
    SingleWriter<double> average = 0.;
    SingleWriter<bool> used = false;
    Timestamp empty_since;  // last look at empty queues; 0: they were not empty
    int since_mark = -1;    // packets since the last mark that might have been marked; -1: none
    double threshold = 0;   // random, from 0 to 1
  };
  Status read(Args& args, Parameters& parameters, std::vector<std::string>& queues);
  Status find_queues(Errors& errors);
  uint64_t length() const;
  double update(Average& state);
  bool mark(Average& state);
  double average() const;

  Parameters parameters_;
  std::vector<std::string> names_;
  std::vector<Element*> queues_;
  std::vector<Storage*> storages_;
  PerThread<Average> averages_;
  ThreadCounters drops_{1};
  RandomNumbers random_;
};

HEADRACE_ELEMENT(RED)

}  // namespace headrace
