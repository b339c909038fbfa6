#include "tlm/burst.hpp"

#include <utility>

namespace tributary {

burst& burst_pool::take() {
  if (free_bursts_ == nullptr) {
    bursts_.push_back(std::make_unique<burst>());
    free_bursts_ = bursts_.back().get();
  }
  burst& taken = *free_bursts_;
  free_bursts_ = std::exchange(taken.next_free_, nullptr);
  ++live_bursts_;
  return taken;
}

burst& burst_pool::make(burst_content content, const wire_format& format) {
  if (free_contents_ == nullptr) {
    contents_.push_back(std::make_unique<burst::counted_content>());
    free_contents_ = contents_.back().get();
  }
  burst::counted_content& shared = *free_contents_;
  free_contents_ = std::exchange(shared.next_free, nullptr);
  ++live_contents_;

  content.packets = format.packets(content.payload_bytes);
  content.wire_bytes = format.wire_bytes(content.payload_bytes);
  content.first_packet_wire_bytes = format.first_packet_wire_bytes(content.payload_bytes);
  content.last_packet_wire_bytes = format.last_packet_wire_bytes(content.payload_bytes);
  shared.content = std::move(content);
  shared.references = 1;

  burst& made = take();
  static_cast<burst_times&>(made) = {};
  made.story.reset();
  made.shared_ = &shared;
  made.content_ = &shared.content;
  return made;
}

burst& burst_pool::copy(const burst& original) {
  burst& made = take();
  static_cast<burst_times&>(made) = original;
  made.story = original.story == nullptr ? nullptr : std::make_unique<trail>(*original.story);
  made.content_ = original.content_;
  made.shared_ = original.shared_;
  ++made.shared_->references;
  return made;
}

void burst_pool::release(burst& finished) {
  burst::counted_content& shared = *finished.shared_;
  if (--shared.references == 0) {
    shared.content.values.reset();
    shared.next_free = std::exchange(free_contents_, &shared);
    --live_contents_;
  }
  finished.content_ = nullptr;
  finished.story.reset();
  finished.shared_ = nullptr;
  finished.next_free_ = std::exchange(free_bursts_, &finished);
  --live_bursts_;
}

}  // namespace tributary
