// The JSON Schema editors use against what the program accepts.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "platforms/report.hpp"
#include "platforms/spec.hpp"
#include "tests/support/files.hpp"

namespace tributary::test {
namespace {

nlohmann::json to_json(const YAML::Node& node) {
  if (node.IsMap()) {
    nlohmann::json map = nlohmann::json::object();
    for (const auto& entry : node) map[entry.first.Scalar()] = to_json(entry.second);
    return map;
  }
  if (node.IsSequence()) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& element : node) list.push_back(to_json(element));
    return list;
  }
  return node.IsNull() ? nlohmann::json() : nlohmann::json(node.Scalar());
}

class schema_file {
 public:
  schema_file() {
    const auto text =
        nlohmann::json::parse(read_file(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/schema/platform.schema.json"));
    const valijson::adapters::NlohmannJsonAdapter adapter(text);
    valijson::SchemaParser().populateSchema(adapter, schema_);
  }
  /// Empty when `document` is valid.
  [[nodiscard]] std::string complaint(const nlohmann::json& document) const {
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(schema_, valijson::adapters::NlohmannJsonAdapter(document), &results)) return {};
    valijson::ValidationResults::Error error;
    std::string text;
    while (results.popError(error)) text += error.description + "\n";
    return text.empty() ? "invalid" : text;
  }

 private:
  valijson::Schema schema_;
};

TEST(Schema, TakesEveryShippedPlatform) {
  const schema_file schema;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms")) {
    EXPECT_EQ(schema.complaint(to_json(YAML::LoadFile(entry.path().string()))), "") << entry.path();
  }
}

TEST(Schema, TakesAWholeResolvedConfiguration) {
  // Everything the program knows to say, so a key added to the program and not to the schema shows here.
  const platform_spec spec = load_platform(
      std::string(TRIBUTARY_CONFIGS_FOLDER) + "/platforms/nine_city.yaml",
      {{"run.fidelity=packet", "run.capture=['*']", "run.signals=['*']", "run.round_timeout=9 s", "network.pace=1 ms"},
       "rotating:3"});
  EXPECT_EQ(schema_file().complaint(nlohmann::json::parse(resolved_configuration(spec).dump())), "");
}

TEST(Schema, RefusesWhatTheProgramRefuses) {
  const schema_file schema;
  const std::string head = "name: x\n";
  for (const char* bad :
       {"nonsense: 1", "workload: { update: 5 }", "workload: { updte: 5 GB }", "links: [{ between: [a] }]",
        "links: [{ between: [a, b], latency: 5 Gbps }]", "network: { buffering: sometimes }", "sites: { a: 1 }",
        "sites: [{ router: a }]", "run: { trace: 7 }"}) {
    EXPECT_NE(schema.complaint(to_json(YAML::Load(head + bad))), "") << bad;
  }
}

}  // namespace
}  // namespace tributary::test
