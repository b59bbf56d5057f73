#include "src/io/linux/bpf.hh"

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace headrace::io {

namespace {

// In linux/bpf.h only since Linux 6.6.
constexpr uint32_t kTcxIngress = 46;
constexpr int32_t kTcDrop = 2;  // TC_ACT_SHOT

int bpf(int command, bpf_attr& attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

bpf_insn instruction(uint8_t code, uint8_t to, uint8_t from, int16_t offset, int32_t value) {
  bpf_insn i{};
  i.code = code;
  i.dst_reg = to & 15;
  i.src_reg = from & 15;
  i.off = offset;
  i.imm = value;
  return i;
}

Descriptor load(uint32_t type, std::initializer_list<bpf_insn> program) {
  static const char kLicense[] = "Apache-2.0";
  bpf_attr a{};
  a.prog_type = type;
  a.insns = reinterpret_cast<uint64_t>(program.begin());
  a.insn_cnt = static_cast<uint32_t>(program.size());
  a.license = reinterpret_cast<uint64_t>(kLicense);
  return Descriptor(bpf(BPF_PROG_LOAD, a));
}

Descriptor link(const Descriptor& program, int interface, uint32_t where, uint32_t flags) {
  bpf_attr a{};
  a.link_create.prog_fd = static_cast<uint32_t>(program.get());
  a.link_create.target_ifindex = static_cast<uint32_t>(interface);
  a.link_create.attach_type = where;
  a.link_create.flags = flags;
  return Descriptor(bpf(BPF_LINK_CREATE, a));
}

}  // namespace

std::unique_ptr<XdpRedirect> XdpRedirect::attach(int interface, int queues, XdpMode mode) {
  // Before Linux 5.11 maps count as locked memory. A limit that stays is noticed below.
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  (void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
  auto x = std::make_unique<XdpRedirect>();
  bpf_attr a{};
  a.map_type = BPF_MAP_TYPE_XSKMAP;
  a.key_size = a.value_size = sizeof(uint32_t);
  a.max_entries = static_cast<uint32_t>(queues);
  x->map_ = Descriptor(bpf(BPF_MAP_CREATE, a));
  if (!x->map_) return nullptr;
  // return bpf_redirect_map(&map, context->rx_queue_index, XDP_PASS);
  x->program_ =
      load(BPF_PROG_TYPE_XDP, {instruction(BPF_LDX | BPF_W | BPF_MEM, 2, 1, offsetof(xdp_md, rx_queue_index), 0),
                               instruction(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, x->map_.get()),
                               instruction(0, 0, 0, 0, 0), instruction(BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, XDP_PASS),
                               instruction(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map),
                               instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)});
  if (!x->program_) return nullptr;
  x->link_ = link(x->program_, interface, BPF_XDP, mode == XdpMode::kNative ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
  return x->link_ ? std::move(x) : nullptr;
}

bool XdpRedirect::set(int queue, int socket) {
  uint32_t key = static_cast<uint32_t>(queue), value = static_cast<uint32_t>(socket);
  bpf_attr a{};
  a.map_fd = static_cast<uint32_t>(map_.get());
  a.key = reinterpret_cast<uint64_t>(&key);
  if (socket < 0) return bpf(BPF_MAP_DELETE_ELEM, a) == 0 || errno == ENOENT;
  a.value = reinterpret_cast<uint64_t>(&value);
  return bpf(BPF_MAP_UPDATE_ELEM, a) == 0;
}

Descriptor attach_tcx_drop(int interface) {
  const Descriptor program = load(BPF_PROG_TYPE_SCHED_CLS, {instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, kTcDrop),
                                                            instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)});
  if (!program) return Descriptor();
  return link(program, interface, kTcxIngress, 0);
}

}  // namespace headrace::io
