// The pieces of the hot path one by one, with Google Benchmark: what a burst costs before any simulated network is
// around it.
#include <benchmark/benchmark.h>

#include "modules/memory_controller/bulk_timing.hpp"
#include "planner/cost_model.hpp"
#include "platforms/planning.hpp"
#include "platforms/spec.hpp"
#include "tlm/burst.hpp"
#include "tlm/element_format.hpp"
#include "tlm/random.hpp"
#include "tlm/timed_queue.hpp"

using namespace tributary;

namespace {

/// A chunk of 1 MiB made, copied to `range(0)` ports, and given back.
void make_copy_release(benchmark::State& state) {
  burst_pool pool;
  const wire_format format;
  std::vector<burst*> copies;
  for (auto _ : state) {
    burst_content content;
    content.payload_bytes = content.chunk_bytes = 1 << 20;
    burst& first = pool.make(std::move(content), format);
    for (int i = 1; i < state.range(0); ++i) copies.push_back(&pool.copy(first));
    pool.release(first);
    for (burst* each : copies) pool.release(*each);
    copies.clear();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(make_copy_release)->Arg(1)->Arg(3);

/// The draw that decides whether a packet is lost.
void draw_of_a_packet(benchmark::State& state) {
  std::uint64_t packet = 0;
  for (auto _ : state) benchmark::DoNotOptimize(mixed(42, ++packet));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(draw_of_a_packet);

/// Losing every hundredth of a chunk's packets in a copy.
void lose_one_percent(benchmark::State& state) {
  burst_pool pool;
  const wire_format format;
  burst_content content;
  content.payload_bytes = content.chunk_bytes = 1 << 20;
  burst& original = pool.make(std::move(content), format);
  for (auto _ : state) {
    burst& copy = pool.copy(original);
    for (std::uint32_t i = 0; i < copy.content().packets; i += 100) copy.lose(i);
    benchmark::DoNotOptimize(copy.wire_bytes());
    pool.release(copy);
  }
  state.SetItemsProcessed(state.iterations() * original.content().packets);
  pool.release(original);
}
BENCHMARK(lose_one_percent);

/// Adding two chunks of 1 MiB, word by word.
void add_chunks(benchmark::State& state) {
  const auto format = static_cast<value_format>(state.range(0));
  const chunk_values operand(std::size_t{1} << 18, 0x3f800000);
  chunk_values sum(operand.size() * sum_words_per_word(format), 0);
  for (auto _ : state) benchmark::DoNotOptimize(add_values(format, sum, operand.data(), operand.size()));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(operand.size()) * 4);
}
BENCHMARK(add_chunks)->Arg(static_cast<int>(value_format::fp32))->Arg(static_cast<int>(value_format::int32));

/// Booking an access of 1 MiB on 64 memory channels.
void book_memory(benchmark::State& state) {
  bulk_timing timing(memory_preset("hbm2e_v80").dram);
  std::uint64_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(timing.book(at, 1 << 20, false, 0));
    at = (at + (1 << 20)) % (1U << 30);
  }
  state.SetBytesProcessed(state.iterations() << 20);
}
BENCHMARK(book_memory);

/// Planning a round: trees, paces, offsets.
void plan_nine_cities(benchmark::State& state) {
  const platform_spec spec = load_platform(configs_folder() + "/platforms/nine_city.yaml", {});
  const planner::platform_model model = model_of(spec);
  const planner::schedule schedule = schedule_of(spec, model);
  for (auto _ : state) benchmark::DoNotOptimize(planner::plan_round(model, schedule.rounds.front()));
}
BENCHMARK(plan_nine_cities);

}  // namespace

int sc_main(int /*argc*/, char** /*argv*/) { return 0; }

BENCHMARK_MAIN();
