// Build step: makes the register tables from their description. generate_registers REGISTERS.yaml HEADER SOURCE
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>
#include <set>
#include <stdexcept>
#include <string>

namespace {

std::string lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::string access_of(const YAML::Node& entry) {
  const auto access = entry["access"].as<std::string>();
  if (access == "read") return "register_access::read_only";
  if (access == "write") return "register_access::write_only";
  if (access == "read_write") return "register_access::read_write";
  throw std::runtime_error(entry["name"].as<std::string>() + ": access is read, write or read_write");
}

std::string maximum_of(const YAML::Node& entry) {
  if (entry["access"].as<std::string>() == "read") return "0";
  return entry["maximum"] ? entry["maximum"].as<std::string>() + "ULL" : "0xffffffffffffffffULL";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: generate_registers REGISTERS.yaml HEADER SOURCE\n";
    return 2;
  }
  try {
    const YAML::Node blocks = YAML::LoadFile(argv[1])["blocks"];
    std::ofstream header(argv[2]);
    std::ofstream source(argv[3]);
    header << "// Made from tlm/registers.yaml.\n#pragma once\n\n#include \"tlm/registers.hpp\"\n\nnamespace tributary "
              "{\n\n";
    source << "// Made from tlm/registers.yaml.\n#include \"tlm/register_tables.hpp\"\n\nnamespace tributary {\n\n";
    for (const auto& block : blocks) {
      const auto name = block.first.as<std::string>();
      const auto space = block.second["namespace"].as<std::string>();
      const std::string table = space + "s";
      header << "namespace " << space << " {\nenum index : unsigned {\n";
      source << "const register_map " << table << "{\n    \"" << name << "\",\n    {\n";
      std::set<std::string> seen;
      for (const auto& entry : block.second["registers"]) {
        const auto register_name = entry["name"].as<std::string>();
        if (!seen.insert(register_name).second) throw std::runtime_error(register_name + " stands twice in " + name);
        header << "  " << lower(register_name) << ",\n";
        source << "        {\"" << register_name << "\", " << access_of(entry) << ", " << maximum_of(entry) << ", \""
               << entry["unit"].as<std::string>() << "\",\n         \"" << entry["description"].as<std::string>()
               << "\"},\n";
      }
      header << "  count\n};\n}\nextern const register_map " << table << ";\n\n";
      source << "    }};\n\n";
    }
    header << "}  // namespace tributary\n";
    source << "}  // namespace tributary\n";
    if (!header.flush() || !source.flush()) throw std::runtime_error("cannot write the tables");
    return 0;
  } catch (const std::exception& error) {
    std::cerr << argv[1] << ": " << error.what() << '\n';
    return 2;
  }
}
