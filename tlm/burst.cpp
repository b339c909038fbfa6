#include "tlm/burst.hpp"

#include <utility>

namespace tributary {

void burst::lose(std::uint32_t packet) {
  if (lost_ == nullptr) lost_ = std::make_unique<packet_set>(content_->packets);
  if (lost_->test_set(packet)) return;
  const bool last = packet + 1 == content_->packets;
  const std::uint32_t wire = last ? content_->last_packet_wire_bytes : content_->first_packet_wire_bytes;
  const auto overhead =
      static_cast<std::uint32_t>((content_->wire_bytes - content_->payload_bytes) / content_->packets);
  ++lost_packets_;
  lost_wire_bytes_ += wire;
  lost_payload_bytes_ += wire - overhead;
}

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

  content.packet_payload = format.payload_per_packet();
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
  if (original.lost_ != nullptr) {
    made.lost_ = std::make_unique<packet_set>(*original.lost_);
    made.lost_packets_ = original.lost_packets_;
    made.lost_payload_bytes_ = original.lost_payload_bytes_;
    made.lost_wire_bytes_ = original.lost_wire_bytes_;
  }
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
    shared.content.missing.reset();
    shared.next_free = std::exchange(free_contents_, &shared);
    --live_contents_;
  }
  finished.content_ = nullptr;
  finished.story.reset();
  if (finished.lost_ != nullptr) {
    finished.lost_.reset();
    finished.lost_packets_ = finished.lost_payload_bytes_ = 0;
    finished.lost_wire_bytes_ = 0;
  }
  finished.shared_ = nullptr;
  finished.next_free_ = std::exchange(free_bursts_, &finished);
  --live_bursts_;
}

}  // namespace tributary
