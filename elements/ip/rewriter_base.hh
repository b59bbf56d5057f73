#pragma once
/// \file
/// What the rewriters share: input specs, the table of flows, handlers, and the way of a batch through them.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "elements/ip/rewriter_pattern.hh"
#include "headrace/checksum.hh"
#include "headrace/element.hh"
#include "headrace/scratch.hh"
#include "tables/flow/flow_table.hh"

namespace headrace {

class RewriterBase;

/// What is to be found for the first packet of a flow.
struct NewFlow {
  FlowId id;
  RewriterPattern::Ports ports = RewriterPattern::Ports::kPorts;
  int64_t now = 0;
  /// Where ways back must not be in use; its lock is held.
  FlowTable::Change& table;
  uint32_t space = 0;
};

/// What becomes of it.
struct Rewriting {
  FlowId rewritten;
  uint16_t outputs[2] = {};  ///< there, and back
};

/// An element that rewriters ask: an input spec may name it.
class IpMapper {
 public:
  virtual ~IpMapper() = default;
  /// A rewriter will ask; called while that is initialized.
  virtual Status check_user(const RewriterBase& user, Errors& errors) const = 0;
  /// False when the packet shall be dropped. Any worker may call this.
  virtual bool map(const NewFlow& flow, Rewriting& rewriting) = 0;
};

/// `pattern ... FOUTPUT ROUTPUT`: a pattern and where packets go.
struct PatternSpec {
  std::shared_ptr<RewriterPattern> pattern;
  int outputs[2] = {};

  /// Reads the words behind `pattern`.
  static bool parse(std::vector<std::string> words, const Element& user, const ArgContext& context, PatternSpec& spec,
                    std::string& error);
  static bool parse_outputs(const std::string& there, const std::string& back, int (&outputs)[2], std::string& error);
  bool fits(const Element& element) const {
    return outputs[0] >= 0 && outputs[0] < element.noutputs() && outputs[1] >= 0 && outputs[1] < element.noutputs();
  }
  bool map(const NewFlow& flow, Rewriting& rewriting) const {
    rewriting.outputs[0] = static_cast<uint16_t>(outputs[0]);
    rewriting.outputs[1] = static_cast<uint16_t>(outputs[1]);
    return pattern->rewrite(flow.id, flow.ports, flow.now, rewriting.rewritten,
                            [&flow](const FlowId& back) { return !flow.table.find(flow.space, back); });
  }
};

/// One argument of a rewriter: what happens to packets of no known flow that arrive at an input.
struct InputSpec {
  enum class Kind { kDrop, kPass, kKeep, kPattern, kMapper };
  Kind kind = Kind::kDrop;
  PatternSpec pattern;  // of kPass and kKeep the outputs only
  IpMapper* mapper = nullptr;
};

/// The base of IPRewriter, TCPRewriter, UDPRewriter, IPAddrRewriter, IPAddrPairRewriter and ICMPPingRewriter.
class RewriterBase : public Element {
 public:
  static constexpr Ports kPorts{"1-/1-"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr uint32_t kDefaultCapacity = 1u << 20;

  Status initialize(Errors& errors) override;
  std::vector<RegionInfo> annotations() const override;
  void run_timer(Timer& timer) override;
  void take_state(Element& old, Errors& errors) override;

  /// The table of flows, which may be that of another rewriter.
  FlowTable& table() const { return *owner_->table_; }

  // --- For elements that help rewriters

  /// The flow by whose way back packets with `id` come, or null; ping ids as `sport` of `id`. On a worker.
  virtual FlowEntry* find_reply(uint8_t protocol, const FlowId& id) const = 0;
  /// The flow of packets with `id`, made as if one had arrived at `input`, unless that is negative. Null when there is
  /// none. On a worker. `reply_anno` is set for packets that come back.
  virtual FlowEntry* find_flow(uint8_t protocol, const FlowId& id, int input, uint8_t reply_anno) = 0;

 protected:
  enum Reason : int { kNoFlow, kNoRoom, kNoHeader, kReasons };

  /// The space of one protocol: its index among the spaces of the element.
  struct Protocol {
    const char* name;  // part of the space's name in the table
    FlowTable::Lifetimes lifetimes;
    uint32_t space = 0;
  };

  /// Arguments of every rewriter and the input specs; reads them to the end. Subclasses have read theirs before.
  Status configure_base(Args& args);
  /// GUARANTEE, REAP_INTERVAL ... are read by configure_base(); a subclass sets its defaults in its constructor.
  Interval guarantee_ = Interval::from_sec(5);
  Interval timeout_ = Interval::from_sec(300);
  bool dst_anno_ = true;
  int reply_anno_ = -1;  // offset of the annotation, or -1
  /// Reads DST_ANNO and REPLY_ANNO, or the second alone.
  void read_annos(Args& args, bool with_dst);
  /// After configure_base(): what the element keeps flows for.
  std::vector<Protocol> protocols_;
  uint32_t space(int protocol) const { return protocols_[static_cast<size_t>(protocol)].space; }

  /// Whether packets of a new flow can be rewritten so.
  virtual bool may_become(const FlowId& /*rewritten*/) const { return true; }

  /// Handlers of every rewriter.
  void add_base_handlers(Handlers& handlers);
  /// Lines of the flows of one protocol; `line` has what stands before the outputs.
  std::string list(int protocol, const std::function<std::string(const FlowEntry&)>& line);
  static std::string list_ids(const FlowEntry& entry) {
    return entry.id().unparse() + " => " + entry.rewritten().unparse();
  }

  /// Where a packet of no known flow goes.
  struct Outcome {
    FlowEntry* entry = nullptr;  // it belongs to this flow now
    Next next = kDrop;           // otherwise it leaves here
    Reason reason = kNoFlow;
  };
  /// Does what the input's spec says with the first packet of a flow.
  Outcome add_flow(int input, int protocol, const FlowId& id, uint8_t ip_protocol, RewriterPattern::Ports ports,
                   uint8_t reply_anno, int64_t now);
  /// For packets that have no flow id, such as later fragments: they pass where the spec says so.
  Next pass_only(int input) const {
    const InputSpec& spec = inputs_[static_cast<size_t>(input)];
    return spec.kind == InputSpec::Kind::kPass ? static_cast<Next>(spec.pattern.outputs[0]) : kDrop;
  }
  uint8_t reply_anno_of(const Packet& p) const { return reply_anno_ >= 0 ? p.anno_u8(reply_anno_) : 0; }

  /// Sets addresses and their checksum as the entry says, and annotations.
  void rewrite_addresses(Packet& p, Ip4Header& ip, const FlowEntry& entry, const FlowId& to) const {
    ip.src = to.src;
    ip.dst = to.dst;
    finish_addresses(p, ip, entry, to.dst);
  }
  void finish_addresses(Packet& p, Ip4Header& ip, const FlowEntry& entry, IpAddress dst) const {
    if (dst_anno_) dst.copy_to(p.anno() + anno_offset::kDstIp);
    if (entry.is_reply() && reply_anno_ >= 0) p.set_anno_u8(reply_anno_, entry.flow().reply_anno());
    ip.checksum = changed(ip.checksum, entry.flow().ip_change(), entry.is_reply());
  }
  /// A checksum after the words that `change` is about have changed; on the way back they change the other way.
  static uint16_t changed(uint16_t checksum, uint16_t change, bool back) {
    if (change == 0) return checksum;
    uint32_t sum = static_cast<uint16_t>(~checksum) + uint32_t{back ? static_cast<uint16_t>(~change) : change};
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<uint16_t>(~sum);
  }
  /// The same for UDP, where zero means that there is no checksum (RFC 768).
  static uint16_t changed_udp(uint16_t checksum, uint16_t change, bool back) {
    if (checksum == 0) return 0;
    const uint16_t after = changed(checksum, change, back);
    return after ? after : 0xffff;
  }

  /// Repairs the checksum of a TCP or UDP header behind an IP header whose addresses have changed.
  static void repair_transport(const Packet& p, Ip4Header& ip, const FlowEntry& entry) {
    if (!ip.is_first_fragment()) return;
    const int length = p.network_length() - ip.header_length();
    uint8_t* header = ip.bytes() + ip.header_length();
    const uint16_t change = entry.flow().port_change();
    if (ip.protocol == ip_protocol::kTcp && length >= 18) {
      auto& tcp = *reinterpret_cast<TcpHeader*>(header);
      tcp.checksum = changed(tcp.checksum, change, entry.is_reply());
    } else if (ip.protocol == ip_protocol::kUdp && length >= 8) {
      auto& udp = *reinterpret_cast<UdpHeader*>(header);
      udp.checksum = changed_udp(udp.checksum, change, entry.is_reply());
    }
  }

  /// Takes a batch through the rewriter `self`, which has
  ///
  ///     bool key_of(const Packet& p, const Ip4Header& ip, Key& key) const    false: the packet has no flow id
  ///     FlowEntry* find(const FlowTable::Bucket& bucket, const Key& key) const
  ///     Outcome add(int input, const Key& key, const Packet& p, int64_t now)
  ///     void apply(Packet& p, Ip4Header& ip, const FlowEntry& entry, int64_t now)
  ///
  /// and Key, which has `space` and `id` of the first look-up.
  template <typename Self>
  static void process(Self& self, int input, Batch& batch) {
    Scratch<typename Self::Key, Batch::kCapacity> keys;
    FlowTable::Bucket buckets[Batch::kCapacity];  // null: the packet has no key
    Next nexts[Batch::kCapacity];
    const int64_t now = clock::steady().ns;
    const FlowTable& table = self.table();
    for (int i = 0; i < batch.size(); ++i) {
      const Ip4Header* ip = ip4_header(*batch[i]);
      buckets[i].hashes = nullptr;
      if (!ip || !self.key_of(*batch[i], *ip, keys[i])) continue;
      buckets[i] = table.bucket(keys[i].space, keys[i].id);
      FlowTable::prefetch(buckets[i]);
    }
    for (int i = 0; i < batch.size(); ++i)
      if (buckets[i]) table.prefetch_flow(buckets[i]);
    int kept = 0;
    for (int i = 0; i < batch.size(); ++i) {
      Packet* p = batch[i];
      Outcome outcome;
      if (buckets[i]) {
        outcome.entry = self.find(buckets[i], keys[i]);
        if (!outcome.entry) outcome = self.add(input, keys[i], *p, now);
      } else {
        outcome.next = self.pass_only(input);
        if (!ip4_header(*p)) outcome = {nullptr, kDrop, kNoHeader};
      }
      if (outcome.entry) {
        self.apply(*p, *ip4_header(*p), *outcome.entry, now);
        outcome.next = outcome.entry->output();
      } else if (outcome.next == kDrop) {
        self.drop(p, outcome.reason);
        continue;
      }
      nexts[kept] = outcome.next;
      batch[kept++] = p;
    }
    batch.resize(kept);
    self.push_split(batch, nexts);
  }

 private:
  Status parse_input(const std::string& text, const ArgContext& context, InputSpec& input, std::string& error) const;
  Status check_input(const InputSpec& input, int index, Errors& errors) const;
  Status write_pattern(int input, const std::string& text, Errors& errors);
  std::string unparse_input(int input) const;
  uint32_t count(int input) const;
  void join(FlowTable& table);
  std::string space_name(const Protocol& protocol) const { return name() + "/" + protocol.name; }
  bool owns(const FlowRecord& flow) const;

  std::vector<InputSpec> inputs_;
  /// A rewriter either has a table or uses that of another one.
  uint32_t capacity_ = kDefaultCapacity;
  RewriterBase* shared_with_ = nullptr;
  RewriterBase* owner_ = this;
  std::shared_ptr<FlowTable> table_;
  std::vector<RewriterBase*> users_;  // of the table
  Interval reap_interval_ = Interval::from_sec(900);
  ThreadCounters failures_{1};
  Timer timer_{this};
};

}  // namespace headrace
