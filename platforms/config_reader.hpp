// Reading YAML with an exact place for every complaint.
//
// A configuration is made of layers: what the command line sets lies over the file, the file over the files it
// includes, a site's own keys over the site defaults, those over its presets. config_map looks a key up through its
// layers, top first, and remembers which keys were asked for, so what nobody asked for is an unknown key.
#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "platforms/quantity.hpp"

namespace tributary {

/// Bad input: what() reads `file:line:column: message`.
class config_error : public std::runtime_error {
 public:
  config_error(const std::string& file, const YAML::Mark& mark, const std::string& message);
  explicit config_error(const std::string& message) : std::runtime_error(message) {}
};

/// A YAML node and the file it came from. Assigning to a YAML::Node changes what every copy of it refers to, so
/// assignment is spelt out here to mean what it means for values.
struct located_node {
  YAML::Node node;
  std::shared_ptr<const std::string> file;
  located_node(const YAML::Node& at, std::shared_ptr<const std::string> in) : node(at), file(std::move(in)) {}
  located_node(const located_node&) = default;
  located_node& operator=(const located_node& other) {
    if (this == &other) return *this;
    node.reset(other.node);
    file = other.file;
    return *this;
  }
  ~located_node() = default;
  [[nodiscard]] config_error error(const std::string& message) const { return {*file, node.Mark(), message}; }
};

/// Loads a YAML file whose top is a map; refuses duplicate keys anywhere. Throws config_error.
[[nodiscard]] located_node load_yaml_file(const std::string& path);

/// Turns `path.to.key=value` into a one-branch map layer, located at "--set path.to.key=value".
[[nodiscard]] located_node yaml_from_assignment(const std::string& assignment);

/// The candidate nearest to `word` within two edits, empty when none is near.
[[nodiscard]] std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

class config_map {
 public:
  /// `path` is how messages name this map (`sites.tyo.aggregator`).
  config_map(std::vector<located_node> layers, const located_node& place, std::string path);

  [[nodiscard]] bool has(const std::string& key) const;
  /// Lies under the existing layers.
  void add_layer_below(const located_node& layer);
  void add_layers_below(const config_map& other);

  [[nodiscard]] std::optional<located_node> find(const std::string& key) const;
  [[nodiscard]] located_node need(const std::string& key) const;
  [[nodiscard]] std::string text(const std::string& key) const;
  [[nodiscard]] std::string text(const std::string& key, const std::string& otherwise) const;
  [[nodiscard]] std::string choice(const std::string& key, const std::vector<std::string>& choices,
                                   const std::string& otherwise) const;
  /// `otherwise` empty: the key is required. Zero is refused unless `zero_allowed`.
  [[nodiscard]] std::uint64_t quantity(const std::string& key, dimension what, std::optional<std::uint64_t> otherwise,
                                       bool zero_allowed = false) const;
  [[nodiscard]] std::uint64_t integer(const std::string& key, std::uint64_t least, std::uint64_t most,
                                      std::optional<std::uint64_t> otherwise) const;
  [[nodiscard]] double number(const std::string& key, double least, double most, std::optional<double> otherwise) const;
  [[nodiscard]] bool boolean(const std::string& key, bool otherwise) const;
  /// A nested map; empty when no layer has it.
  [[nodiscard]] config_map map(const std::string& key) const;
  /// A list of maps. A map in a layer above the list changes single elements, by their `name` or index.
  [[nodiscard]] std::vector<config_map> maps(const std::string& key) const;
  [[nodiscard]] std::vector<located_node> list(const std::string& key) const;

  /// Complains about the first key nobody asked for.
  void refuse_unknown_keys() const;
  [[nodiscard]] config_error error(const std::string& message) const { return place_.error(message); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const located_node& place() const { return place_; }

 private:
  [[nodiscard]] std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }

  std::vector<located_node> layers_;
  located_node place_;
  std::string path_;
  std::shared_ptr<std::set<std::string>> known_;
};

[[nodiscard]] std::string scalar_text(const located_node& at, const std::string& what);

}  // namespace tributary
