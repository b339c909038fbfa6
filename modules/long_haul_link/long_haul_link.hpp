// A link between two devices: two independent directions, each with a rate and a propagation time.
//
// A burst that enters an idle direction of rate C with head complete at h and tail at t leaves with
//   head = h + p/C               p: wire bytes of the first packet (it must be sent completely)
//   tail = max(t + q/C, h + s/C) q: wire bytes of the last packet, s: of the whole burst
// and propagation added to both. A burst that finds the direction busy starts when the one before it has been sent.
// While the far end withholds END_REQ a direction takes nothing more, and what is in flight waits in order (as in the
// headroom buffer of a link with priority flow control).
//
// Impairments, all drawn from the run's seed and alike at both fidelities:
//   loss     per packet, independent or by the Gilbert-Elliott chain (Gilbert 1960, Elliott 1963): the state changes
//   with
//            probability to_bad or to_good before each packet, a packet is lost with in_good or in_bad
//   outages  a packet of which any part is put on the line while it is down is lost
//   jitter   extra delay, uniform in [0, jitter], drawn anew for every `jitter_interval` of departure time. Order is
//   kept
//            (a packet never arrives before the one before it) unless `reorders`
//   fec      a fixed delay of the coder, part of the propagation
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "tlm/model.hpp"
#include "tlm/network.hpp"
#include "tlm/ring.hpp"

namespace tributary {

/// Speed of light in fibre as one-way latency: 4.9 us/km (refractive index 1.468).
inline constexpr double fibre_ps_per_km = 4.9e6;

/// Packet loss: independent with `in_good` when to_bad is zero, else a Gilbert-Elliott chain that starts good.
struct loss_parameters {
  double in_good = 0;  ///< probability to lose a packet in the good state
  double in_bad = 1;
  double to_bad = 0;   ///< per packet
  double to_good = 1;  ///< per packet

  [[nodiscard]] bool any() const { return in_good > 0 || (to_bad > 0 && in_bad > 0); }
  /// Long-run share of packets lost.
  [[nodiscard]] double mean() const {
    const double bad = to_bad > 0 ? to_bad / (to_bad + to_good) : 0;
    return (1 - bad) * in_good + bad * in_bad;
  }
};

/// The line is down from `from` to just before `to`, absolute.
struct outage {
  picoseconds from = 0;
  picoseconds to = 0;
};

struct link_direction_parameters {
  bits_per_s rate = 0;  ///< bits a second on the wire; > 0
  picoseconds propagation = 0;
  std::string label = {};  ///< how stories name it ("sin > fra"); empty: the module's name
  picoseconds fec_latency = 0;
  picoseconds jitter = 0;                       ///< largest extra delay
  picoseconds jitter_interval = 1'000'000'000;  ///< > 0
  bool reorders = false;
  loss_parameters loss = {};
  std::vector<outage> outages = {};  ///< in order, apart from each other
  std::uint64_t seed = 0;            ///< of this direction's draws
  // Cut-through devices: a far end that forwards on the header gets the head `header_bytes` after it began to arrive;
  // of a near end that does, the tail passes without waiting to be whole.
  std::uint32_t cut_through_from = 0;  ///< header bytes the near end needs; 0: it stores packets
  std::uint32_t cut_through_to = 0;    ///< header bytes the far end needs; 0: it stores packets
};

struct link_direction_counters {
  std::uint64_t bursts_in = 0;
  std::uint64_t packets = 0;
  std::uint64_t payload_bytes_in = 0;
  std::uint64_t payload_bytes_out = 0;
  std::uint64_t wire_bytes_in = 0;
  std::uint64_t wire_bytes_out = 0;
  std::uint64_t lost_packets = 0;
  std::uint64_t lost_payload_bytes = 0;
  std::uint64_t lost_wire_bytes = 0;
  std::uint64_t outage_packets = 0;  ///< of lost_packets: because the line was down
  picoseconds busy = 0;              ///< time spent sending
  picoseconds blocked = 0;           ///< time held by back-pressure of the far end
};

class long_haul_link : public model, private network_receiver, private network_sender {
 public:
  /// Direction d enters at in[d] and leaves at out[d].
  std::array<network_target_socket, 2> in;
  std::array<network_initiator_socket, 2> out;

  long_haul_link(const sc_core::sc_module_name& name, const std::array<link_direction_parameters, 2>& directions,
                 burst_pool& pool);

  /// Called for every burst as it begins to leave, with the direction and the time; packet captures hang here.
  std::function<void(unsigned direction, picoseconds start, const burst_content& sent)> tap;

  [[nodiscard]] const link_direction_parameters& parameters(unsigned direction) const {
    return directions_[direction].parameters;
  }
  [[nodiscard]] const link_direction_counters& counters(unsigned direction) const {
    return directions_[direction].counters;
  }
  /// Wire bytes of the bursts under way, counted one by one.
  [[nodiscard]] std::uint64_t wire_bytes_under_way(unsigned direction) const;
  [[nodiscard]] std::string waits_for() const override;

 private:
  struct direction_state {
    link_direction_parameters parameters;
    link_direction_counters counters;
    ring<burst*> in_flight;  ///< ordered by head at the far end
    picoseconds sending_until = 0;
    picoseconds blocked_since = 0;
    burst* waiting_in = nullptr;  ///< begun while the far end blocked us; taken when it no longer does
    bool blocked = false;         ///< the front of in_flight has begun and waits for the far end
    picoseconds far_end_ready = 0;
    sc_core::sc_event deliver;
    bool impaired = false;        ///< losses, outages or jitter to draw
    std::uint64_t loss_good = 0;  ///< thresholds of the draws
    std::uint64_t loss_bad = 0;
    std::uint64_t to_bad = 0;
    std::uint64_t to_good = 0;
    bool bad = false;  ///< state of the Gilbert-Elliott chain
    std::uint64_t chain_draws = 0;
    picoseconds last_arrival = 0;  ///< tail of the burst before, at the far end
    std::size_t next_outage = 0;   ///< those before it are over
    probe* busy = nullptr;
    probe* stall = nullptr;
    probe* requests = nullptr;
    probe* accepts = nullptr;
    std::uint64_t requested = 0;
    probe* bytes_sent = nullptr;
    probe* bytes_in_flight = nullptr;
  };

  tlm::tlm_sync_enum receive(unsigned direction, burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  tlm::tlm_sync_enum sent(unsigned direction, burst& outgoing, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  void transmit(unsigned direction_number, burst& taken, picoseconds start);
  void lose_packets(direction_state& direction, burst& taken, picoseconds start, picoseconds tail) const;
  [[nodiscard]] bool lost(direction_state& direction, const burst_content& content, std::uint32_t packet) const;
  static void delay_by_jitter(direction_state& direction, burst& taken, picoseconds start, picoseconds tail);
  void deliver(unsigned direction);
  void finish_delivery(direction_state& direction, std::uint64_t payload_bytes, std::uint64_t wire_bytes);
  void arm(direction_state& direction);

  std::array<direction_state, 2> directions_;
  burst_pool& pool_;
};

}  // namespace tributary
