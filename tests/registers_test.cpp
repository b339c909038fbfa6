#include "tlm/registers.hpp"

#include <gtest/gtest.h>

#include "tests/support/files.hpp"
#include "tests/support/forked.hpp"
#include "tests/support/traffic.hpp"
#include "tlm/register_maps.hpp"

namespace tributary::test {
namespace {

SIMULATION_TEST(Registers, ChecksEveryAccessAgainstItsDescription) {
  std::vector<std::pair<unsigned, std::uint64_t>> written;
  struct block_module : sc_core::sc_module {
    register_block block;
    block_module(const sc_core::sc_module_name& name, std::function<void(unsigned, std::uint64_t)> on_write)
        : sc_core::sc_module(name),
          block("block", aggregator_registers, sc_core::sc_time(100, sc_core::SC_NS), std::move(on_write)) {}
  } module("module", [&written](unsigned index, std::uint64_t value) { written.emplace_back(index, value); });
  register_driver driver("driver");
  driver.socket.bind(module.block.socket);
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  namespace reg = aggregator_register;

  EXPECT_EQ(driver.write(reg::chunk_bytes, 1 << 20), tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(driver.read(reg::chunk_bytes), 1U << 20);
  EXPECT_EQ(written, (std::vector<std::pair<unsigned, std::uint64_t>>{{reg::chunk_bytes, 1 << 20}}));
  EXPECT_EQ(driver.write(reg::status, 1), tlm::TLM_COMMAND_ERROR_RESPONSE) << "read-only";
  EXPECT_EQ(driver.write(reg::policy, 3), tlm::TLM_GENERIC_ERROR_RESPONSE) << "above its maximum";
  std::uint64_t value = 0;
  EXPECT_EQ(driver.access(false, reg::control * 8, value), tlm::TLM_COMMAND_ERROR_RESPONSE) << "write-only";
  EXPECT_EQ(driver.access(false, reg::count * 8, value), tlm::TLM_ADDRESS_ERROR_RESPONSE) << "past the end";
  EXPECT_EQ(driver.access(false, 4, value), tlm::TLM_ADDRESS_ERROR_RESPONSE) << "not aligned";
  EXPECT_EQ(driver.access(false, 8, value, 4), tlm::TLM_BURST_ERROR_RESPONSE) << "not 8 bytes";
  EXPECT_EQ(written.size(), 1U) << "a refused write changes nothing";
}

TEST(Registers, TablesAndEnumerationsAgree) {
  EXPECT_EQ(aggregator_registers.registers.size(), aggregator_register::count);
  EXPECT_EQ(cluster_registers.registers.size(), cluster_register::count);
  EXPECT_EQ(router_registers.registers.size(), router_register::count);
  EXPECT_STREQ(aggregator_registers.registers[aggregator_register::slot_count].name, "SLOT_COUNT");
  EXPECT_STREQ(cluster_registers.registers[cluster_register::pace_ps].name, "PACE_PS");
  EXPECT_STREQ(router_registers.registers[router_register::ports].name, "PORTS");
}

TEST(Registers, TheDocumentationPageIsTheTable) {
  const std::string page = read_file(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/../docs/registers.md");
  for (const register_map* map : {&aggregator_registers, &cluster_registers, &router_registers}) {
    EXPECT_NE(page.find(to_markdown(*map)), std::string::npos)
        << map->name << ": make it anew with `tributary presets --registers > docs/registers.md`";
  }
}

}  // namespace
}  // namespace tributary::test
