// A router that copies a burst to every port its (group, source) entry names.
//
// Forwarding     store and forward: a burst goes on `forwarding_latency` after its head packet is in. Cut-through:
// after
//                its header; the links around it do that part (long_haul_link), the router's share is the latency.
// Copies         share the payload. All copies of a burst pass an engine of `replication_rate` before they are queued.
// Queues         each port has a control queue, strictly first, and data queues: one a source, served by deficit round
//                robin (Shreedhar and Varghese 1995), or one for all. Limits in wire bytes: a port each, or shared.
// A full queue   back_pressure: a burst that does not fit every queue it must enter stays with the sender (END_REQ
//                withheld) until it does; docs/network.md says when that cannot deadlock. drop_tail: the packets that
//                do not fit are lost.
// ECN            a burst that finds more than `ecn_bytes` waiting at its port is marked.
#pragma once

#include <memory>
#include <vector>

#include "tlm/model.hpp"
#include "tlm/network.hpp"
#include "tlm/register_maps.hpp"
#include "tlm/ring.hpp"
#include "tlm/timed_queue.hpp"

namespace tributary {

enum class queue_discipline : std::uint8_t { fifo, deficit_round_robin };
enum class full_queue : std::uint8_t { back_pressure, drop_tail };

struct router_parameters {
  unsigned id = 0;
  unsigned ports = 0;  ///< 1 to 64
  picoseconds forwarding_latency = 0;
  std::uint64_t queue_bytes = 64 << 20;  ///< per port, wire bytes; a burst larger than this is admitted alone
  std::uint64_t shared_bytes = 0;        ///< of all ports together; 0: only the limits of the ports count
  queue_discipline discipline = queue_discipline::deficit_round_robin;
  std::uint64_t quantum_bytes = 64 << 10;  ///< what a source may send in its turn, wire bytes; > 0
  full_queue when_full = full_queue::back_pressure;
  std::uint64_t ecn_bytes = 0;      ///< mark above; 0: never
  bits_per_s replication_rate = 0;  ///< copies a burst's wire bytes at this rate, all copies together; 0: at once
  sc_core::sc_time register_access_time;
};

struct router_port_counters {
  std::uint64_t bursts = 0;
  std::uint64_t wire_bytes = 0;
  std::uint64_t queue_high_water_bytes = 0;
  std::uint64_t ecn_marked_packets = 0;
  std::uint64_t dropped_packets = 0;  ///< of a full queue
  std::uint64_t dropped_wire_bytes = 0;
};

class multicast_router : public model, private network_receiver, private network_sender {
 public:
  std::vector<std::unique_ptr<network_target_socket>> in;      ///< port p receives at in[p]
  std::vector<std::unique_ptr<network_initiator_socket>> out;  ///< and sends at out[p]
  register_block control;

  multicast_router(const sc_core::sc_module_name& name, const router_parameters& parameters, burst_pool& pool);

  [[nodiscard]] const router_port_counters& counters(unsigned port) const { return ports_[port].counters; }
  [[nodiscard]] std::uint64_t unrouted_bursts() const { return unrouted_bursts_; }
  [[nodiscard]] const router_parameters& parameters() const { return parameters_; }
  [[nodiscard]] std::string waits_for() const override;

 private:
  struct stream_queue {
    ring<burst*> bursts;
    std::uint64_t deficit = 0;
  };
  struct port_state {
    ring<burst*> control;
    std::vector<stream_queue> streams;  ///< by source, or one
    ring<std::uint32_t> active;         ///< streams with something to send, in turn
    std::uint64_t queued_bytes = 0;
    picoseconds busy_until = 0;
    bool withheld = false;   ///< a burst has begun and waits for END_REQ
    bool scheduled = false;  ///< the send queue holds this port
    burst* blocked_in = nullptr;
    router_port_counters counters;
    probe* queue = nullptr;
  };
  using egress_table = std::vector<std::vector<std::uint64_t>>;

  tlm::tlm_sync_enum receive(unsigned port, burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  tlm::tlm_sync_enum sent(unsigned port, burst& outgoing, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  void registers_written(unsigned index, std::uint64_t value);
  [[nodiscard]] std::uint64_t ports_for(const burst_content& content) const;
  [[nodiscard]] bool fits(std::uint64_t egress, std::uint64_t wire_bytes) const;
  void forward(burst& taken, std::uint64_t egress);
  void enqueue(unsigned port, burst& copy);
  /// The queue whose front is next, by priority and turn; advances turns. Not empty: the port has bursts waiting.
  [[nodiscard]] ring<burst*>& next_queue(port_state& port) const;
  [[nodiscard]] burst& next_burst(port_state& port) const { return *next_queue(port).front(); }
  [[nodiscard]] burst& take_next(port_state& port) const;
  [[nodiscard]] bool drop_overflow(port_state& port, burst& copy);
  void send(unsigned port, burst& next, picoseconds when);
  void send_due();
  void schedule(unsigned port);
  void retry_blocked();

  router_parameters parameters_;
  burst_pool& pool_;
  std::vector<port_state> ports_;
  egress_table groups_;             ///< [group][source] -> ports
  egress_table unicast_;            ///< [group - unicast_group][source] -> ports
  std::uint64_t queued_bytes_ = 0;  ///< over all ports
  picoseconds replication_free_ = 0;
  timed_queue<unsigned> send_queue_;
  unsigned blocked_inputs_ = 0;
  std::uint64_t unrouted_bursts_ = 0;
};

}  // namespace tributary
