#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Pulls from its inputs in proportion to their tickets (stride scheduling: Waldspurger and Weihl, 1995).
///
///     StrideSched(TICKETS0, ..., TICKETSn-1)
///
/// One or more inputs and one output, pull. An input without a packet loses its turn. Inputs known to be empty are
/// skipped.
///
/// TICKETSi: share of input i, 0 to 32768; an input with 0 is never pulled.
///
/// Handlers: `tickets0` ... (rw).
class StrideSched final : public Element {
 public:
  static constexpr Ports kPorts{"1-/1"};
  static constexpr Processing kProcessing{"l/l"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  bool can_live_reconfigure() const override { return true; }
  std::string configuration() const override;
  void add_handlers(Handlers& handlers) override;
  int pull(int port, Batch& batch, int max) override;

 private:
  struct Client {
    int tickets = 0;
    uint32_t stride = 0;
    uint32_t pass = 0;
    Signal signal;
  };
  bool pull_one(Batch& batch);
  /// Puts an input before the others of equal pass.
  void insert(int client);
  void set_tickets(int client, int tickets, Errors& errors);

  std::vector<Client> clients_;
  std::vector<int> order_;  // inputs with tickets, lowest pass first
};

HEADRACE_ELEMENT(StrideSched)

}  // namespace headrace
