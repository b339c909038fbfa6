// A link between two devices: two independent directions, each with a rate and a propagation time.
//
// A burst that enters an idle direction of rate C with head complete at h and tail at t leaves with
//   head = h + p/C               p: wire bytes of the first packet (it must be sent completely)
//   tail = max(t + q/C, h + s/C) q: wire bytes of the last packet, s: of the whole burst
// and propagation added to both. A burst that finds the direction busy starts when the one before it has been sent.
// The direction is lossless: while the far end withholds END_REQ it takes nothing more, and what is in flight waits in
// order (as in the headroom buffer of a link with priority flow control).
#pragma once

#include <array>
#include <functional>
#include <string>

#include "tlm/model.hpp"
#include "tlm/network.hpp"
#include "tlm/ring.hpp"

namespace tributary {

/// Speed of light in fibre as one-way latency: 4.9 us/km (refractive index 1.468).
inline constexpr double fibre_ps_per_km = 4.9e6;

struct link_direction_parameters {
  bits_per_s rate = 0;  ///< bits a second on the wire; > 0
  picoseconds propagation = 0;
  std::string label = {};  ///< how stories name it ("sin > fra"); empty: the module's name
};

struct link_direction_counters {
  std::uint64_t bursts_in = 0;
  std::uint64_t packets = 0;
  std::uint64_t payload_bytes_in = 0;
  std::uint64_t payload_bytes_out = 0;
  std::uint64_t wire_bytes_in = 0;
  std::uint64_t wire_bytes_out = 0;
  std::uint64_t dropped_bursts = 0;
  picoseconds busy = 0;     ///< time spent sending
  picoseconds blocked = 0;  ///< time held by back-pressure of the far end
};

class long_haul_link : public model, private network_receiver, private network_sender {
 public:
  /// Direction d enters at in[d] and leaves at out[d].
  std::array<network_target_socket, 2> in;
  std::array<network_initiator_socket, 2> out;

  long_haul_link(const sc_core::sc_module_name& name, const std::array<link_direction_parameters, 2>& directions);

  /// Called for every burst as it begins to leave, with the direction and the time; packet captures hang here.
  std::function<void(unsigned direction, picoseconds start, const burst_content& sent)> tap;

  [[nodiscard]] const link_direction_parameters& parameters(unsigned direction) const {
    return directions_[direction].parameters;
  }
  [[nodiscard]] const link_direction_counters& counters(unsigned direction) const {
    return directions_[direction].counters;
  }
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
  void deliver(unsigned direction);
  void finish_delivery(direction_state& direction, std::uint64_t payload_bytes, std::uint64_t wire_bytes);
  void arm(direction_state& direction);

  std::array<direction_state, 2> directions_;
};

}  // namespace tributary
