// Traffic for module tests: a source that sends prepared bursts and a sink that records what arrives.
#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <deque>
#include <functional>
#include <systemc>
#include <vector>

#include "tlm/model.hpp"
#include "tlm/network.hpp"

namespace tributary::test {

inline constexpr picoseconds us = 1'000'000;
inline constexpr picoseconds ms = 1'000'000'000;

/// A data burst of a whole chunk.
inline burst_content chunk_content(unsigned source, std::uint32_t chunk, std::uint32_t bytes, std::uint16_t group = 0) {
  burst_content content;
  content.source = static_cast<std::uint16_t>(source);
  content.group = group;
  content.chunk = chunk;
  content.payload_bytes = content.chunk_bytes = bytes;
  content.contributors = site_bit(source);
  return content;
}

/// Sends bursts in order, each no earlier than its time and only when the receiver is ready.
class burst_source : public model, private network_sender {
 public:
  network_initiator_socket out{"out", *this};

  burst_source(const sc_core::sc_module_name& name, burst_pool& pool, wire_format format = {})
      : model(name), pool_(pool), format_(format) {
    sc_core::sc_spawn([this] { run(); }, "run");
  }

  /// `spread`: the tail arrives that much after the head (a burst trickling in from a slower line).
  void add(picoseconds when, const burst_content& content, picoseconds spread = 0) {
    queue_.push_back({when, content, spread});
  }
  std::vector<picoseconds> taken;  ///< when each was taken

 private:
  struct entry {
    picoseconds when;
    burst_content content;
    picoseconds spread;
  };
  void run() {
    while (!queue_.empty()) {
      const entry next = queue_.front();
      queue_.pop_front();
      wait(until(std::max(next.when, ready_)));
      burst& outgoing = pool_.make(next.content, format_);
      outgoing.starts_at(now());
      outgoing.departed = now();
      outgoing.tail = outgoing.arrival_tail = now() + next.spread;
      sc_core::sc_time after = sc_core::SC_ZERO_TIME;
      if (out.begin(outgoing, after)) {
        ready_ = now() + after.value();
      } else {
        wait(accepted_);
      }
      taken.push_back(now());
    }
  }
  tlm::tlm_sync_enum sent(unsigned, burst&, tlm::tlm_phase&, sc_core::sc_time& t) override {
    ready_ = now() + t.value();
    accepted_.notify(sc_core::SC_ZERO_TIME);
    return tlm::TLM_ACCEPTED;
  }

  burst_pool& pool_;
  wire_format format_;
  std::deque<entry> queue_;
  picoseconds ready_ = 0;
  sc_core::sc_event accepted_;
};

struct arrival_record {
  picoseconds head = 0;
  picoseconds tail = 0;
  burst_content content;
  journey spent;
  picoseconds departed = 0;
  std::uint32_t payload_bytes = 0;  ///< still there
  bool ecn_marked = false;
};

/// Records and releases everything. `closed_until`: withholds END_REQ before that time.
class burst_sink : public model, private network_receiver {
 public:
  network_target_socket in{"in", *this};
  std::vector<arrival_record> arrivals;
  picoseconds closed_until = 0;

  burst_sink(const sc_core::sc_module_name& name, burst_pool& pool) : model(name), pool_(pool) {
    sc_core::sc_spawn([this] { open(); }, "open");
  }

 private:
  tlm::tlm_sync_enum receive(unsigned, burst& incoming, tlm::tlm_phase& phase, sc_core::sc_time& t) override {
    if (now() < closed_until) {
      held_ = &incoming;
      opens_.notify(until(closed_until));
      return tlm::TLM_ACCEPTED;
    }
    record(incoming, now() + t.value());
    phase = tlm::END_REQ;
    return tlm::TLM_UPDATED;
  }
  void open() {
    for (;;) {
      wait(opens_);
      if (held_ == nullptr) continue;
      burst& taken = *held_;
      held_ = nullptr;
      end_request(in, taken);
      taken.hold_until(now(), name());
      record(taken, now());
    }
  }
  void record(burst& taken, picoseconds head) {
    arrivals.push_back(
        {head, taken.tail, taken.content(), taken.spent, taken.departed, taken.payload_bytes(), taken.ecn_marked});
    pool_.release(taken);
  }

  burst_pool& pool_;
  burst* held_ = nullptr;
  sc_core::sc_event opens_;
};

/// Plain register access by b_transport.
class register_driver : public sc_core::sc_module {
 public:
  tlm_utils::simple_initiator_socket<register_driver, 64> socket{"socket"};
  explicit register_driver(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {}

  tlm::tlm_response_status access(bool write, std::uint64_t address, std::uint64_t& value, unsigned length = 8) {
    tlm::tlm_generic_payload payload;
    sc_core::sc_time t;
    payload.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
    payload.set_address(address);
    payload.set_data_ptr(reinterpret_cast<unsigned char*>(&value));
    payload.set_data_length(length);
    payload.set_streaming_width(length);
    socket->b_transport(payload, t);
    return payload.get_response_status();
  }
  tlm::tlm_response_status write(unsigned index, std::uint64_t value) { return access(true, index * 8ULL, value); }
  std::uint64_t read(unsigned index) {
    std::uint64_t value = 0;
    access(false, index * 8ULL, value);
    return value;
  }
};

}  // namespace tributary::test
