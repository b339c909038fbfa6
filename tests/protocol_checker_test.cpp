// The checkers must catch what they are there for: each rule is broken once.
#include <gtest/gtest.h>

#include "tests/support/forked.hpp"
#include "tests/support/traffic.hpp"
#include "tlm/memory_checker.hpp"
#include "tlm/network_checker.hpp"

namespace tributary::test {
namespace {

/// A receiver that answers as told.
class puppet_receiver : public sc_core::sc_module, private network_receiver {
 public:
  network_target_socket in{"in", *this};
  tlm::tlm_sync_enum answer = tlm::TLM_UPDATED;
  tlm::tlm_phase answer_phase = tlm::END_REQ;
  explicit puppet_receiver(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {}

 private:
  tlm::tlm_sync_enum receive(unsigned, burst&, tlm::tlm_phase& phase, sc_core::sc_time&) override {
    phase = answer_phase;
    return answer;
  }
};

class puppet_sender : public sc_core::sc_module, private network_sender {
 public:
  network_initiator_socket out{"out", *this};
  explicit puppet_sender(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {}

 private:
  tlm::tlm_sync_enum sent(unsigned, burst&, tlm::tlm_phase&, sc_core::sc_time&) override { return tlm::TLM_ACCEPTED; }
};

struct network_bench {
  burst_pool pool;
  puppet_sender sender{"sender"};
  network_checker checker{"checker"};
  puppet_receiver receiver{"receiver"};
  network_bench() {
    sender.out.bind(checker.in);
    checker.out.bind(receiver.in);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  void begin(burst& b, picoseconds after = 0) {
    sc_core::sc_time t = sc_core::sc_time::from_value(after);
    (void)sender.out.begin(b, t);
  }
  burst& make() {
    burst& b = pool.make(chunk_content(0, 0, 4096), {});
    b.head = b.tail = sc_core::sc_time_stamp().value();
    return b;
  }
  void expect(const char* part) {
    ASSERT_EQ(checker.violations().size(), 1U) << part;
    EXPECT_NE(checker.violations()[0].find(part), std::string::npos) << checker.violations()[0];
  }
};

SIMULATION_TEST(NetworkChecker, PassesCorrectTraffic) {
  network_bench b;
  b.begin(b.make());
  b.begin(b.make());
  EXPECT_TRUE(b.checker.violations().empty());
  EXPECT_EQ(b.checker.ended(), 2U);
}

SIMULATION_TEST(NetworkChecker, CatchesASecondBurstBeforeEndReq) {
  network_bench b;
  b.receiver.answer = tlm::TLM_ACCEPTED;
  b.begin(b.make());
  b.begin(b.make());
  b.expect("previous burst still waits");
}

SIMULATION_TEST(NetworkChecker, CatchesAHeadThatIsNotTheTimeOfTheCall) {
  network_bench b;
  burst& wrong = b.make();
  wrong.tail = 50;
  b.begin(wrong, 10);
  b.expect("not the time of BEGIN_REQ");
}

SIMULATION_TEST(NetworkChecker, CatchesATailBeforeItsHead) {
  network_bench b;
  burst& wrong = b.make();
  wrong.head = 10;
  b.begin(wrong, 10);
  b.expect("tail before head");
}

SIMULATION_TEST(NetworkChecker, CatchesAPayloadPastItsChunk) {
  network_bench b;
  burst_content content = chunk_content(0, 0, 4096);
  content.offset_bytes = 1;
  burst& wrong = b.pool.make(content, {});
  b.begin(wrong);
  b.expect("past the end of its chunk");
}

SIMULATION_TEST(NetworkChecker, CatchesAnEndReqNobodyWaitsFor) {
  network_bench b;
  burst& one = b.make();
  end_request(b.receiver.in, one);
  b.expect("does not wait for it");
}

SIMULATION_TEST(NetworkChecker, CatchesABurstChangedWhileItWaits) {
  network_bench b;
  b.receiver.answer = tlm::TLM_ACCEPTED;
  burst& one = b.make();
  b.begin(one);
  one.tail += 5;
  end_request(b.receiver.in, one);
  b.expect("changed between");
}

SIMULATION_TEST(NetworkChecker, CatchesAWrongAnswer) {
  network_bench b;
  b.receiver.answer_phase = tlm::BEGIN_RESP;
  b.begin(b.make());
  b.expect("answered by END_REQ alone");
}

/// A memory that answers as told.
class puppet_memory : public sc_core::sc_module, private tlm::tlm_fw_transport_if<> {
 public:
  tlm::tlm_target_socket<> in{"in"};
  tlm::tlm_sync_enum answer = tlm::TLM_COMPLETED;
  tlm::tlm_phase answer_phase = tlm::BEGIN_REQ;
  bool respond = true;
  explicit puppet_memory(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {
    in.bind(static_cast<tlm::tlm_fw_transport_if<>&>(*this));
  }

 private:
  tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload& access, tlm::tlm_phase& phase,
                                     sc_core::sc_time&) override {
    if (respond) access.set_response_status(tlm::TLM_OK_RESPONSE);
    phase = answer_phase;
    return answer;
  }
  void b_transport(tlm::tlm_generic_payload& access, sc_core::sc_time&) override {
    if (respond) access.set_response_status(tlm::TLM_OK_RESPONSE);
  }
  bool get_direct_mem_ptr(tlm::tlm_generic_payload&, tlm::tlm_dmi&) override { return false; }
  unsigned transport_dbg(tlm::tlm_generic_payload&) override { return 0; }
};

class raw_initiator : public sc_core::sc_module, private tlm::tlm_bw_transport_if<>, private tlm::tlm_mm_interface {
 public:
  tlm::tlm_initiator_socket<> out{"out"};
  explicit raw_initiator(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {
    out.bind(static_cast<tlm::tlm_bw_transport_if<>&>(*this));
  }
  tlm::tlm_generic_payload& make(bool managed = true) {
    auto* access = managed ? new tlm::tlm_generic_payload(static_cast<tlm::tlm_mm_interface*>(this))
                           : new tlm::tlm_generic_payload;
    owned_.emplace_back(access);
    if (managed) access->acquire();
    access->set_read();
    access->set_data_ptr(data_);
    access->set_data_length(8);
    access->set_streaming_width(8);
    access->set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
    return *access;
  }
  void begin(tlm::tlm_generic_payload& access) {
    tlm::tlm_phase phase = tlm::BEGIN_REQ;
    sc_core::sc_time t;
    out->nb_transport_fw(access, phase, t);
  }

 private:
  tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload&, tlm::tlm_phase&, sc_core::sc_time&) override {
    return tlm::TLM_ACCEPTED;
  }
  void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}
  void free(tlm::tlm_generic_payload*) override {}
  std::vector<std::unique_ptr<tlm::tlm_generic_payload>> owned_;
  unsigned char data_[64] = {};
};

struct memory_bench {
  raw_initiator initiator{"initiator"};
  memory_checker checker{"checker"};
  puppet_memory memory{"memory"};
  memory_bench() {
    initiator.out.bind(checker.in);
    checker.out.bind(memory.in);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  void expect(const char* part) {
    ASSERT_FALSE(checker.violations().empty()) << part;
    EXPECT_NE(checker.violations()[0].find(part), std::string::npos) << checker.violations()[0];
  }
};

SIMULATION_TEST(MemoryChecker, CatchesAMissingMemoryManager) {
  memory_bench b;
  b.initiator.begin(b.initiator.make(false));
  b.expect("memory manager");
}

SIMULATION_TEST(MemoryChecker, CatchesAStaleResponseStatus) {
  memory_bench b;
  auto& access = b.initiator.make();
  access.set_response_status(tlm::TLM_OK_RESPONSE);
  b.initiator.begin(access);
  b.expect("TLM_INCOMPLETE_RESPONSE");
}

SIMULATION_TEST(MemoryChecker, CatchesACompletionWithoutAResponse) {
  memory_bench b;
  b.memory.respond = false;
  b.initiator.begin(b.initiator.make());
  b.expect("incomplete response");
}

SIMULATION_TEST(MemoryChecker, CatchesASecondRequestBeforeEndReq) {
  memory_bench b;
  b.memory.answer = tlm::TLM_ACCEPTED;
  b.initiator.begin(b.initiator.make());
  b.initiator.begin(b.initiator.make());
  b.expect("before END_REQ");
}

SIMULATION_TEST(MemoryChecker, CatchesAPhaseOutOfOrder) {
  memory_bench b;
  b.memory.answer = tlm::TLM_UPDATED;
  b.memory.answer_phase = tlm::END_RESP;
  b.initiator.begin(b.initiator.make());
  b.expect("does not travel backward");
}

SIMULATION_TEST(MemoryChecker, CatchesABlockingCallLeftIncomplete) {
  memory_bench b;
  b.memory.respond = false;
  sc_core::sc_time t;
  b.initiator.out->b_transport(b.initiator.make(), t);
  b.expect("left the response incomplete");
}

}  // namespace
}  // namespace tributary::test
