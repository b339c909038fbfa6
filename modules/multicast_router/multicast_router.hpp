// A router that copies a burst to every port its (group, source) entry names.
//
// Store and forward: a burst is forwarded `forwarding_latency` after its head packet is in. Copies share the payload.
// Each port has two queues, control before data, with one byte limit. The router is lossless: a burst that does not fit
// every queue it must enter stays with the sender (END_REQ withheld) until it does.
#pragma once

#include <memory>
#include <vector>

#include "tlm/model.hpp"
#include "tlm/network.hpp"
#include "tlm/register_maps.hpp"
#include "tlm/ring.hpp"
#include "tlm/timed_queue.hpp"

namespace tributary {

struct router_parameters {
  unsigned id = 0;
  unsigned ports = 0;  ///< 1 to 64
  picoseconds forwarding_latency = 0;
  std::uint64_t queue_bytes = 64 << 20;  ///< per port, wire bytes; a burst larger than this is admitted alone
  sc_core::sc_time register_access_time;
};

struct router_port_counters {
  std::uint64_t bursts = 0;
  std::uint64_t wire_bytes = 0;
  std::uint64_t queue_high_water_bytes = 0;
};

class multicast_router : public model, private network_receiver, private network_sender {
 public:
  std::vector<std::unique_ptr<network_target_socket>> in;      ///< port p receives at in[p]
  std::vector<std::unique_ptr<network_initiator_socket>> out;  ///< and sends at out[p]
  register_block control;

  multicast_router(const sc_core::sc_module_name& name, const router_parameters& parameters, burst_pool& pool);

  [[nodiscard]] const router_port_counters& counters(unsigned port) const { return ports_[port].counters; }
  [[nodiscard]] std::uint64_t unrouted_bursts() const { return unrouted_bursts_; }
  [[nodiscard]] std::string waits_for() const override;

 private:
  struct port_state {
    ring<burst*> queues[2];  ///< control, data
    std::uint64_t queued_bytes = 0;
    picoseconds busy_until = 0;
    bool withheld = false;   ///< a burst has begun and waits for END_REQ
    bool scheduled = false;  ///< the send queue holds this port
    burst* blocked_in = nullptr;
    router_port_counters counters;
    probe* queue = nullptr;
  };

  tlm::tlm_sync_enum receive(unsigned port, burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  tlm::tlm_sync_enum sent(unsigned port, burst& outgoing, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  void registers_written(unsigned index, std::uint64_t value);
  [[nodiscard]] std::uint64_t ports_for(const burst_content& content) const;
  [[nodiscard]] bool fits(std::uint64_t egress, std::uint64_t wire_bytes) const;
  void forward(burst& taken, std::uint64_t egress);
  void enqueue(unsigned port, burst& copy);
  void send(unsigned port, burst& next, picoseconds when);
  void send_due();
  void schedule(unsigned port);
  void retry_blocked();

  router_parameters parameters_;
  burst_pool& pool_;
  std::vector<port_state> ports_;
  std::vector<std::vector<std::uint64_t>> table_;  ///< [group][source] -> ports
  timed_queue<unsigned> send_queue_;
  unsigned blocked_inputs_ = 0;
  std::uint64_t unrouted_bursts_ = 0;
};

}  // namespace tributary
