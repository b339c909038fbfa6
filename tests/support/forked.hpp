// SystemC elaborates once a process, so each simulating test runs in a child of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>

namespace tributary::test {

/// Runs `body` in a forked child with a time limit; the test fails when the child does, and says how it ended.
void run_forked(const std::function<void()>& body, unsigned limit_seconds = 300);

/// The same for a body that measures something: its figure, zero when the child failed.
[[nodiscard]] double measure_forked(const std::function<double()>& body, unsigned limit_seconds = 300);

}  // namespace tributary::test

/// A test whose body runs in its own process.
#define SIMULATION_TEST(suite, name)                                        \
  static void suite##_##name##_body();                                      \
  TEST(suite, name) { tributary::test::run_forked(suite##_##name##_body); } \
  static void suite##_##name##_body()
