// A base-protocol initiator for memory tests: the aggregator's own port, driven by hand.
#pragma once

#include <map>

#include "modules/fpga_aggregator/memory_port.hpp"
#include "tlm/model.hpp"

namespace tributary::test {

class memory_master : public model, private memory_port::host {
 public:
  struct completion {
    picoseconds when = 0;
    bool ok = false;
  };
  memory_port port{"port", *this};
  std::map<std::uint64_t, completion> done;

  explicit memory_master(const sc_core::sc_module_name& name) : model(name) {}

 private:
  void memory_done(std::uint64_t cookie, picoseconds when, bool ok) override { done[cookie] = {when, ok}; }
};

}  // namespace tributary::test
