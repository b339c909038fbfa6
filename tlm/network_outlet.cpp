#include "tlm/network_outlet.hpp"

#include <algorithm>
#include <utility>

namespace tributary {

namespace {
picoseconds now() { return sc_core::sc_time_stamp().value(); }
bool ends_chunk(const burst_content& content) {
  return content.offset_bytes + content.payload_bytes == content.chunk_bytes;
}
}  // namespace

network_outlet::network_outlet(const std::string& name, std::function<void(burst_kind, bool)> taken)
    : socket(name.c_str(), *this), taken_(std::move(taken)), event_((name + "_event").c_str()) {
  sc_core::sc_spawn_options options;
  options.spawn_method();
  options.dont_initialize();
  options.set_sensitivity(&event_);
  sc_core::sc_spawn([this] { send(); }, (name + "_method").c_str(), &options);
}

void network_outlet::push(burst& outgoing) {
  queues_[outgoing.content().priority == 0 ? 1 : 0].push(&outgoing);
  if (sending_ == nullptr) arm();
}

void network_outlet::arm() {
  const picoseconds due = std::max(ready_, next_queue().front()->head);
  event_.notify(sc_core::sc_time::from_value(due > now() ? due - now() : 0));
}

void network_outlet::send() {
  if (empty() || sending_ != nullptr) return;
  ring<burst*>& queue = next_queue();
  burst& next = *queue.front();
  if (std::max(ready_, next.head) > now()) return arm();
  next.leaves_after(now());
  const burst_kind kind = next.content().kind;
  const bool last = ends_chunk(next.content());
  sc_core::sc_time after = sc_core::SC_ZERO_TIME;
  sending_ = &queue;
  if (socket.begin(next, after)) done(kind, last, now() + after.value());
}

tlm::tlm_sync_enum network_outlet::sent(unsigned /*port*/, burst& outgoing, tlm::tlm_phase& /*phase*/,
                                        sc_core::sc_time& t) {
  done(outgoing.content().kind, ends_chunk(outgoing.content()), now() + t.value());
  return tlm::TLM_ACCEPTED;
}

void network_outlet::done(burst_kind kind, bool last_of_chunk, picoseconds ready) {
  std::exchange(sending_, nullptr)->pop();
  ready_ = ready;
  if (!empty()) arm();
  taken_(kind, last_of_chunk);
}

}  // namespace tributary
