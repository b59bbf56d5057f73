#include "elements/openflow/interpreter.hh"

#include <utility>

#include "elements/openflow/frame_actions.hh"
#include "elements/openflow/packet_frame.hh"
#include "tables/key/packet_key_view.hh"

namespace headrace::openflow {

void Interpreter::process(Packet* packet, uint32_t in_port) {
  Work work{packet, {}};
  work.context.in_port = work.context.in_phy_port = in_port;
  walk(work, 0);
  finish(work);
}

void Interpreter::process_as_normal(Packet* packet, uint32_t in_port) {
  Work work{packet, {}};
  work.context.in_port = work.context.in_phy_port = in_port;
  output(work, reserved_port::kNormal, 0, Last::kYes, 0);
  finish(work);
}

void Interpreter::act(Packet* packet, uint32_t in_port, const OpRange& actions) {
  Work work{packet, {}};
  work.context.in_port = work.context.in_phy_port = in_port;
  length_ = packet->length();
  run(work, actions, Last::kYes, 0);
  finish(work);
}

void Interpreter::finish(Work& work) {
  if (work.packet == nullptr) return;
  if (!work.sent) {
    lose(work, Loss::kNoAction);
  } else {
    work.packet->kill();
    work.packet = nullptr;
  }
}

void Interpreter::lose(Work& work, Loss loss) {
  sink_.lose(loss);
  if (work.packet != nullptr) work.packet->kill();
  work.packet = nullptr;
}

void Interpreter::walk(Work& work, int depth) {
  length_ = work.packet->length();
  ActionSet<kMostTables> set;
  for (uint32_t table = 0;;) {
    const PacketKey key = parse_packet(*work.packet, work.context);
    const AclMatch match = view_.find(table, key.w);
    Visits visits;
    visits.set_length(length_);
    work.table = static_cast<uint8_t>(table);
    work.entry = match.number;
    if (match.number == AclMatch::kNone) {
      visits.set_missed(table);
      count(visits);
      if (!view_.miss_to_controller()) return lose(work, Loss::kNoEntry);
      return packet_in(work, PacketForController::Reason::kNoMatch, 0xffff);
    }
    visits.set_entry(0, match.number);
    count(visits);
    const ProgramView program = view_.program(match.data);
    work.reason = program.has(program_flag::kTableMiss) ? PacketForController::Reason::kNoMatch
                                                        : PacketForController::Reason::kAction;
    if (program.meter() != 0) {
      const Datapath::Verdict verdict = datapath_.meter(program.meter() - 1, work.packet->length());
      if (verdict.drop) return lose(work, Loss::kMetered);
      if (verdict.drop_precedence != 0) raise_drop_precedence(*work.packet, verdict.drop_precedence);
    }
    const bool goes_on = program.has(program_flag::kGoto);
    if (program.has(program_flag::kClears)) {
      // Apply-actions come first, but they do not see the set.
      set.clear();
    }
    const bool more = goes_on || !program.write_actions().empty() || !set.empty();
    if (!run(work, program.apply_actions(), more ? Last::kNo : Last::kYes, depth)) return;
    set.write(program.write_actions());
    uint32_t metadata[2] = {static_cast<uint32_t>(work.context.metadata >> 32),
                            static_cast<uint32_t>(work.context.metadata)};
    program.write_metadata(metadata);
    work.context.metadata = uint64_t{metadata[0]} << 32 | metadata[1];
    if (!goes_on) break;
    table = program.goto_table();
  }
  uint32_t rank = 0;
  while (const uint32_t* const op = set.next(rank)) {
    const bool leaves = op_of(op_word(op)) == Op::kOutput || op_of(op_word(op)) == Op::kGroup;
    if (!act_on(work, op, leaves ? Last::kYes : Last::kNo, depth)) return;
  }
}

bool Interpreter::run(Work& work, const OpRange& ops, Last last, int depth) {
  for (const uint32_t* op = ops.begin(); op != ops.end();) {
    const uint32_t* const next = op + op_words(op_word(op));
    if (!act_on(work, op, next == ops.end() ? last : Last::kNo, depth)) return false;
    op = next;
  }
  return true;
}

bool Interpreter::act_on(Work& work, const uint32_t* op, Last last, int depth) {
  if (work.packet == nullptr) return false;
  switch (op_of(op_word(op))) {
    case Op::kOutput:
      output(work, op_port(op), op_half(op_word(op)), last, depth);
      return true;
    case Op::kGroup:
      group(work, op_slot(op_word(op)), last, depth);
      return true;
    default:
      break;
  }
  switch (act_on_frame(*work.packet, op, work.context)) {
    case Edited::kDone:
      return true;
    case Edited::kNoRoom:
      lose(work, Loss::kNoRoom);
      return false;
    case Edited::kInvalidTtl:
      if (datapath_.wants_invalid_ttl()) packet_in(work, PacketForController::Reason::kInvalidTtl, 0xffff);
      lose(work, Loss::kInvalidTtl);
      return false;
  }
  return false;
}

Packet* Interpreter::take(Work& work, Last last) {
  work.sent = true;
  if (last == Last::kYes) return std::exchange(work.packet, nullptr);
  Packet* const copy = work.packet->clone();
  if (copy == nullptr) sink_.lose(Loss::kNoBuffer);
  return copy;
}

void Interpreter::send(Work& work, uint32_t port, Last last) {
  Packet* const packet = take(work, last);
  if (packet == nullptr) return;
  pad_to_shortest(*packet, length_);
  sink_.send(port, packet);
}

void Interpreter::output(Work& work, uint32_t port, uint32_t max_length, Last last, int depth) {
  const uint32_t in_port = work.context.in_port;
  switch (port) {
    case reserved_port::kInPort:
      return send(work, in_port, last);
    case reserved_port::kController:
      return packet_in(work, work.reason, max_length);
    case reserved_port::kAll:
    case reserved_port::kFlood:
      return flood(work, port == reserved_port::kAll, last);
    case reserved_port::kNormal: {
      const uint32_t chosen = datapath_.normal(*work.packet, in_port);
      if (chosen == reserved_port::kFlood) return flood(work, false, last);
      if (chosen != 0 && chosen != in_port) send(work, chosen, last);
      return;
    }
    case reserved_port::kTable: {
      // The packet of a packet-out is looked up as if it had come by its port.
      if (depth >= kMostDepth) return sink_.lose(Loss::kTooDeep);
      Work again{take(work, last), {}};
      if (again.packet == nullptr) return;
      again.context.in_port = again.context.in_phy_port = in_port;
      const uint32_t length = length_;
      walk(again, depth + 1);
      finish(again);
      length_ = length;
      return;
    }
    default:
      // A packet goes back only by IN_PORT (ONF TS-012, section 4.5).
      if (port != in_port) send(work, port, last);
  }
}

void Interpreter::flood(Work& work, bool all, Last last) {
  const uint32_t in_port = work.context.in_port, ports = sink_.ports();
  // The last port gets the packet itself, so one is always waiting.
  uint32_t waiting = 0;
  for (uint32_t i = 1; i <= ports + 1; ++i) {
    const uint32_t port = i <= ports ? i : reserved_port::kLocal;
    if (port == in_port || (i > ports && !sink_.has_local()) || (!all && !datapath_.floods(port))) continue;
    if (waiting != 0) send(work, waiting, Last::kNo);
    waiting = port;
  }
  if (waiting != 0) send(work, waiting, last);
}

void Interpreter::packet_in(Work& work, PacketForController::Reason reason, uint32_t max_length) {
  work.sent = true;
  // A controller sees what a port would send; what follows sees the frame as it is.
  const uint32_t length = work.packet->length();
  pad_to_shortest(*work.packet, length_);
  datapath_.packet_in({*work.packet, reason, work.table, static_cast<uint16_t>(max_length), work.entry,
                       work.context.in_port, work.context.metadata, work.context.tunnel_id});
  work.packet->take(work.packet->length() - length);
}

void Interpreter::group(Work& work, uint32_t slot, Last last, int depth) {
  if (depth >= kMostDepth) return sink_.lose(Loss::kTooDeep);
  const GroupView group = view_.group(slot);
  if (!group.exists()) return;
  Visits visits;
  visits.set_length(length_);
  visits.set_group(slot, Visits::kNone);
  count(visits);
  if (group.kind() != GroupKind::kAll) {
    const uint32_t chosen = group.choose(select_hash(parse_packet(*work.packet, work.context)));
    if (chosen != GroupView::kNoBucket) bucket(work, group, chosen, last, depth);
    return;
  }
  const uint32_t buckets = group.buckets();
  for (uint32_t i = 0; i < buckets && work.packet != nullptr; ++i)
    bucket(work, group, i, i + 1 == buckets ? last : Last::kNo, depth);
}

void Interpreter::bucket(Work& work, const GroupView& group, uint32_t number, Last last, int depth) {
  Visits visits;
  visits.set_length(length_);
  visits.set_group(Visits::kNone, group.counter(number));
  count(visits);
  const bool sent = work.sent;
  Work copy = work;
  copy.packet = take(work, last);
  work.sent = sent;
  if (copy.packet == nullptr) return;
  copy.sent = false;
  // A miss is what the entry itself sends.
  copy.reason = PacketForController::Reason::kAction;
  run(copy, view_.program(group.program(number)).apply_actions(), Last::kYes, depth + 1);
  work.sent = sent || copy.sent;
  if (copy.packet == nullptr) return;
  if (last == Last::kYes) {
    copy.sent = work.sent;
    finish(copy);
  } else {
    copy.packet->kill();
  }
}

}  // namespace headrace::openflow
