#include "tests/support/forked.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <systemc>

int sc_main(int /*argc*/, char** /*argv*/) { return 0; }  // wanted by SystemC's library, never called

namespace tributary::test {

void run_forked(const std::function<void()>& body, unsigned limit_seconds) {
  std::fflush(nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(limit_seconds);
    sc_core::sc_report_handler::set_actions(sc_core::SC_WARNING, sc_core::SC_DO_NOTHING);
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    try {
      body();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "exception: " << error.what();
    }
    std::fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) {
    FAIL() << (WTERMSIG(status) == SIGALRM ? "ran into its time limit" : "killed by signal ") << WTERMSIG(status);
  }
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the child process reported failures (above)";
}

double measure_forked(const std::function<double()>& body, unsigned limit_seconds) {
  void* const shared = mmap(nullptr, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    ADD_FAILURE() << "no shared memory";
    return 0;
  }
  auto* const figure = static_cast<double*>(shared);
  *figure = 0;
  run_forked([&] { *figure = body(); }, limit_seconds);
  const double measured = *figure;
  munmap(shared, sizeof(double));
  return measured;
}

}  // namespace tributary::test
