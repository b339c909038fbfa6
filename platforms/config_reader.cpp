#include "platforms/config_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <numeric>
#include <sstream>
#include <utility>

namespace tributary {

namespace {

std::string located(const std::string& file, const YAML::Mark& mark, const std::string& message) {
  if (mark.is_null()) return fmt::format("{}:1:1: {}", file, message);
  return fmt::format("{}:{}:{}: {}", file, mark.line + 1, mark.column + 1, message);
}

void refuse_duplicate_keys(const YAML::Node& node, const std::string& file) {
  if (node.IsMap()) {
    std::set<std::string> seen;
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) throw config_error(file, entry.first.Mark(), "a key must be a plain word");
      if (!seen.insert(entry.first.Scalar()).second) {
        throw config_error(file, entry.first.Mark(),
                           fmt::format("key '{}' stands twice in the same map", entry.first.Scalar()));
      }
      refuse_duplicate_keys(entry.second, file);
    }
  } else if (node.IsSequence()) {
    for (const auto& element : node) refuse_duplicate_keys(element, file);
  }
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row.back();
}

YAML::Node child(const YAML::Node& map, const std::string& key) {
  for (const auto& entry : map) {
    if (entry.first.Scalar() == key) return entry.second;
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

}  // namespace

config_error::config_error(const std::string& file, const YAML::Mark& mark, const std::string& message)
    : std::runtime_error(located(file, mark, message)) {}

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t distance = 3;
  for (const std::string& each : candidates) {
    const std::size_t d = edit_distance(word, each);
    if (d < distance && d < std::max(word.size(), each.size())) {
      distance = d;
      best = each;
    }
  }
  return best;
}

located_node load_yaml_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw config_error(fmt::format("{}: cannot be read", path));
  std::stringstream text;
  text << in.rdbuf();
  if (in.bad() || text.fail()) throw config_error(fmt::format("{}: cannot be read", path));
  located_node top{YAML::Node(), std::make_shared<const std::string>(path)};
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text.str());
    if (documents.size() > 1) {
      throw config_error(path, documents[1].Mark(), "one document a file: a second one starts here");
    }
    if (!documents.empty()) top.node.reset(documents.front());
  } catch (const YAML::Exception& error) {
    throw config_error(path, error.mark, "not valid YAML: " + error.msg);
  }
  if (!top.node.IsMap()) throw top.error("a configuration is a map of keys and values, and this file is not");
  refuse_duplicate_keys(top.node, path);
  return top;
}

located_node yaml_from_assignment(const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const auto where = std::make_shared<const std::string>("--set " + assignment);
  if (equals == std::string::npos || equals == 0) {
    throw config_error(fmt::format("--set {}: write path.to.key=value", assignment));
  }
  YAML::Node value;
  try {
    value.reset(YAML::Load(assignment.substr(equals + 1)));
  } catch (const YAML::Exception& error) {
    throw config_error(*where, error.mark, "the value is not valid YAML: " + error.msg);
  }
  std::vector<std::string> keys;
  std::stringstream path(assignment.substr(0, equals));
  for (std::string key; std::getline(path, key, '.');) keys.push_back(key);
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    if (key->empty()) throw config_error(fmt::format("--set {}: an empty key in the path", assignment));
    YAML::Node map(YAML::NodeType::Map);
    map[*key] = value;
    value.reset(map);
  }
  return {value, where};
}

std::string scalar_text(const located_node& at, const std::string& what) {
  if (!at.node.IsScalar()) throw at.error(fmt::format("{} must be a single value", what));
  return at.node.Scalar();
}

config_map::config_map(std::vector<located_node> layers, const located_node& place, std::string path)
    : layers_(std::move(layers)),
      place_(place),
      path_(std::move(path)),
      known_(std::make_shared<std::set<std::string>>()) {
  for (const located_node& layer : layers_) {
    if (!layer.node.IsMap()) throw layer.error(fmt::format("{} must be a map of keys and values", path_));
  }
}

void config_map::add_layer_below(const located_node& layer) {
  if (!layer.node.IsMap()) throw layer.error(fmt::format("{} must be a map of keys and values", path_));
  layers_.push_back(layer);
}

void config_map::add_layers_below(const config_map& other) {
  layers_.insert(layers_.end(), other.layers_.begin(), other.layers_.end());
}

std::optional<located_node> config_map::find(const std::string& key) const {
  known_->insert(key);
  for (const located_node& layer : layers_) {
    for (const auto& entry : layer.node) {
      if (entry.first.Scalar() != key) continue;
      if (entry.second.IsNull()) {
        throw config_error(*layer.file, entry.first.Mark(), fmt::format("{} has no value", path_of(key)));
      }
      return located_node{entry.second, layer.file};
    }
  }
  return std::nullopt;
}

bool config_map::has(const std::string& key) const { return find(key).has_value(); }

located_node config_map::need(const std::string& key) const {
  if (std::optional<located_node> found = find(key)) return *found;
  throw error(fmt::format("{} is missing", path_of(key)));
}

std::string config_map::text(const std::string& key) const { return scalar_text(need(key), path_of(key)); }

std::string config_map::text(const std::string& key, const std::string& otherwise) const {
  const std::optional<located_node> found = find(key);
  return found ? scalar_text(*found, path_of(key)) : otherwise;
}

std::string config_map::choice(const std::string& key, const std::vector<std::string>& choices,
                               const std::string& otherwise) const {
  const std::optional<located_node> found = find(key);
  if (!found) return otherwise;
  std::string value = scalar_text(*found, path_of(key));
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  const std::string near = nearest(value, choices);
  throw found->error(fmt::format("{}: '{}' is not one of {}{}", path_of(key), value, fmt::join(choices, ", "),
                                 near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

std::uint64_t config_map::quantity(const std::string& key, dimension what, std::optional<std::uint64_t> otherwise,
                                   bool zero_allowed) const {
  const std::optional<located_node> found = otherwise ? find(key) : need(key);
  if (!found) return *otherwise;
  try {
    const std::uint64_t value = parse_quantity(scalar_text(*found, path_of(key)), what);
    if (value == 0 && !zero_allowed) throw quantity_error("must be greater than zero");
    return value;
  } catch (const quantity_error& error) {
    throw found->error(fmt::format("{}: '{}': {}", path_of(key), found->node.Scalar(), error.what()));
  }
}

std::uint64_t config_map::integer(const std::string& key, std::uint64_t least, std::uint64_t most,
                                  std::optional<std::uint64_t> otherwise) const {
  const std::optional<located_node> found = otherwise ? find(key) : need(key);
  if (!found) return *otherwise;
  const std::string value = scalar_text(*found, path_of(key));
  std::uint64_t parsed = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (status != std::errc() || end != value.data() + value.size() || parsed < least || parsed > most) {
    throw found->error(fmt::format("{}: '{}' is not a whole number from {} to {}", path_of(key), value, least, most));
  }
  return parsed;
}

double config_map::number(const std::string& key, double least, double most, std::optional<double> otherwise) const {
  const std::optional<located_node> found = otherwise ? find(key) : need(key);
  if (!found) return *otherwise;
  const std::string value = scalar_text(*found, path_of(key));
  double parsed = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (status != std::errc() || end != value.data() + value.size() || !(parsed >= least && parsed <= most)) {
    throw found->error(fmt::format("{}: '{}' is not a number from {} to {}", path_of(key), value, least, most));
  }
  return parsed;
}

bool config_map::boolean(const std::string& key, bool otherwise) const {
  return choice(key, {"true", "false"}, otherwise ? "true" : "false") == "true";
}

config_map config_map::map(const std::string& key) const {
  known_->insert(key);
  std::vector<located_node> layers;
  for (const located_node& layer : layers_) {
    const YAML::Node found = child(layer.node, key);
    if (!found.IsDefined()) continue;
    if (!found.IsMap()) {
      throw config_error(*layer.file, found.Mark(), fmt::format("{} must be a map of keys and values", path_of(key)));
    }
    layers.push_back({found, layer.file});
  }
  const located_node place = layers.empty() ? place_ : layers.front();
  return {std::move(layers), place, path_of(key)};
}

std::vector<config_map> config_map::maps(const std::string& key) const {
  known_->insert(key);
  std::vector<located_node> overrides;
  for (const located_node& layer : layers_) {
    const YAML::Node found = child(layer.node, key);
    if (!found.IsDefined()) continue;
    if (found.IsMap()) {
      overrides.push_back({found, layer.file});
      continue;
    }
    if (!found.IsSequence()) {
      throw config_error(*layer.file, found.Mark(), fmt::format("{} must be a list", path_of(key)));
    }
    std::vector<config_map> elements;
    std::set<std::string> used;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const located_node element{found[i], layer.file};
      if (!element.node.IsMap())
        throw element.error(fmt::format("each of {} must be a map of keys and values", path_of(key)));
      const YAML::Node name = child(element.node, "name");
      const std::string label = name.IsDefined() && name.IsScalar() ? name.Scalar() : std::to_string(i);
      std::vector<located_node> layers;
      for (const located_node& over : overrides) {
        for (const std::string& selector : {label, std::to_string(i)}) {
          const YAML::Node change = child(over.node, selector);
          if (!change.IsDefined()) continue;
          used.insert(selector);
          layers.push_back({change, over.file});
          break;
        }
      }
      layers.push_back(element);
      elements.emplace_back(std::move(layers), element, path_of(key) + "." + label);
    }
    for (const located_node& over : overrides) {
      for (const auto& entry : over.node) {
        if (used.count(entry.first.Scalar()) == 0) {
          throw config_error(*over.file, entry.first.Mark(),
                             fmt::format("{} has no element '{}'", path_of(key), entry.first.Scalar()));
        }
      }
    }
    return elements;
  }
  if (!overrides.empty()) throw overrides.front().error(fmt::format("{} must be a list", path_of(key)));
  return {};
}

std::vector<located_node> config_map::list(const std::string& key) const {
  const std::optional<located_node> found = find(key);
  if (!found) return {};
  if (!found->node.IsSequence()) throw found->error(fmt::format("{} must be a list", path_of(key)));
  std::vector<located_node> elements;
  for (const auto& element : found->node) elements.push_back({element, found->file});
  return elements;
}

void config_map::refuse_unknown_keys() const {
  const std::vector<std::string> known(known_->begin(), known_->end());
  for (const located_node& layer : layers_) {
    for (const auto& entry : layer.node) {
      const std::string& key = entry.first.Scalar();
      if (known_->count(key) != 0) continue;
      const std::string near = nearest(key, known);
      throw config_error(*layer.file, entry.first.Mark(),
                         fmt::format("unknown key '{}'{}{}", path_of(key),
                                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near),
                                     near.empty() ? fmt::format("; known here: {}", fmt::join(known, ", ")) : ""));
    }
  }
}

}  // namespace tributary
