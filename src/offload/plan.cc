#include "offload/plan.hh"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <string_view>
#include <tuple>

namespace headrace::offload {

namespace {

/// Maximum number of different header positions that are tracked for an element; more are not foreseen.
constexpr size_t kMaxOffsets = 8;

int anchor_offset(const Offsets& at, Anchor anchor) {
  switch (anchor) {
    case Anchor::kData:
      return at.data;
    case Anchor::kMac:
      return at.mac;
    case Anchor::kNetwork:
      return at.network;
    case Anchor::kTransport:
      return at.transport;
    default:
      return Offsets::kUnknown;
  }
}

}  // namespace

const char* obstacle_to_offload(const Element& element) {
  const auto* shader = dynamic_cast<const ShaderElementBase*>(&element);
  if (!shader) return "host element";
  if (!shader->can_mirror()) return "no copy of its tables for devices";
  if (element.ninputs() != 1) return "several inputs";
  for (const RegionInfo& r : shader->regions())
    if (r.anchor != Anchor::kAnno && r.anchor != Anchor::kMeta && r.size > kMaxWindow)
      return "needs too many bytes of a packet";
  return nullptr;
}

Plan::Plan(const graph::Chain& chain, const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
           const std::vector<int>& back_edges, size_t& images) {
  std::vector<const graph::Edge*> inner;
  std::vector<int> level(elements.size(), -1);
  for (const int node : chain.nodes) level[static_cast<size_t>(node)] = 0;
  for (size_t e = 0; e < edges.size(); ++e) {
    const bool back = std::find(back_edges.begin(), back_edges.end(), static_cast<int>(e)) != back_edges.end();
    if (!back && level[static_cast<size_t>(edges[e].from.node)] >= 0 &&
        level[static_cast<size_t>(edges[e].to.node)] >= 0)
      inner.push_back(&edges[e]);
  }
  for (const int node : chain.nodes)
    for (const graph::Edge* e : inner)
      if (e->from.node == node)
        level[static_cast<size_t>(e->to.node)] =
            std::max(level[static_cast<size_t>(e->to.node)], level[static_cast<size_t>(node)] + 1);

  // Elements of one class at one level are adjacent, so that a device can run them as one.
  std::vector<int> nodes = chain.nodes;
  std::sort(nodes.begin(), nodes.end(), [&](int a, int b) {
    const Element& x = *elements[static_cast<size_t>(a)];
    const Element& y = *elements[static_cast<size_t>(b)];
    return std::tuple(level[static_cast<size_t>(a)], std::string_view(x.info().documented_as), x.noutputs(), a) <
           std::tuple(level[static_cast<size_t>(b)], std::string_view(y.info().documented_as), y.noutputs(), b);
  });

  std::vector<int> step_of(elements.size(), -1);
  for (const int node : nodes) {
    Step step;
    step.element = dynamic_cast<ShaderElementBase*>(elements[static_cast<size_t>(node)]);
    step.level = level[static_cast<size_t>(node)];
    const size_t alignment = std::max<size_t>(step.element->image_alignment(), 16);
    images = (images + alignment - 1) / alignment * alignment;
    step.image = images;
    images += step.element->image_size();
    step.first_counter = counters_;
    counters_ += step.element->counter_count();
    step_of[static_cast<size_t>(node)] = static_cast<int>(steps_.size());
    steps_.push_back(step);
  }
  const auto exit = [this](Exit::Kind kind, size_t step, Next port) {
    exits_.push_back({kind, static_cast<uint16_t>(step), port});
    return static_cast<uint16_t>(kExit + exits_.size() - 1);
  };
  for (size_t s = 0; s < steps_.size(); ++s) {
    Step& step = steps_[s];
    step.resume = exit(Exit::Kind::kResume, s, 0);
    step.drop = exit(Exit::Kind::kDrop, s, kDrop);
    step.escape = exit(Exit::Kind::kEscape, s, kEscape);
    for (int port = 0; port < step.element->noutputs(); ++port) {
      // Every port has a code, used or not, so that the codes of similar elements are equally spaced.
      uint16_t target = exit(Exit::Kind::kPort, s, static_cast<Next>(port));
      for (const graph::Edge* e : inner)
        if (e->from.node == nodes[s] && e->from.port == port)
          target = static_cast<uint16_t>(step_of[static_cast<size_t>(e->to.node)]);
      step.targets.push_back(target);
    }
  }
  for (const int e : chain.entries) entries_.push_back({e, static_cast<uint16_t>(step_of[edges[e].to.node])});

  find_writes();
  number_results();
  std::vector<std::vector<Offsets>> offsets;
  foresee(offsets);
  lay_out(offsets);
}

void Plan::find_writes() {
  for (Step& step : steps_) {
    bool newer = step.newer;
    for (const RegionInfo& r : step.element->regions())
      newer |= r.writes && r.anchor != Anchor::kAnno && r.anchor != Anchor::kMeta;
    for (const uint16_t target : step.targets)
      if (target < kExit) steps_[target].newer |= newer;
    // It brings the whole window up to date, so the whole window must have been in the stage.
    step.newer |= step.element->rewrites();
  }
  for (size_t s = steps_.size(); s-- > 0;)
    for (const uint16_t target : steps_[s].targets)
      if (target < kExit) steps_[s].more |= steps_[target].more || steps_[target].reads_payload();
}

bool Plan::reads_payloads_again() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.reads_payload() && step.more; });
}

/// Steps that one packet can pass have different numbers; steps of different branches share them.
void Plan::number_results() {
  for (Step& step : steps_) {
    const auto size = static_cast<int>(step.element->result_size());
    int next = step.result;
    if (size > 0) {
      row_.result_size = std::max(row_.result_size, 4 + (size + 3) / 4 * 4);
      row_.results = std::max(row_.results, ++next);
    }
    for (const uint16_t target : step.targets)
      if (target < kExit) steps_[target].result = std::max(steps_[target].result, next);
  }
}

/// Predicts where headers may lie before each step.
void Plan::foresee(std::vector<std::vector<Offsets>>& offsets) const {
  offsets.assign(steps_.size(), {});
  const auto add = [&](size_t step, const Offsets& at) {
    std::vector<Offsets>& all = offsets[step];
    if (all.size() < kMaxOffsets && std::find(all.begin(), all.end(), at) == all.end()) all.push_back(at);
  };
  // Device ports deliver whole frames. Packets from elsewhere have their network header marked, mostly where the packet
  // begins.
  for (const Entry& e : entries_) {
    Offsets at;
    at.mac = 0;
    at.network = at.data;
    at.transport = at.data + 20;
    add(e.step, at);
  }
  for (size_t s = 0; s < steps_.size(); ++s) {
    for (Offsets at : offsets[s]) {
      steps_[s].element->move(at);
      for (const uint16_t target : steps_[s].targets)
        if (target < kExit) add(target, at);
    }
  }
}

void Plan::lay_out(const std::vector<std::vector<Offsets>>& offsets) {
  int first = INT_MAX, last = INT_MIN;
  for (size_t s = 0; s < steps_.size(); ++s) {
    const std::vector<RegionInfo> regions = steps_[s].element->regions();
    for (const RegionInfo& r : regions) {
      if (r.size <= 0) continue;
      if (r.anchor == Anchor::kAnno) {
        for (int g = r.offset / 4; g <= (r.offset + r.size - 1) / 4; ++g) row_.annotations |= 1 << g;
        continue;
      }
      if (r.anchor == Anchor::kMeta) continue;
      for (Offsets at : offsets[s]) {
        // A shader that moves a header reads bytes where it was and writes bytes where it will be.
        for (int moved = 0; moved < 2; ++moved) {
          const int origin = anchor_offset(at, r.anchor);
          if (origin > -4096 && origin < 4096) {
            const int begin = origin + r.offset, end = begin + r.size;
            if (begin >= -kMaxWindow && std::max(last, end) - std::min(first, begin) <= kMaxWindow) {
              first = std::min(first, begin);
              last = std::max(last, end);
            }
          }
          const bool moves = std::any_of(regions.begin(), regions.end(), [](const RegionInfo& m) {
            return m.anchor == Anchor::kMeta && m.writes &&
                   (m.offset == decltype(meta::data)::kOffset || m.offset == decltype(meta::mac_header)::kOffset ||
                    m.offset == decltype(meta::network_header)::kOffset);
          });
          if (!moves) break;
          steps_[s].element->move(at);
        }
      }
    }
  }
  for (const Step& step : steps_)
    row_.address_size = std::max(row_.address_size, step.element->rewrites() ? 16 : step.element->scans() ? 8 : 0);
  if (first > last) first = last = 0;
  row_.window_begin = first;
  row_.window_size = (last - first + 3) / 4 * 4;
  row_.stride = (row_.window() + row_.window_size + 15) / 16 * 16;
  // Bytes that fit into the row's last 16 bytes cost nothing, and may keep a packet with a longer header off the host.
  row_.window_size = std::min(kMaxWindow, row_.stride - row_.window());
}

void Plan::run(Slot* slots, int n, const uint8_t* parameters) const {
  std::vector<Next> nexts(static_cast<size_t>(n));
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    const auto at = static_cast<uint16_t>(s);
    for (int i = 0; i < n; ++i)
      if (slots[i].header.at == at) slots[i].newer = step.newer;
    step.element->shade_slots(parameters + step.image, at, slots, n, row_, step.first_counter, step.result,
                              nexts.data());
    for (int i = 0; i < n; ++i) {
      if (slots[i].header.at != at) continue;
      const Next next = nexts[static_cast<size_t>(i)];
      slots[i].header.at = next == kResume              ? step.resume
                           : next == kEscape            ? step.escape
                           : next < step.targets.size() ? step.targets[next]
                                                        : step.drop;
    }
  }
}

std::string Plan::describe() const {
  std::string names;
  for (const Step& s : steps_) names += (names.empty() ? "" : " ") + s.element->name();
  return fmt::format("{} shader{} ({}), rows of {} bytes", steps_.size(), steps_.size() == 1 ? "" : "s", names,
                     row_.stride);
}

}  // namespace headrace::offload
