// Interfaces by way of libpcap: link layers that the other methods do not know, and filters on VLAN tags.

#include <pcap/pcap.h>

#include <cerrno>

#include "src/io/linux/partial_checksum.hh"
#include "src/io/linux/port.hh"
#include "src/io/pcap/live.hh"

namespace headrace::io {

namespace {

class PcapReceiver final : public PortReceiver {
 public:
  PcapReceiver(Interface interface, PortRequest request, std::unique_ptr<LiveInterface> live)
      : PortReceiver(std::move(interface)), request_(std::move(request)), live_(std::move(live)) {}
  PortMethod method() const override { return PortMethod::kPcap; }
  int link_type() const override { return live_->link_type(); }
  std::vector<int> descriptors() const override { return {live_->fd()}; }
  bool fits(const PortRequest& r) const override {
    return r.outbound == request_.outbound && r.promiscuous == request_.promiscuous &&
           r.snap_length == request_.snap_length && r.link_type == request_.link_type;
  }
  Status start(const PortRequest& request, Errors& errors) override {
    running_ = true;
    // libpcap loses what arrives while it sets a filter.
    if (filter_ == request.filter) return {};
    const Status status = live_->set_filter(request.filter, errors);
    if (status) filter_ = request.filter;
    return status;
  }
  void stop() override {
    running_ = false;
    (void)live_->block();
    filter_.reset();
  }
  void receive(Batch& batch, int max, uint32_t headroom, bool timestamps, ReceiveLosses& losses) override {
    const int first = batch.size();
    if (live_->receive(batch, max, headroom, timestamps, losses.no_buffer) < 0) error_ = EIO;
    if (!interface_.is_virtual || link_type() != DLT_EN10MB) return;
    for (int i = first; i < batch.size(); ++i) finish_partial_checksum(batch[i]->data(), batch[i]->length());
  }
  std::optional<uint64_t> kernel_drops() override { return live_->kernel_drops(); }
  int take_error() override { return std::exchange(error_, 0); }

 private:
  const PortRequest request_;
  std::unique_ptr<LiveInterface> live_;
  std::optional<std::string> filter_;  // none: nothing is captured
  int error_ = 0;
};

class PcapSender final : public PortSender {
 public:
  PcapSender(Interface interface, std::unique_ptr<LiveInterface> live)
      : PortSender(std::move(interface)), live_(std::move(live)) {}
  PortMethod method() const override { return PortMethod::kPcap; }
  int descriptor() const override { return live_->fd(); }
  int send(Packet* const* packets, int n) override {
    int sent = 0;
    while (sent < n && live_->send(*packets[sent])) ++sent;
    return sent;
  }

 private:
  std::unique_ptr<LiveInterface> live_;
};

}  // namespace

Status check_filter(const std::string& text, Errors& errors) {
  pcap* compiler = pcap_open_dead(DLT_EN10MB, 65535);
  bpf_program program;
  const bool good = compiler && pcap_compile(compiler, &program, text.c_str(), 1, PCAP_NETMASK_UNKNOWN) == 0;
  Status status;
  if (good)
    pcap_freecode(&program);
  else
    status = errors.error("filter: {}", compiler ? pcap_geterr(compiler) : "out of memory");
  if (compiler) pcap_close(compiler);
  return status;
}

std::unique_ptr<PortReceiver> open_pcap_receiver(const Interface& interface, const PortRequest& request,
                                                 Errors& errors) {
  LiveInterface::Options options;
  options.promiscuous = request.promiscuous;
  options.outbound = request.outbound;
  options.link_type = request.link_type;
  if (request.snap_length > 0) options.snap_length = request.snap_length;
  auto live = LiveInterface::open(interface.name, options, errors);
  return live ? std::make_unique<PcapReceiver>(interface, request, std::move(live)) : nullptr;
}

std::unique_ptr<PortSender> open_pcap_sender(const Interface& interface, Errors& errors) {
  LiveInterface::Options options;
  options.capture = false;
  auto live = LiveInterface::open(interface.name, options, errors);
  return live ? std::make_unique<PcapSender>(interface, std::move(live)) : nullptr;
}

}  // namespace headrace::io
