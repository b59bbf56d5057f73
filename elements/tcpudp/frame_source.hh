#pragma once
/// \file
/// What the sources of fixed Ethernet frames share: FastUDPSource, FastUDPFlows and FastTCPFlows.

#include <string>
#include <string_view>

#include "headrace/element.hh"
#include "headrace/rate_pacer.hh"
#include "headrace/single_writer.hh"

namespace headrace {

/// An Ethernet frame with IPv4 and a UDP or TCP header whose ports are still open. Its checksum is summed once, without
/// the ports.
class FrameTemplate {
 public:
  static constexpr uint32_t kShortest = 60, kLongest = 14 + 65535;

  struct Ends {
    EtherAddress src_ether, dst_ether;
    IpAddress src, dst;
  };
  /// \param header of UDP or TCP, ports and checksum zero
  /// \param length of the frame, kShortest to kLongest; the payload is zero
  void build(const Ends& ends, uint8_t protocol, std::string_view header, uint32_t length, bool checksum);
  void build_udp(const Ends& ends, uint32_t length, bool checksum);
  /// A packet with these ports, MAC and network header marked and the destination annotation set; null without a buffer.
  Packet* make(uint16_t src_port, uint16_t dst_port) const;

 private:
  std::string bytes_;
  size_t checksum_at_ = 0;  // 0: no checksum
  uint16_t sum_ = 0;        // of the segment and its pseudo header, without ports
  bool zero_means_none_ = false;
};

/// Sends frames at a rate, pushed or pulled.
class FrameSource : public Element {
 public:
  static constexpr Ports kPorts{"0/1"};

  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  int pull(int port, Batch& batch, int max) override;
  bool run_task(Task& task) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

 protected:
  /// Arguments that all have, though not in the same places.
  struct Settings {
    uint32_t rate = 0;
    int64_t limit = -1;
    uint32_t length = 64;
    FrameTemplate::Ends ends;
    bool active = true;
    bool stop = false;
  } settings_;
  uint32_t burst_ = 32;

  /// After complete(): checks the length and starts the pace.
  Status check_settings(Errors& errors);
  /// The next frame, or null without a buffer.
  virtual Packet* next_frame() = 0;
  /// Frames still due when LIMIT is reached.
  virtual bool has_last_frames() { return false; }
  virtual Packet* last_frame() { return nullptr; }
  /// Sends begin anew.
  virtual void restart() {}
  /// Handlers have changed what can be sent.
  void changed();

 private:
  void reset();
  void set_rate();
  /// Wakes the task, or the pullers.
  void awake();
  bool at_limit() const { return settings_.limit >= 0 && count_ >= static_cast<uint64_t>(settings_.limit); }
  /// Appends up to `most` frames.
  int make(Batch& batch, int most);
  uint64_t average_rate() const;

  RatePacer pacer_;
  Timestamp wait_;  // from packet to packet, 0 without a rate
  SingleWriter<uint64_t> count_;
  SingleWriter<int64_t> first_, last_;  // steady time of the first frame, and of that which reached LIMIT; 0: not yet
  bool stopped_ = false;
  Task task_{this};
  Timer timer_{this, [this](Timer&) { awake(); }};
  Notifier nonempty_;
};

}  // namespace headrace
