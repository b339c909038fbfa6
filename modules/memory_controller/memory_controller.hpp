// Aggregator memory behind the TLM-2.0 base protocol.
//
// Channels of equal rate, addresses interleaved over them. Each channel serves its share of an access in order of
// request, at its rate; an access is complete when its last channel is, plus the latency. The data of reads and writes
// really moves (a sparse store) unless the access says it is made for its time alone.
//
// nb_transport answers a request at once with TLM_COMPLETED and the annotated time (the protocol's early completion),
// or goes through all four phases when parameters say so. Requests beyond `queue_depth` in four phases wait for
// END_REQ.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tlm/model.hpp"
#include "tlm/ring.hpp"
#include "tlm/timed_queue.hpp"

#include <tlm>

namespace tributary {

struct memory_parameters {
  std::uint64_t capacity_bytes = 0;
  unsigned channels = 1;
  std::uint64_t interleave_bytes = 256;  ///< consecutive bytes on one channel
  bits_per_s channel_rate = 0;           ///< sustained bits a second of one channel (peak times efficiency); > 0
  picoseconds latency = 0;               ///< from request to first data of an idle channel
  bool four_phase = false;
  unsigned queue_depth = 64;
};

struct memory_counters {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t errors = 0;
  picoseconds busy = 0;  ///< channel time, summed over channels
};

class memory_controller : public model, private tlm::tlm_fw_transport_if<> {
 public:
  tlm::tlm_target_socket<> socket;

  memory_controller(const sc_core::sc_module_name& name, const memory_parameters& parameters);

  [[nodiscard]] const memory_parameters& parameters() const { return parameters_; }
  [[nodiscard]] const memory_counters& counters() const { return counters_; }

 private:
  static constexpr std::uint64_t page_bytes = 64 << 10;
  using page = std::array<unsigned char, page_bytes>;

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                     sc_core::sc_time& t) override;
  void b_transport(tlm::tlm_generic_payload& access, sc_core::sc_time& t) override;
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& access, tlm::tlm_dmi& dmi) override;
  unsigned transport_dbg(tlm::tlm_generic_payload& access) override;

  [[nodiscard]] tlm::tlm_response_status check(const tlm::tlm_generic_payload& access) const;
  [[nodiscard]] picoseconds serve(tlm::tlm_generic_payload& access, picoseconds when);
  [[nodiscard]] picoseconds serve_channel_by_channel(picoseconds when, std::uint64_t from_stripes,
                                                     std::uint64_t rest_first, std::uint64_t rest);
  void move_data(tlm::tlm_generic_payload& access);
  void accept(tlm::tlm_generic_payload& access, picoseconds when);
  void respond_due();
  void begin_response();
  void response_ended();

  memory_parameters parameters_;
  memory_counters counters_;
  std::vector<picoseconds> channel_free_;  ///< no earlier than all_free_from_, whatever stands here
  picoseconds all_free_from_ = 0;          ///< every channel is free from then on, at the latest of those alike
  picoseconds latest_free_ = 0;            ///< the last of the channels to be free
  std::unordered_map<std::uint64_t, std::unique_ptr<page>> pages_;

  // four-phase only
  timed_queue<tlm::tlm_generic_payload*> completing_;
  ring<tlm::tlm_generic_payload*> responses_;
  tlm::tlm_generic_payload* response_in_progress_ = nullptr;
  tlm::tlm_generic_payload* request_withheld_ = nullptr;
  unsigned outstanding_ = 0;

  probe* bytes_probe_;
  probe* command_probe_;
  probe* address_probe_;
};

}  // namespace tributary
