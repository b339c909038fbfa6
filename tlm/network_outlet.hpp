// A socket with a queue in front of it: bursts leave in order, control before data, as fast as the receiver takes them.
#pragma once

#include <functional>
#include <string>
#include <systemc>

#include "tlm/network.hpp"
#include "tlm/ring.hpp"

namespace tributary {

class network_outlet : private network_sender {
 public:
  network_initiator_socket socket;

  /// `taken` is called after the receiver took a burst, with its kind and whether it ended its chunk.
  network_outlet(const std::string& name, std::function<void(burst_kind kind, bool last_of_chunk)> taken);

  void push(burst& outgoing);
  [[nodiscard]] bool empty() const { return queues_[0].empty() && queues_[1].empty(); }

 private:
  tlm::tlm_sync_enum sent(unsigned port, burst& outgoing, tlm::tlm_phase& phase, sc_core::sc_time& t) override;
  [[nodiscard]] ring<burst*>& next_queue() { return queues_[queues_[0].empty() ? 1 : 0]; }
  void arm();
  void send();
  void done(burst_kind kind, bool last_of_chunk, picoseconds ready);

  std::function<void(burst_kind, bool)> taken_;
  ring<burst*> queues_[2];           ///< control, data
  ring<burst*>* sending_ = nullptr;  ///< queue whose front has begun and waits for END_REQ
  picoseconds ready_ = 0;
  sc_core::sc_event event_;
};

}  // namespace tributary
