#include "tlm/network.hpp"

namespace tributary {

network_target_socket::network_target_socket(const char* name, network_receiver& host, unsigned port)
    : network_socket_types::target(name), host_(host), port_(port) {
  bind(static_cast<tlm::tlm_fw_transport_if<network_protocol>&>(*this));
}

void network_target_socket::b_transport(burst& /*incoming*/, sc_core::sc_time& /*t*/) {
  SC_REPORT_ERROR("tributary/network", "the network protocol has no b_transport; use nb_transport");
}

bool network_target_socket::get_direct_mem_ptr(burst& /*incoming*/, tlm::tlm_dmi& /*dmi*/) { return false; }

unsigned network_target_socket::transport_dbg(burst& /*incoming*/) { return 0; }

network_initiator_socket::network_initiator_socket(const char* name, network_sender& host, unsigned port)
    : network_socket_types::initiator(name), host_(host), port_(port) {
  bind(static_cast<tlm::tlm_bw_transport_if<network_protocol>&>(*this));
}

void network_initiator_socket::invalidate_direct_mem_ptr(sc_dt::uint64 /*first*/, sc_dt::uint64 /*last*/) {}

}  // namespace tributary
