#include "modules/fpga_aggregator/fpga_aggregator.hpp"

#include <gtest/gtest.h>

#include "modules/gpu_cluster/update_values.hpp"
#include "modules/memory_controller/memory_controller.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/traffic.hpp"
#include "tlm/memory_checker.hpp"
#include "tlm/network_checker.hpp"

namespace tributary::test {
namespace {

namespace reg = aggregator_register;
constexpr std::uint32_t mib = 1 << 20;

/// Aggregator of site 0 with a source for each of three other sites merged onto its one input by hand, a memory of
/// 16 GB/s a channel x 8 = 1 MiB in 8.192 us (62.5 ps a byte a channel), 200 ns latency, a datapath of 64 B x 8 lanes x
/// 250 MHz = 128 GB/s (1 MiB in 8.192 us) and 64 ns of adders.
struct bench {
  burst_pool pool;
  memory_controller memory;
  memory_checker memory_check{"memory_check"};
  std::unique_ptr<fpga_aggregator> aggregator;
  burst_source source{"source", pool};
  network_checker in_check{"in_check"};
  network_checker out_check{"out_check"};
  burst_sink sink{"sink", pool};
  register_driver driver{"driver"};
  sc_core::sc_signal<bool, sc_core::SC_MANY_WRITERS> interrupt;

  static memory_parameters memory_with(bits_per_s channel_rate, bool four_phase) {
    memory_parameters p;
    p.capacity_bytes = 1ULL << 30;
    p.channels = 8;
    p.channel_rate = channel_rate;
    p.latency = 200'000;
    p.four_phase = four_phase;
    return p;
  }
  explicit bench(value_format values = value_format::synthetic, bits_per_s channel_rate = 128'000'000'000,
                 bool four_phase = false, std::uint64_t ingress_buffer = 32 << 20,
                 const std::function<void(aggregator_parameters&)>& change = {})
      : memory("memory", memory_with(channel_rate, four_phase)) {
    aggregator_parameters p;
    p.memory_bytes = 1ULL << 30;
    p.lanes = 8;
    p.adder_latency = 64'000;
    p.values = values;
    p.ingress_buffer_bytes = ingress_buffer;
    if (change) change(p);
    aggregator = std::make_unique<fpga_aggregator>("aggregator", p, pool);
    source.out.bind(in_check.in);
    in_check.out.bind(aggregator->in);
    aggregator->egress.socket.bind(out_check.in);
    out_check.out.bind(sink.in);
    aggregator->memory.socket.bind(memory_check.in);
    memory_check.out.bind(memory.socket);
    driver.socket.bind(aggregator->control.socket);
    aggregator->interrupt(interrupt);
  }
  void program(buffering policy, std::uint64_t slots, std::uint64_t chunks, site_set members = 0b1111,
               std::uint64_t chunk_bytes = mib) {
    const auto set = [this](unsigned index, std::uint64_t value) {
      ASSERT_EQ(driver.write(index, value), tlm::TLM_OK_RESPONSE) << index;
    };
    set(reg::members, members);
    set(reg::update_bytes, chunks * chunk_bytes);
    set(reg::chunk_bytes, chunk_bytes);
    set(reg::slot_count, slots);
    set(reg::policy, static_cast<std::uint64_t>(policy));
    set(reg::control, command_start);
  }
  void expect_clean() {
    for (const network_checker* each : {&in_check, &out_check}) {
      EXPECT_TRUE(each->violations().empty()) << each->violations().front();
    }
    EXPECT_TRUE(memory_check.violations().empty()) << memory_check.violations().front();
    EXPECT_EQ(memory_check.outstanding(), 0U);
    EXPECT_EQ(pool.live_bursts(), 0U);
  }
};

SIMULATION_TEST(FpgaAggregator, PerStreamMergesWhenTheLastStreamIsStored) {
  bench b;
  b.program(buffering::per_stream, 16, 1);
  b.source.add(0, chunk_content(1, 0, mib));
  b.source.add(100 * us, chunk_content(2, 0, mib));
  b.source.add(200 * us, chunk_content(3, 0, mib), 80 * us);
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 1U);
  // Last tail at 280 us; its write (from 200 us) is done by then. Reads: 3 MiB in 3 x 8.192 us + 0.2 us = 24.776 us;
  // datapath: 3 MiB at 128 GB/s = 24.576 us; adders 64 ns.
  EXPECT_EQ(b.sink.arrivals[0].head, 280 * us + 24'776'000 + 64'000);
  EXPECT_EQ(b.sink.arrivals[0].content.contributors, 0b1110U);
  EXPECT_EQ(b.sink.arrivals[0].content.kind, burst_kind::aggregate);
  EXPECT_EQ(b.sink.arrivals[0].spent.memory, 24'840'000U);
  EXPECT_EQ(b.aggregator->counters().high_water_bytes, 3U * mib);
  EXPECT_EQ(b.memory.counters().written_bytes, 3U * mib);
  EXPECT_EQ(b.memory.counters().read_bytes, 3U * mib) << "2 (k-1) bytes of memory traffic a byte";
  EXPECT_TRUE(b.interrupt.read());
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, InPlaceUsesOneSlotAndLessTraffic) {
  bench b;
  b.program(buffering::in_place, 1, 1);
  b.source.add(0, chunk_content(1, 0, mib));
  b.source.add(100 * us, chunk_content(2, 0, mib));
  b.source.add(200 * us, chunk_content(3, 0, mib), 80 * us);
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 1U);
  // The last stream is added on its way out: read 8.192 + 0.2 us, adders 64 ns.
  EXPECT_EQ(b.sink.arrivals[0].head, 280 * us + 8'392'000 + 64'000);
  EXPECT_EQ(b.sink.arrivals[0].content.contributors, 0b1110U);
  EXPECT_EQ(b.aggregator->counters().high_water_bytes, mib);
  EXPECT_EQ(b.memory.counters().read_bytes + b.memory.counters().written_bytes, 4U * mib) << "2 (k-2)";
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, InPlaceWithTwoMembersNeedsNoMemory) {
  bench b;
  b.program(buffering::in_place, 0, 1, 0b0011);
  b.source.add(0, chunk_content(1, 0, mib), 80 * us);
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 1U);
  EXPECT_EQ(b.sink.arrivals[0].head, 80 * us + 8'192'000 + 64'000) << "through the datapath only";
  EXPECT_EQ(b.memory.counters().reads + b.memory.counters().writes, 0U);
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, WithoutAggregationStreamsGoOnUnmerged) {
  bench b;
  b.program(buffering::none, 0, 1);
  for (unsigned s = 1; s <= 3; ++s) b.source.add(s * 100 * us, chunk_content(s, 0, mib));
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 3U);
  EXPECT_EQ(b.sink.arrivals[2].content.contributors, 0b1000U);
  EXPECT_EQ(b.sink.arrivals[2].head, 300 * us);
  EXPECT_TRUE(b.interrupt.read());
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, HoldsTheInputWhenSlotsRunOutAndCountsTheTime) {
  bench b;
  b.program(buffering::per_stream, 3, 2, 0b0111);
  // Two streams, three slots: chunk 1 of site 1 takes the third, chunk 0 of site 2 frees two.
  b.source.add(0, chunk_content(1, 0, mib));
  b.source.add(50 * us, chunk_content(1, 1, mib));
  b.source.add(100 * us, chunk_content(2, 0, mib));
  b.source.add(101 * us, chunk_content(2, 1, mib));
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 2U);
  // Chunk 0: written 100 us + 8.192 + 0.2; merged 16.384 + 0.2 + 0.064 us later: slots free at 125.04 us.
  const picoseconds freed = 100 * us + 8'392'000 + 16'584'000 + 64'000;
  EXPECT_EQ(b.sink.arrivals[0].head, freed);
  EXPECT_EQ(b.aggregator->counters().stalled[static_cast<unsigned>(stall_cause::memory_full)], freed - 101 * us);
  EXPECT_EQ(b.source.taken[3], freed);
  EXPECT_EQ(b.aggregator->counters().high_water_bytes, 3U * mib) << "never above the slots";
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, HoldsTheInputWhenWritesLag) {
  bench b(value_format::synthetic, 1'000'000'000, false, 2 * mib);  // 1 GB/s in all: a chunk takes 1.05 ms to write
  b.program(buffering::per_stream, 16, 4, 0b0011);
  for (std::uint32_t c = 0; c < 4; ++c) b.source.add(c * 10 * us, chunk_content(1, c, mib));
  sc_core::sc_start();
  EXPECT_EQ(b.sink.arrivals.size(), 4U);
  EXPECT_GT(b.aggregator->counters().stalled[static_cast<unsigned>(stall_cause::memory_bandwidth)], 1 * ms);
  EXPECT_EQ(b.aggregator->counters().stalled[static_cast<unsigned>(stall_cause::memory_full)], 0U);
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, DropsAndCountsDuplicatesAndStrangers) {
  bench b;
  b.program(buffering::per_stream, 16, 2, 0b0111);
  b.source.add(0, chunk_content(1, 0, mib));
  b.source.add(10 * us, chunk_content(1, 0, mib));   // again, while chunk 0 is open
  b.source.add(20 * us, chunk_content(2, 0, mib));   // completes chunk 0
  b.source.add(100 * us, chunk_content(2, 0, mib));  // again, when it is done
  b.source.add(110 * us, chunk_content(3, 1, mib));  // not a member
  b.source.add(120 * us, chunk_content(1, 9, mib));  // no such chunk
  burst_content old = chunk_content(1, 1, mib);
  old.round = 5;
  b.source.add(130 * us, old);  // another round
  b.source.add(140 * us, chunk_content(1, 1, mib));
  b.source.add(150 * us, chunk_content(2, 1, mib));
  sc_core::sc_start();
  EXPECT_EQ(b.sink.arrivals.size(), 2U);
  EXPECT_EQ(b.driver.read(reg::duplicate_bursts), 2U);
  EXPECT_EQ(b.driver.read(reg::late_bursts), 3U);
  EXPECT_EQ(b.driver.read(reg::merged_chunks), 2U);
  EXPECT_TRUE(b.interrupt.read());
  b.expect_clean();
}

void merges_real_values(buffering policy, value_format format, bool four_phase) {
  bench b(format, 128'000'000'000, four_phase);
  b.program(policy, 8, 2, 0b1111, 64 << 10);
  const update_values values(format, 42);
  for (std::uint32_t c = 0; c < 2; ++c) {
    for (const unsigned s : {2U, 1U, 3U}) {  // not in site order
      burst_content content = chunk_content(s, c, 64 << 10);
      content.values = std::make_shared<const chunk_values>(values.slice(0, s, c * 16384ULL, 16384));
      b.source.add(c * 100 * us + s, content);
    }
  }
  sc_core::sc_start(sc_core::sc_time(5, sc_core::SC_MS));
  ASSERT_EQ(b.sink.arrivals.size(), 2U);
  for (const arrival_record& arrival : b.sink.arrivals) {
    chunk_values sum(std::size_t{16384} * sum_words_per_word(format), 0);
    for (unsigned s = 1; s <= 3; ++s) {
      add_values(format, sum, values.slice(0, s, arrival.content.chunk * 16384ULL, 16384).data(), 16384);
    }
    const chunk_values direct = narrowed(format, sum);
    ASSERT_NE(arrival.content.values, nullptr);
    EXPECT_EQ(*arrival.content.values, direct);
  }
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, AddsFp32PerStream) {
  merges_real_values(buffering::per_stream, value_format::fp32, false);
}
SIMULATION_TEST(FpgaAggregator, AddsFp32InPlace) { merges_real_values(buffering::in_place, value_format::fp32, false); }
SIMULATION_TEST(FpgaAggregator, AddsInt32PerStream) {
  merges_real_values(buffering::per_stream, value_format::int32, false);
}
SIMULATION_TEST(FpgaAggregator, AddsInt32InPlaceThroughAFourPhaseMemory) {
  merges_real_values(buffering::in_place, value_format::int32, true);
}
SIMULATION_TEST(FpgaAggregator, AddsFp32PerStreamThroughAFourPhaseMemory) {
  merges_real_values(buffering::per_stream, value_format::fp32, true);
}

SIMULATION_TEST(FpgaAggregator, AddsBf16PerStream) {
  merges_real_values(buffering::per_stream, value_format::bf16, false);
}
SIMULATION_TEST(FpgaAggregator, AddsBf16InPlace) { merges_real_values(buffering::in_place, value_format::bf16, true); }

/// A running sum of bf16 is kept in fp32: twice the slot, twice the traffic.
SIMULATION_TEST(FpgaAggregator, KeepsBf16SumsInFp32) {
  bench b(value_format::bf16);
  b.program(buffering::in_place, 1, 1);
  const update_values values(value_format::bf16, 42);
  for (unsigned s = 1; s <= 3; ++s) {
    burst_content content = chunk_content(s, 0, mib);
    content.values = std::make_shared<const chunk_values>(values.slice(0, s, 0, mib / 4));
    b.source.add(s * 100 * us, content);
  }
  sc_core::sc_start();
  EXPECT_EQ(b.aggregator->counters().high_water_bytes, 2U * mib);
  EXPECT_EQ(b.memory.counters().read_bytes + b.memory.counters().written_bytes, 2U * 4 * mib);
  EXPECT_EQ(b.sink.arrivals.size(), 1U);
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, HoldsFixedPointSumsAtTheEndsAndCountsThem) {
  bench b(value_format::int32);
  b.program(buffering::per_stream, 8, 1, 0b1111, 64);
  const auto words = [](std::uint32_t first, std::uint32_t second) {
    chunk_values all(16, 0);
    all[0] = first;
    all[1] = second;
    return std::make_shared<const chunk_values>(all);
  };
  const std::uint32_t huge = 0x7fffff00;
  for (unsigned s = 1; s <= 3; ++s) {
    burst_content content = chunk_content(s, 0, 64);
    content.values = words(huge, static_cast<std::uint32_t>(-1'500'000'000));
    b.source.add(s * us, content);
  }
  sc_core::sc_start();
  ASSERT_EQ(b.sink.arrivals.size(), 1U);
  EXPECT_EQ((*b.sink.arrivals[0].content.values)[0], 0x7fffffffU);
  EXPECT_EQ((*b.sink.arrivals[0].content.values)[1], 0x80000000U);
  EXPECT_EQ((*b.sink.arrivals[0].content.values)[2], 0U);
  EXPECT_EQ(b.driver.read(reg::saturations), 4U) << "both additions of both elements";
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, SlotTableEntriesRunOutLikeAnyOtherResource) {
  bench b(value_format::synthetic, 128'000'000'000, false, 32 << 20,
          [](aggregator_parameters& p) { p.slot_table_entries = 2; });
  b.program(buffering::per_stream, 64, 4, 0b0111);
  for (std::uint32_t c = 0; c < 2; ++c) b.source.add(c * us, chunk_content(1, c, mib));
  b.source.add(200 * us, chunk_content(2, 0, mib));  // completes chunk 0: an entry is free again
  b.source.add(201 * us, chunk_content(1, 2, mib));  // waits until chunk 0 has left
  b.source.add(300 * us, chunk_content(2, 1, mib));
  b.source.add(400 * us, chunk_content(2, 2, mib));
  b.source.add(500 * us, chunk_content(1, 3, mib));
  b.source.add(600 * us, chunk_content(2, 3, mib));
  sc_core::sc_start();
  EXPECT_EQ(b.sink.arrivals.size(), 4U);
  const aggregator_counters counters = b.aggregator->counters();
  EXPECT_GT(counters.stalled[static_cast<unsigned>(stall_cause::slot_table)], 10 * us);
  EXPECT_EQ(counters.stalled[static_cast<unsigned>(stall_cause::memory_full)], 0U);
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, ATagTooNarrowForTheChunksInProgressStalls) {
  bench b(value_format::synthetic, 128'000'000'000, false, 32 << 20, [](aggregator_parameters& p) { p.tag_bits = 1; });
  b.program(buffering::per_stream, 64, 4, 0b0111);
  b.source.add(0, chunk_content(1, 0, mib));
  b.source.add(us, chunk_content(1, 1, mib));
  b.source.add(2 * us, chunk_content(2, 0, mib));  // chunk 0 is in
  b.source.add(3 * us, chunk_content(1, 2, mib));  // its tag is chunk 0's: waits until that has left
  b.source.add(100 * us, chunk_content(2, 1, mib));
  b.source.add(200 * us, chunk_content(2, 2, mib));
  b.source.add(300 * us, chunk_content(1, 3, mib));
  b.source.add(400 * us, chunk_content(2, 3, mib));
  sc_core::sc_start();
  EXPECT_EQ(b.sink.arrivals.size(), 4U);
  EXPECT_GT(b.aggregator->counters().stalled[static_cast<unsigned>(stall_cause::slot_table)], 1U);
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, UsesOnChipSlotsFirstAndSpills) {
  bench b(value_format::synthetic, 128'000'000'000, false, 32 << 20,
          [](aggregator_parameters& p) { p.on_chip_bytes = 3ULL * mib; });
  memory_parameters ideal;
  ideal.capacity_bytes = 3ULL * mib;
  ideal.channel_rate = 8'000'000'000'000;
  memory_controller on_chip("on_chip", ideal);
  b.aggregator->on_chip->socket.bind(on_chip.socket);
  ASSERT_EQ(b.driver.write(reg::on_chip_slots, 3), tlm::TLM_OK_RESPONSE);
  b.program(buffering::per_stream, 8, 2);
  for (std::uint32_t c = 0; c < 2; ++c) {
    for (unsigned s = 1; s <= 3; ++s) b.source.add((c * 3 + s) * 10 * us, chunk_content(s, c, mib));
  }
  sc_core::sc_start();
  EXPECT_EQ(b.sink.arrivals.size(), 2U);
  // Chunk 0 fills the three on-chip slots; chunk 1 finds them free again only when chunk 0 has left.
  EXPECT_GE(on_chip.counters().written_bytes, 3U * mib);
  EXPECT_EQ(on_chip.counters().written_bytes + b.memory.counters().written_bytes, 6U * mib);
  EXPECT_EQ(b.aggregator->counters().spilled_chunks * mib, b.memory.counters().written_bytes);
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, SpillsWhatDoesNotFitOnChip) {
  bench b(value_format::synthetic, 128'000'000'000, false, 32 << 20,
          [](aggregator_parameters& p) { p.on_chip_bytes = 2ULL * mib; });
  memory_parameters ideal;
  ideal.capacity_bytes = 2ULL * mib;
  ideal.channel_rate = 8'000'000'000'000;
  memory_controller on_chip("on_chip", ideal);
  b.aggregator->on_chip->socket.bind(on_chip.socket);
  ASSERT_EQ(b.driver.write(reg::on_chip_slots, 2), tlm::TLM_OK_RESPONSE);
  b.program(buffering::per_stream, 8, 1);
  for (unsigned s = 1; s <= 3; ++s) b.source.add(s * 10 * us, chunk_content(s, 0, mib));
  sc_core::sc_start();
  EXPECT_EQ(b.sink.arrivals.size(), 1U);
  EXPECT_EQ(on_chip.counters().written_bytes, 2U * mib);
  EXPECT_EQ(b.memory.counters().written_bytes, 1U * mib);
  EXPECT_EQ(b.aggregator->counters().spilled_chunks, 1U);
  b.expect_clean();
}

SIMULATION_TEST(FpgaAggregator, RefusesIllegalProgramming) {
  bench b;
  const auto error_of = [&b](auto change) {
    EXPECT_EQ(b.driver.write(reg::control, command_clear), tlm::TLM_OK_RESPONSE);
    b.driver.write(reg::members, 0b0111);
    b.driver.write(reg::update_bytes, mib);
    b.driver.write(reg::chunk_bytes, mib);
    b.driver.write(reg::slot_base, 0);
    b.driver.write(reg::slot_count, 16);
    b.driver.write(reg::policy, 0);
    change();
    b.driver.write(reg::control, command_start);
    const bool error = (b.driver.read(reg::status) & status_error) != 0;
    const std::uint64_t code = b.driver.read(reg::error);
    EXPECT_EQ(error, code != error_none);
    return code;
  };
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  EXPECT_EQ(error_of([] {}), error_none);
  EXPECT_EQ(error_of([&b] { b.driver.write(reg::chunk_bytes, 0); }), error_chunk);
  EXPECT_EQ(error_of([&b] { b.driver.write(reg::update_bytes, 0); }), error_chunk);
  EXPECT_EQ(error_of([&b] { b.driver.write(reg::slot_count, 1025); }), error_slots) << "1024 MiB of memory";
  EXPECT_EQ(error_of([&b] { b.driver.write(reg::slot_base, 1ULL << 40); }), error_slots);
  EXPECT_EQ(error_of([&b] { b.driver.write(reg::on_chip_slots, 4); }), error_slots) << "there is no on-chip memory";
  b.driver.write(reg::on_chip_slots, 0);
  EXPECT_EQ(error_of([&b] { b.driver.write(reg::slot_count, 1); }), error_slots) << "two streams, one slot";
  EXPECT_EQ(error_of([&b] { b.driver.write(reg::members, 0b0110); }), error_members) << "without itself";
  EXPECT_EQ(error_of([&b] { b.driver.write(reg::control, command_start); }), error_busy) << "started twice";
}

}  // namespace
}  // namespace tributary::test
