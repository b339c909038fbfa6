// Aggregator memory behind the TLM-2.0 base protocol, at one of three levels:
//
// rate   channels of a constant rate (rate_timing): on-chip memory, quick comparisons
// bulk   a DRAM device, whole accesses at a time (bulk_timing)
// burst  a DRAM device, every command (dram_system); accesses go through all four phases
//
// The data of reads and writes really moves, in the order of the requests, unless the access says it is made for its
// time alone. At the rate and the bulk level nb_transport answers a request at once with TLM_COMPLETED and the
// annotated time (the protocol's early completion), or goes through all four phases when parameters say so. Requests
// beyond `queue_depth` in four phases wait for END_REQ. b_transport at the burst level waits: call it from a thread.
#pragma once

#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "modules/memory_controller/access_timing.hpp"
#include "modules/memory_controller/dram_system.hpp"
#include "tlm/model.hpp"
#include "tlm/ring.hpp"
#include "tlm/timed_queue.hpp"

#include <tlm>

namespace tributary {

enum class memory_level : std::uint8_t { rate, bulk, burst };

struct memory_parameters {
  std::uint64_t capacity_bytes = 0;
  picoseconds latency = 0;  ///< of controller, ports and interconnect, both ways; the device's own comes on top
  memory_level level = memory_level::rate;
  // rate level
  unsigned channels = 1;
  std::uint64_t interleave_bytes = 256;  ///< consecutive bytes on one channel
  bits_per_s channel_rate = 0;           ///< sustained bits a second of one channel; > 0
  // bulk and burst level
  dram_device device;
  bool four_phase = false;
  unsigned queue_depth = 64;  ///< requests taken and not yet answered, in four phases
};

struct memory_counters {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t errors = 0;
  picoseconds busy = 0;    ///< channel time, summed over channels
  dram_counters commands;  ///< burst level
};

class memory_controller : public model,
                          private tlm::tlm_fw_transport_if<>,
                          private dram_system::host,
                          private dram_command_listener {
 public:
  tlm::tlm_target_socket<> socket;

  /// Throws std::invalid_argument for a device that cannot be, or is smaller than the capacity.
  memory_controller(const sc_core::sc_module_name& name, const memory_parameters& parameters);

  [[nodiscard]] const memory_parameters& parameters() const { return parameters_; }
  [[nodiscard]] memory_counters counters() const;
  [[nodiscard]] std::string waits_for() const override;
  /// Hears of every command, burst level only. Call before the simulation starts.
  void watch(dram_command_listener& listener);

 private:
  static constexpr std::uint64_t page_bytes = 64 << 10;
  using page = std::array<unsigned char, page_bytes>;

  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                     sc_core::sc_time& t) override;
  void b_transport(tlm::tlm_generic_payload& access, sc_core::sc_time& t) override;
  bool get_direct_mem_ptr(tlm::tlm_generic_payload& access, tlm::tlm_dmi& dmi) override;
  unsigned transport_dbg(tlm::tlm_generic_payload& access) override;
  void access_complete(std::uint64_t cookie, dram_cycle when) override;
  void issued(unsigned channel, const dram_command& command) override;

  [[nodiscard]] tlm::tlm_response_status check(const tlm::tlm_generic_payload& access) const;
  [[nodiscard]] bool begin(tlm::tlm_generic_payload& access, picoseconds when);
  [[nodiscard]] picoseconds serve(tlm::tlm_generic_payload& access, picoseconds when);
  void move_data(tlm::tlm_generic_payload& access);
  void accept(tlm::tlm_generic_payload& access, picoseconds when);
  void submit(tlm::tlm_generic_payload& access);
  void step_device();
  void respond_due();
  void begin_response();
  void response_ended();
  [[nodiscard]] dram_cycle cycle_at(picoseconds when) const;

  memory_parameters parameters_;
  memory_counters counters_;
  std::unique_ptr<access_timing> timing_;  ///< rate and bulk level
  std::unique_ptr<dram_system> device_;    ///< burst level
  std::unordered_map<std::uint64_t, std::unique_ptr<page>> pages_;

  // four phases
  timed_queue<tlm::tlm_generic_payload*> starting_;  ///< burst level: requests with an annotated delay
  timed_queue<tlm::tlm_generic_payload*> completing_;
  ring<tlm::tlm_generic_payload*> responses_;
  tlm::tlm_generic_payload* response_in_progress_ = nullptr;
  tlm::tlm_generic_payload* request_withheld_ = nullptr;
  unsigned outstanding_ = 0;

  // burst level
  struct blocking_call {
    sc_core::sc_event done;
    picoseconds complete = 0;
  };
  sc_core::sc_event step_;
  std::vector<tlm::tlm_generic_payload*> in_device_;  ///< by cookie
  std::vector<std::uint64_t> free_cookies_;
  std::unordered_map<const tlm::tlm_generic_payload*, blocking_call*> blocking_;

  probe* bytes_probe_;
  probe* command_probe_;
  probe* address_probe_;
  struct channel_probes {
    probe* command;
    probe* bank;
    probe* row;
  };
  std::vector<channel_probes> channel_probes_;
};

}  // namespace tributary
