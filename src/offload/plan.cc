#include "offload/plan.hh"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <string_view>
#include <tuple>
#include <utility>

#include "headrace/packet.hh"

namespace headrace::offload {

namespace {

/// Maximum number of different header positions that are tracked for an element; more are not foreseen.
constexpr size_t kMaxOffsets = 8;
/// So many bytes may come back for nothing.
constexpr int kInPlace = 16;

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
           const std::vector<int>& back_edges, const std::vector<uint64_t>& live, size_t& images) {
  std::vector<const graph::Edge*> inner;
  std::vector<int> level(elements.size(), -1);
  for (const int node : chain.nodes) level[static_cast<size_t>(node)] = 0;
  for (size_t e = 0; e < edges.size(); ++e) {
    const bool back = std::find(back_edges.begin(), back_edges.end(), static_cast<int>(e)) != back_edges.end();
    if (back || level[static_cast<size_t>(edges[e].from.node)] < 0 || level[static_cast<size_t>(edges[e].to.node)] < 0)
      continue;
    // Whether a packet goes on, this element's hook decides on the host.
    const auto* from = dynamic_cast<const ShaderElementBase*>(elements[static_cast<size_t>(edges[e].from.node)]);
    if (!from->takes_packets()) inner.push_back(&edges[e]);
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

  // What those behind an exit may read.
  std::vector<uint64_t> back(exits_.size(), 0);
  for (size_t i = 0; i < exits_.size(); ++i) {
    const Exit& e = exits_[i];
    exits_[i].whole = e.kind == Exit::Kind::kResume || e.kind == Exit::Kind::kEscape;
    // Ports that lead to other steps have a code, too.
    if (e.kind != Exit::Kind::kPort || steps_[e.step].targets[e.port] < kExit) continue;
    for (const graph::Edge& edge : edges)
      if (edge.from.node == nodes[e.step] && edge.from.port == e.port)
        back[i] |= live[static_cast<size_t>(edge.to.node)];
  }
  uint64_t there = 0;
  for (const Entry& entry : entries_) there |= live[static_cast<size_t>(nodes[entry.step])];

  find_writes();
  number_results();
  place_annotations(there, back);
  std::vector<std::vector<Offsets>> offsets;
  foresee(offsets);
  lay_out(offsets);
}

void Plan::place_annotations(uint64_t there, const std::vector<uint64_t>& back) {
  constexpr int kGroups = Packet::kAnnoCapacity / 4;
  const auto groups_of = [](uint64_t bytes) {
    uint32_t groups = 0;
    for (int g = 0; g < kGroups; ++g) groups |= (bytes >> 4 * g & 0xf) != 0 ? 1U << g : 0;
    return groups;
  };
  uint32_t used = 0, written = 0, hooks = 0;
  std::vector<uint32_t> regions;
  for (const Step& step : steps_)
    for (const RegionInfo& r : step.element->annotations()) {
      if (r.size <= 0) continue;
      regions.push_back(groups_of(((uint64_t{1} << r.size) - 1) << r.offset));
      used |= regions.back();
      if (r.writes) written |= regions.back();
      // Its hook sees the packet when it has come back.
      if (step.element->result_size() > 0) hooks |= regions.back();
    }
  // Packets that leave by way of an output for exceptions are few: if more must come back of them, they do so whole.
  std::vector<bool> usual(steps_.size(), false);
  for (const Entry& entry : entries_) usual[entry.step] = true;
  const auto is_usual = [&](size_t step, size_t port) {
    return usual[step] && (port == 0 || std::string_view(steps_[step].element->info().ports).ends_with('-'));
  };
  for (size_t s = 0; s < steps_.size(); ++s)
    for (size_t port = 0; port < steps_[s].targets.size(); ++port)
      if (steps_[s].targets[port] < kExit && is_usual(s, port)) usual[steps_[s].targets[port]] = true;
  uint64_t common = 0;
  for (size_t i = 0; i < exits_.size(); ++i)
    if (exits_[i].kind == Exit::Kind::kPort && is_usual(exits_[i].step, exits_[i].port)) common |= back[i];
  uint32_t goes = groups_of(there) & used, comes = (groups_of(common) | hooks) & written;
  for (size_t i = 0; i < exits_.size(); ++i)
    if ((groups_of(back[i]) & written & ~comes) != 0) exits_[i].whole = true;
  // What one shader uses as one field must lie in one piece.
  for (bool changed = true; changed;) {
    changed = false;
    for (const uint32_t region : regions)
      for (uint32_t* set : {&goes, &comes})
        if ((*set & region) != 0 && (*set & region) != region) {
          *set |= region;
          changed = true;
        }
  }
  row_.annotations_both = static_cast<int32_t>(goes & comes);
  row_.annotations_back = static_cast<int32_t>(comes & ~goes);
  row_.annotations_there = static_cast<int32_t>(goes & ~comes);
  row_.annotations_stay = static_cast<int32_t>(used & ~goes & ~comes);
}

void Plan::find_writes() {
  for (Step& step : steps_) {
    bool newer = step.newer;
    for (const RegionInfo& r : step.element->regions())
      newer |= r.writes && r.anchor != Anchor::kAnno && r.anchor != Anchor::kMeta;
    for (const uint16_t target : step.targets)
      if (target < kExit) steps_[target].newer |= newer;
    // It brings the whole window up to date, so the whole window must have been in the stage.
    step.newer |= step.rewrites_as_team();
  }
  for (size_t s = steps_.size(); s-- > 0;)
    for (const uint16_t target : steps_[s].targets)
      if (target < kExit) {
        steps_[s].more |= steps_[target].more || steps_[target].reads_payload();
        steps_[s].again |= steps_[target].again || steps_[target].rewrites_as_team();
      }
}

bool Plan::takes_packets() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.element->takes_packets(); });
}

bool Plan::reads_payloads_again() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const Step& step) { return (step.reads_payload() && step.more) || step.element->is_serial(); });
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
  int first = INT_MAX, last = INT_MIN, written = INT_MIN;
  for (size_t s = 0; s < steps_.size(); ++s) {
    const std::vector<RegionInfo> regions = steps_[s].element->regions();
    for (const RegionInfo& r : regions) {
      if (r.size <= 0 || r.anchor == Anchor::kAnno || r.anchor == Anchor::kMeta) continue;
      for (Offsets at : offsets[s]) {
        // A shader that moves a header reads bytes where it was and writes bytes where it will be.
        for (int moved = 0; moved < 2; ++moved) {
          const int origin = anchor_offset(at, r.anchor);
          if (origin > -4096 && origin < 4096) {
            const int begin = origin + r.offset, end = begin + r.size;
            if (begin >= -kMaxWindow && std::max(last, end) - std::min(first, begin) <= kMaxWindow) {
              first = std::min(first, begin);
              last = std::max(last, end);
              if (r.writes && r.usual != 0) written = std::max(written, r.usual < 0 ? end : begin + r.usual);
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
  const auto words = [](int n) { return (n + 3) / 4 * 4; };
  row_.window_begin = first;
  row_.window_size = words(last - first);
  // Shaders that rewrite packets bring the whole window up to date.
  row_.written = rewrites() ? row_.window_size : words(written > first ? written - first : 0);

  // What only comes back has a piece of its own in front, unless it goes for nothing.
  RowLayout other = row_;
  other.annotations_both |= std::exchange(other.annotations_back, 0);
  finish_layout(row_);
  finish_layout(other);
  if (other.there + other.back <= row_.there + row_.back) row_ = other;
  // A piece more that comes back costs less than cache lines that the CPU would have to read besides those it writes.
  row_.in_place = row_.back <= row_.there && row_.there <= row_.back + kInPlace;
  if (row_.in_place) row_.back = row_.there;
}

void Plan::finish_layout(RowLayout& row) {
  const auto pieces = [](int n) { return (n + 15) / 16 * 16; };
  row.header = pieces(row.back_annotations() + RowLayout::bytes_of(row.annotations_back));
  row.there = pieces(row.stay_annotations() - row.header);
  // Bytes that fit into the last piece cost nothing, and may keep a packet with a longer header off the host.
  const int spare = std::min(row.header + row.there - row.stay_annotations(), kMaxWindow - row.window_size) / 4 * 4;
  if (row.written == row.window_size) row.written += spare;
  row.window_size += spare;
  row.back = pieces(row.window() + row.written);
  row.written = std::min(row.window_size, row.back - row.window());
  row.stride = std::max(row.header + row.there, pieces(row.end()));
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
      const uint16_t target = next == kResume              ? step.resume
                              : next == kEscape            ? step.escape
                              : next < step.targets.size() ? step.targets[next]
                                                           : step.drop;
      slots[i].header.at = target;
      slots[i].whole |= comes_back_whole(target);
    }
  }
}

std::string Plan::describe() const {
  std::string names;
  for (const Step& s : steps_) names += (names.empty() ? "" : " ") + s.element->name();
  return fmt::format("{} shader{} ({}), rows of {} bytes there and {} back", steps_.size(),
                     steps_.size() == 1 ? "" : "s", names, row_.there, row_.back);
}

}  // namespace headrace::offload
