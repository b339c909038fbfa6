// The network protocol: TLM-2.0 sockets that carry bursts.
//
// Phases, by nb_transport only:
//   forward   BEGIN_REQ  the burst's head packet is complete at the receiver at (now + t); burst.head says the same
//   backward  END_REQ    the receiver takes the burst and is ready for the next one at (now + t)
// END_REQ comes as a return value (TLM_UPDATED) or later by nb_transport_bw. Withholding it is back-pressure: the
// sender must not begin another burst on that socket before END_REQ (plus its annotated time) is reached, and between
// BEGIN_REQ and END_REQ nobody may change the burst. With END_REQ the burst belongs to the receiver. There is no
// response: what travels back is a burst of its own.
#pragma once

#include <systemc>
#include <tlm>

#include "tlm/burst.hpp"

namespace tributary {

struct network_protocol {
  using tlm_payload_type = burst;
  using tlm_phase_type = tlm::tlm_phase;
};

/// What a module implements to receive bursts; `port` is the number its socket was made with.
class network_receiver {
 public:
  virtual tlm::tlm_sync_enum receive(unsigned port, burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) = 0;

 protected:
  ~network_receiver() = default;
};

/// What a module implements to learn that a burst it sent was taken.
class network_sender {
 public:
  virtual tlm::tlm_sync_enum sent(unsigned port, burst& outgoing, tlm::tlm_phase& phase, sc_core::sc_time& t) = 0;

 protected:
  ~network_sender() = default;
};

/// A direction of a link or a port of a router may stay unused, so sockets need not be bound.
namespace network_socket_types {
using target = tlm::tlm_target_socket<64, network_protocol, 1, sc_core::SC_ZERO_OR_MORE_BOUND>;
using initiator = tlm::tlm_initiator_socket<64, network_protocol, 1, sc_core::SC_ZERO_OR_MORE_BOUND>;
}  // namespace network_socket_types

class network_target_socket : public network_socket_types::target, private tlm::tlm_fw_transport_if<network_protocol> {
 public:
  network_target_socket(const char* name, network_receiver& host, unsigned port = 0);

 private:
  tlm::tlm_sync_enum nb_transport_fw(burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) override {
    return host_.receive(port_, incoming, phase, t);
  }
  void b_transport(burst& incoming, sc_core::sc_time& t) override;
  bool get_direct_mem_ptr(burst& incoming, tlm::tlm_dmi& dmi) override;
  unsigned transport_dbg(burst& incoming) override;

  network_receiver& host_;
  unsigned port_;
};

class network_initiator_socket : public network_socket_types::initiator,
                                 private tlm::tlm_bw_transport_if<network_protocol> {
 public:
  network_initiator_socket(const char* name, network_sender& host, unsigned port = 0);

  /// Sends BEGIN_REQ `after` from now. True: taken, and `after` becomes the time until the next burst may begin.
  /// False: not yet; END_REQ will arrive through network_sender::sent.
  [[nodiscard]] bool begin(burst& outgoing, sc_core::sc_time& after) {
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    return (*this)->nb_transport_fw(outgoing, phase, after) != tlm::TLM_ACCEPTED;
  }

 private:
  tlm::tlm_sync_enum nb_transport_bw(burst& outgoing, tlm::tlm_phase& phase, sc_core::sc_time& t) override {
    return host_.sent(port_, outgoing, phase, t);
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64 first, sc_dt::uint64 last) override;

  network_sender& host_;
  unsigned port_;
};

/// Late END_REQ for a burst whose BEGIN_REQ was answered TLM_ACCEPTED.
inline void end_request(network_target_socket& socket, burst& taken) {
  tlm::tlm_phase phase = tlm::END_REQ;
  sc_core::sc_time t = sc_core::SC_ZERO_TIME;
  socket->nb_transport_bw(taken, phase, t);
}

}  // namespace tributary
