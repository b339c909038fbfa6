#include "platforms/spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>

#include "modules/memory_controller/bulk_timing.hpp"
#include "planner/search.hpp"

namespace tributary {

namespace fs = std::filesystem;

namespace {

using dim = dimension;

struct preset_library {
  std::map<std::string, located_node> memories;
  std::map<std::string, located_node> cards;
};

void load_presets_of(const std::string& path, const char* section, std::map<std::string, located_node>& into) {
  const located_node top = load_yaml_file(path);
  const config_map map({top}, top, "");
  const config_map entries = map.map(section);
  for (const auto& entry : top.node[section]) {
    into.emplace(entry.first.Scalar(), located_node{entry.second, top.file});
  }
  (void)entries.has("");
  map.refuse_unknown_keys();
}

preset_library load_presets() {
  preset_library library;
  const std::string folder = configs_folder() + "/presets/";
  load_presets_of(folder + "memories.yaml", "memories", library.memories);
  load_presets_of(folder + "cards.yaml", "cards", library.cards);
  return library;
}

/// Lays the preset a map names under it. Returns its name, empty for none.
std::string apply_preset(config_map& map, const std::map<std::string, located_node>& presets, const char* noun) {
  const std::optional<located_node> named = map.find("preset");
  if (!named) return {};
  std::string name = scalar_text(*named, map.path() + ".preset");
  const auto found = presets.find(name);
  if (found == presets.end()) {
    std::vector<std::string> names;
    names.reserve(presets.size());
    for (const auto& [each, node] : presets) names.push_back(each);
    const std::string near = nearest(name, names);
    throw named->error(fmt::format(
        "there is no {} preset '{}'{}", noun, name,
        near.empty() ? fmt::format("; known: {}", fmt::join(names, ", ")) : fmt::format("; did you mean '{}'?", near)));
  }
  map.add_layer_below(found->second);
  (void)map.text("source", "");
  (void)map.text("summary", "");
  return name;
}

class identifiers {
 public:
  /// Letters, digits and underscores only, not starting with a digit, cut at 100 characters, unique.
  std::string make(const std::string& name) {
    std::string id;
    for (const char c : name) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80 && byte < 0xc0) continue;  // the rest of a UTF-8 character
      id += std::isalnum(byte) != 0 && byte < 0x80 ? c : '_';
    }
    if (id.empty() || std::isdigit(static_cast<unsigned char>(id[0])) != 0) id.insert(id.begin(), 's');
    id = id.substr(0, 100);
    std::string unique = id;
    for (unsigned n = 2; !used_.insert(unique).second; ++n) unique = fmt::format("{}_{}", id, n);
    return unique;
  }

 private:
  std::set<std::string> used_;
};

picoseconds propagation_of_km(std::uint64_t metres) {
  return metres * 4900;  // 4.9 us/km: light in fibre of refractive index 1.468
}

void dram_of(const config_map& from, dram_device& to) {
  const auto count = [&from](const char* key, std::uint64_t most, std::optional<std::uint64_t> otherwise) {
    return static_cast<unsigned>(from.integer(key, 1, most, otherwise));
  };
  to.timing.clock = from.quantity("clock", dim::time, std::nullopt);
  to.timing.burst_cycles = count("burst_length", 64, std::nullopt) / 2;
  to.geometry.bus_bits = count("bus_bits", 4096, std::nullopt);
  to.geometry.channels = count("channels", 256, 1);
  to.geometry.ranks = count("ranks", 16, 1);
  to.geometry.bank_groups = count("bank_groups", 64, std::nullopt);
  to.geometry.banks = count("banks", 64, std::nullopt);
  to.geometry.rows = from.integer("rows", 1, std::uint64_t{1} << 30, std::nullopt);
  to.geometry.columns = from.integer("columns", 1, std::uint64_t{1} << 30, std::nullopt);
  const config_map timing = from.map("timing");
  const auto cycles = [&timing](const char* key, std::optional<std::uint64_t> otherwise) {
    return static_cast<unsigned>(timing.integer(key, 0, 1'000'000, otherwise));
  };
  dram_timing& t = to.timing;
  t.read_latency = cycles("CL", std::nullopt);
  t.write_latency = cycles("CWL", std::nullopt);
  t.rcd = cycles("tRCD", std::nullopt);
  t.rp = cycles("tRP", std::nullopt);
  t.ras = cycles("tRAS", std::nullopt);
  t.ccd_s = cycles("tCCD_S", std::nullopt);
  t.ccd_l = cycles("tCCD_L", t.ccd_s);
  t.rrd_s = cycles("tRRD_S", std::nullopt);
  t.rrd_l = cycles("tRRD_L", t.rrd_s);
  t.faw = cycles("tFAW", std::nullopt);
  t.wtr_s = cycles("tWTR_S", std::nullopt);
  t.wtr_l = cycles("tWTR_L", t.wtr_s);
  t.wr = cycles("tWR", std::nullopt);
  t.rtp = cycles("tRTP", std::nullopt);
  t.rfc = cycles("tRFC", std::nullopt);
  t.rfc_pb = cycles("tRFCpb", 0);
  t.refi = cycles("tREFI", std::nullopt);
  t.rtrs = cycles("tRTRS", 1);
  timing.refuse_unknown_keys();
  dram_policy& p = to.policy;
  p.mapping = from.text("mapping", p.mapping);
  p.page = from.choice("page", {"open", "closed"}, "open") == "open" ? page_policy::open : page_policy::closed;
  const std::string refresh = from.choice("refresh", {"all_bank", "per_bank", "none"}, "all_bank");
  p.refresh = refresh == "per_bank" ? refresh_policy::per_bank
              : refresh == "none"   ? refresh_policy::none
                                    : refresh_policy::all_bank;
  p.transaction_queue = count("transaction_queue", 4096, p.transaction_queue);
  p.bank_queue = count("bank_queue", 256, p.bank_queue);
  p.drain_high = count("drain_high", 4096, p.transaction_queue);
  p.drain_low = static_cast<unsigned>(from.integer("drain_low", 0, 4096, p.drain_low));
  p.age_limit = from.integer("age_limit", 1, 1'000'000'000, p.age_limit);
  p.port_columns = count("port_columns", 1024, p.port_columns);
  p.separate_row_bus = from.boolean("separate_row_bus", p.separate_row_bus);
  try {
    const address_mapping check(to);
  } catch (const std::invalid_argument& why) {
    throw from.error(fmt::format("{}: {}", from.path(), why.what()));
  }
  from.refuse_unknown_keys();
}

void memory_device(config_map from, const preset_library& presets, memory_device_spec& to) {
  to.preset = apply_preset(from, presets.memories, "memory");
  to.latency = from.quantity("latency", dim::time, 0, true);
  to.four_phase = from.boolean("four_phase", false);
  const bool dram = from.has("dram");
  const std::string level = from.choice("level", {"rate", "bulk", "burst"}, dram ? "bulk" : "rate");
  to.level = level == "bulk" ? memory_level::bulk : level == "burst" ? memory_level::burst : memory_level::rate;
  if (to.level != memory_level::rate && !dram) {
    throw from.need("level").error(
        fmt::format("{}.level: '{}' needs the device described under dram", from.path(), level));
  }
  if (dram) dram_of(from.map("dram"), to.dram);
  if (to.level == memory_level::rate) {
    // A described device brings its channels and their peak along.
    const dram_geometry& g = to.dram.geometry;
    to.channels = static_cast<unsigned>(
        from.integer("channels", 1, 256, dram ? std::optional<std::uint64_t>(g.channels) : std::nullopt));
    to.channel_rate = from.quantity("channel_rate", dim::rate,
                                    dram ? std::optional<std::uint64_t>(to.dram.channel_peak()) : std::nullopt);
  }
  to.efficiency = from.number("efficiency", 0.01, 1, 1.0);
  to.interleave_bytes = from.quantity("interleave", dim::bytes, 256);
  to.capacity_bytes = from.quantity(
      "capacity", dim::bytes, dram ? std::optional<std::uint64_t>(to.dram.geometry.capacity_bytes()) : std::nullopt);
  if (dram && to.capacity_bytes > to.dram.geometry.capacity_bytes()) {
    throw from.need("capacity")
        .error(fmt::format("{}.capacity: more than rows, columns and banks make up ({})", from.path(),
                           format_bytes(static_cast<double>(to.dram.geometry.capacity_bytes()))));
  }
  from.refuse_unknown_keys();
}

class platform_loader {
 public:
  platform_loader(const std::string& path, const load_options& options)
      : presets_(load_presets()), root_(root_layers(path, options)), options_(options) {}

  platform_spec load() {
    spec_.name = root_.text("name");
    spec_.description = root_.text("description", "");
    workload();
    wire();
    routers_and_sites();
    links();
    network();
    run();
    schedule();
    (void)root_.find("include");
    root_.refuse_unknown_keys();
    return std::move(spec_);
  }

 private:
  static config_map root_layers(const std::string& path, const load_options& options) {
    std::vector<located_node> layers;
    for (const std::string& assignment : options.assignments) {
      layers.insert(layers.begin(), yaml_from_assignment(assignment));  // the last one wins
    }
    const located_node top = load_yaml_file(path);
    add_with_includes(top, layers, 0);
    return {layers, top, ""};
  }

  static void add_with_includes(const located_node& file, std::vector<located_node>& layers, unsigned depth) {
    layers.push_back(file);
    const YAML::Node include = file.node["include"];
    if (!include.IsDefined()) return;
    const auto add = [&](const YAML::Node& name) {
      const located_node at{name, file.file};
      if (depth > 8) throw at.error("includes are nested more than eight deep");
      const fs::path target = fs::path(*file.file).parent_path() / scalar_text(at, "include");
      if (!fs::exists(target)) throw at.error(fmt::format("the included file '{}' does not exist", target.string()));
      add_with_includes(load_yaml_file(target.string()), layers, depth + 1);
    };
    if (include.IsSequence()) {
      for (const auto& each : include) add(each);
    } else {
      add(include);
    }
  }

  void workload() {
    const config_map work = root_.map("workload");
    spec_.update_bytes = work.quantity("update", dim::bytes, std::nullopt);
    spec_.chunk_bytes = work.quantity("chunk", dim::bytes, 1 << 20);
    if (spec_.chunk_bytes > std::numeric_limits<std::uint32_t>::max() / 2) {
      throw work.need("chunk").error("workload.chunk: a chunk is at most 2 GiB");
    }
    if (spec_.update_bytes / spec_.chunk_bytes > 50'000'000) {
      throw work.need("update").error("workload: more than 50 million chunks a round; choose a larger chunk");
    }
    const std::string values = work.choice("values", {"synthetic", "fp32", "bf16", "int32"}, "synthetic");
    spec_.values = values == "fp32"    ? value_format::fp32
                   : values == "bf16"  ? value_format::bf16
                   : values == "int32" ? value_format::int32
                                       : value_format::synthetic;
    spec_.scale_bits = static_cast<unsigned>(work.integer("scale_bits", 1, 40, 24));
    if (spec_.values != value_format::synthetic) {
      if (spec_.update_bytes % 4 != 0)
        throw work.need("update").error("workload.update: real values travel in words of 4 bytes");
      if (spec_.chunk_bytes % 4 != 0)
        throw work.need("chunk").error("workload.chunk: real values travel in words of 4 bytes");
    }
    work.refuse_unknown_keys();
  }

  void wire() {
    const config_map wire = root_.map("wire");
    spec_.format.mtu_bytes = static_cast<std::uint32_t>(wire.quantity("mtu", dim::bytes, 9000));
    spec_.format.header_bytes = static_cast<std::uint32_t>(wire.quantity("headers", dim::bytes, 52, true));
    spec_.format.framing_bytes = static_cast<std::uint32_t>(wire.quantity("framing", dim::bytes, 38, true));
    if (spec_.format.mtu_bytes <= spec_.format.header_bytes + 4) {
      throw wire.error("wire: the MTU must be larger than the headers");
    }
    if (spec_.format.overhead_per_packet() == 0) throw wire.error("wire: a packet needs headers or framing");
    if (spec_.values != value_format::synthetic && spec_.format.payload_per_packet() % 4 != 0) {
      throw wire.error("wire: with real values the payload of a packet (mtu - headers) must be a multiple of 4");
    }
    wire.refuse_unknown_keys();
  }

  unsigned router_named(const std::string& name) const {
    const auto found = router_number_.find(name);
    return found == router_number_.end() ? none : found->second;
  }

  unsigned add_router(const std::string& name, const config_map& from) {
    router_spec router;
    router.name = name;
    router.identifier = ids_.make("router_" + name);
    read_router(from, router);
    const auto number = static_cast<unsigned>(spec_.routers.size());
    router_number_[name] = number;
    spec_.routers.push_back(router);
    return number;
  }

  static void read_router(const config_map& from, router_spec& to) {
    router_parameters& p = to.parameters;
    p.forwarding_latency = from.quantity("forwarding_latency", dim::time, 500'000, true);
    p.queue_bytes = from.quantity("queue", dim::bytes, 64 << 20);
    p.shared_bytes = from.quantity("shared_buffer", dim::bytes, 0, true);
    p.discipline = from.choice("discipline", {"drr", "fifo"}, "drr") == "fifo" ? queue_discipline::fifo
                                                                               : queue_discipline::deficit_round_robin;
    p.quantum_bytes = from.quantity("quantum", dim::bytes, 64 << 10);
    p.when_full = from.choice("when_full", {"back_pressure", "drop_tail"}, "back_pressure") == "drop_tail"
                      ? full_queue::drop_tail
                      : full_queue::back_pressure;
    p.ecn_bytes = from.quantity("ecn", dim::bytes, 0, true);
    p.replication_rate = from.quantity("replication", dim::rate, 0, true);
    const bool cuts = from.choice("forwarding", {"store", "cut_through"}, "store") == "cut_through";
    const auto header = static_cast<std::uint32_t>(from.quantity("header", dim::bytes, 64));
    to.cut_through_header = cuts ? header : 0;
  }

  void routers_and_sites() {
    const config_map router_defaults = root_.map("router_defaults");
    for (config_map entry : root_.maps("routers")) {
      entry.add_layers_below(router_defaults);
      const std::string name = entry.text("name");
      if (router_named(name) != none)
        throw entry.need("name").error(fmt::format("the router name '{}' is used twice", name));
      add_router(name, entry);
      entry.refuse_unknown_keys();
    }
    router_spec unused;
    read_router(router_defaults, unused);
    router_defaults.refuse_unknown_keys();

    const config_map defaults = root_.map("site_defaults");
    const std::vector<config_map> entries = root_.maps("sites");
    if (entries.size() < 2) throw root_.error("sites: a platform has at least two sites");
    if (entries.size() > max_sites) throw root_.error(fmt::format("sites: at most {} sites", max_sites));
    std::map<std::string, std::string> attached;
    for (config_map entry : entries) {
      entry.add_layers_below(defaults);
      site_spec site;
      site.name = entry.text("name");
      if (site.name.empty()) throw entry.need("name").error("a site needs a name");
      if (site_number_.count(site.name) != 0) {
        throw entry.need("name").error(fmt::format("the site name '{}' is used twice", site.name));
      }
      site.identifier = ids_.make(site.name);
      const std::optional<located_node> router = entry.find("router");
      const std::string router_name = router ? scalar_text(*router, entry.path() + ".router") : site.name;
      site.router = router_named(router_name);
      if (site.router == none && router) {
        throw router->error(
            fmt::format("site '{}' names the router '{}', which does not exist", site.name, router_name));
      }
      if (site.router == none) site.router = add_router(router_name, router_defaults);
      fill_site(entry, site);
      entry.refuse_unknown_keys();
      site_number_[site.name] = static_cast<unsigned>(spec_.sites.size());
      site_places_.push_back(entry.place());
      spec_.sites.push_back(std::move(site));
    }
  }

  void fill_site(const config_map& entry, site_spec& site) {
    const config_map access = entry.map("access");
    site.access_up = access.quantity("up", dim::rate, std::nullopt);
    site.access_down = access.quantity("down", dim::rate, std::nullopt);
    site.access_latency = access.quantity("latency", dim::time, 0, true);
    access.refuse_unknown_keys();
    site.weight = entry.number("weight", 1e-9, 1e9, 1.0);
    cluster(entry.map("cluster"), site.cluster);
    aggregator(entry.map("aggregator"), site.aggregator);
  }

  void cluster(const config_map& from, cluster_spec& to) const {
    to.compute_time = compute_time(from);
    to.straggler_sigma = from.number("straggler_sigma", 0, 5, 0.0);
    to.reduce_time = from.quantity("reduce", dim::time, 0, true);
    to.released_early_share = from.number("released_early_share", 0, 1, 0.0);
    to.apply_time = from.quantity("apply", dim::time, 0, true);
    to.consume_rate = from.quantity("consume", dim::rate, 512'000'000'000);
    from.refuse_unknown_keys();
  }

  /// Given, or 6 x parameters x tokens operations (forward and backward pass of a transformer, Kaplan et al. 2020) on
  /// gpus x peak x utilization, times the local steps of a round.
  static picoseconds compute_time(const config_map& from) {
    const config_map model = from.map("training");
    if (!from.has("training")) return from.quantity("compute", dim::time, 0, true);
    if (from.has("compute")) throw from.error(from.path() + ": give either compute or training, not both");
    const double parameters = model.number("parameters", 1, 1e15, std::nullopt);
    const double tokens = model.number("tokens_per_step", 1, 1e12, std::nullopt);
    const auto gpus = static_cast<double>(model.integer("gpus", 1, 10'000'000, std::nullopt));
    const auto peak = static_cast<double>(model.quantity("peak", dim::operations, std::nullopt));
    const double utilization = model.number("utilization", 1e-6, 1, 0.4);
    const auto steps = static_cast<double>(model.integer("local_steps", 1, 1'000'000, 1));
    model.refuse_unknown_keys();
    const double seconds = 6 * parameters * tokens * steps / (gpus * peak * utilization);
    if (seconds > 1e5) throw from.error(from.path() + ".training: a round would compute for more than a day");
    return from_seconds(seconds);
  }

  void aggregator(config_map from, aggregator_spec& to) const {
    to.preset = apply_preset(from, presets_.cards, "card");
    const std::string placement = from.choice("placement", {"external", "on_chip", "on_chip_first"}, "external");
    to.placement = placement == "on_chip"         ? slot_placement::on_chip
                   : placement == "on_chip_first" ? slot_placement::on_chip_first
                                                  : slot_placement::external;
    memory_device(from.map("device"), presets_, to.device);
    if (from.has("on_chip_device")) memory_device(from.map("on_chip_device"), presets_, to.on_chip);
    if (to.placement == slot_placement::on_chip_first && !from.has("on_chip_device")) {
      throw from.need("placement").error(from.path() + ".placement: on_chip_first needs an on_chip_device");
    }
    if (to.placement == slot_placement::on_chip && from.has("on_chip_device")) to.device = to.on_chip;
    const bool both = to.placement == slot_placement::on_chip_first;
    to.on_chip_bytes = from.quantity("on_chip_memory", dim::bytes, both ? to.on_chip.capacity_bytes : 1);
    if (from.has("on_chip_memory") && to.on_chip_bytes > to.on_chip.capacity_bytes) {
      throw from.need("on_chip_memory").error(from.path() + ".on_chip_memory: more than the on-chip device holds");
    }
    if (!both) to.on_chip_bytes = 0;
    const std::uint64_t installed = to.device.capacity_bytes + to.on_chip_bytes;
    to.memory_bytes = from.quantity("memory", dim::bytes, installed);
    if (to.memory_bytes > installed) {
      throw from.need("memory").error(fmt::format("{}.memory: {} is more than the device holds ({})", from.path(),
                                                  format_bytes(static_cast<double>(to.memory_bytes)),
                                                  format_bytes(static_cast<double>(installed))));
    }
    to.on_chip_bytes = std::min(to.on_chip_bytes, to.memory_bytes);
    const config_map table = from.map("slot_table");
    to.slot_table_entries = static_cast<std::uint32_t>(table.integer("entries", 0, 0xffffffff, 0));
    to.tag_bits = static_cast<unsigned>(table.integer("tag_bits", 1, 32, 32));
    table.refuse_unknown_keys();
    const config_map resources = from.map("resources");
    to.resources.dsp = static_cast<unsigned>(resources.integer("dsp", 0, 1'000'000, 0));
    to.resources.block_ram = static_cast<unsigned>(resources.integer("block_ram", 0, 1'000'000, 0));
    to.resources.ultra_ram = static_cast<unsigned>(resources.integer("ultra_ram", 0, 1'000'000, 0));
    resources.refuse_unknown_keys();
    to.ports = from.quantity("ports", dim::rate, std::nullopt);
    to.datapath_bytes = static_cast<std::uint32_t>(from.quantity("datapath", dim::bytes, 64));
    to.lanes = static_cast<unsigned>(from.integer("lanes", 1, 1024, 1));
    to.clock_hz = from.quantity("clock", dim::frequency, std::nullopt);
    to.adder_cycles = static_cast<unsigned>(from.integer("adder_cycles", 0, 100'000, 16));
    to.ingress_buffer_bytes = from.quantity("ingress_buffer", dim::bytes, 32 << 20);
    to.egress_chunks = static_cast<unsigned>(from.integer("egress_chunks", 1, 1024, 2));
    from.refuse_unknown_keys();
  }

  void links() {
    const config_map defaults = root_.map("link_defaults");
    std::map<std::pair<unsigned, unsigned>, unsigned> parallel;
    for (config_map entry : root_.maps("links")) {
      entry.add_layers_below(defaults);
      link_spec link;
      const std::vector<located_node> ends = entry.list("between");
      if (ends.size() != 2) throw entry.error(entry.path() + ".between: a link has two ends: between: [a, b]");
      std::array<unsigned, 2> routers{};
      for (std::size_t e = 0; e < 2; ++e) {
        const std::string name = scalar_text(ends[e], entry.path() + ".between");
        routers[e] = router_named(name);
        if (routers[e] == none) {
          std::vector<std::string> known;
          for (const auto& [each, number] : router_number_) known.push_back(each);
          const std::string near = nearest(name, known);
          throw ends[e].error(fmt::format("a link ends at '{}', which is neither a site nor a router{}", name,
                                          near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
        }
      }
      if (routers[0] == routers[1]) throw ends[1].error("a link joins two different routers");
      link.a = routers[0];
      link.b = routers[1];
      link.rate_ab = entry.quantity("rate", dim::rate, std::nullopt);
      link.rate_ba = entry.quantity("rate_back", dim::rate, link.rate_ab);
      if (entry.has("latency") && entry.has("distance")) {
        throw entry.error(entry.path() + ": give either latency or distance, not both");
      }
      if (!entry.has("latency") && !entry.has("distance")) {
        throw entry.error(entry.path() + ".latency is missing (or distance, at 4.9 us/km)");
      }
      link.latency_ab = entry.has("latency")
                            ? entry.quantity("latency", dim::time, std::nullopt, true)
                            : propagation_of_km(entry.quantity("distance", dim::length, std::nullopt, true));
      link.latency_ba = entry.quantity("latency_back", dim::time, link.latency_ab, true);
      impairments(entry, link);
      const std::string base = spec_.routers[link.a].name + "-" + spec_.routers[link.b].name;
      const unsigned number = ++parallel[std::minmax(link.a, link.b)];
      link.name = number == 1 ? base : fmt::format("{}#{}", base, number);
      link.identifier = ids_.make("link_" + link.name);
      entry.refuse_unknown_keys();
      spec_.links.push_back(link);
    }
    for (const char* key : {"rate", "rate_back"}) (void)defaults.quantity(key, dim::rate, 1);
    for (const char* key : {"latency", "latency_back"}) (void)defaults.quantity(key, dim::time, 0, true);
    (void)defaults.quantity("distance", dim::length, 0, true);
    link_spec unused;
    impairments(defaults, unused);
    defaults.refuse_unknown_keys();
    check_connected();
  }

  static void impairments(const config_map& from, link_spec& to) {
    to.fec_latency = from.quantity("fec_latency", dim::time, 0, true);
    to.jitter = from.quantity("jitter", dim::time, 0, true);
    to.jitter_interval = from.quantity("jitter_interval", dim::time, 1'000'000'000);
    to.reorders = from.boolean("reorders", false);
    const std::optional<located_node> loss = from.find("loss");
    if (loss && loss->node.IsMap()) {
      const config_map chain = from.map("loss");
      to.loss.to_bad = chain.number("to_bad", 0, 1, std::nullopt);
      to.loss.to_good = chain.number("to_good", 1e-9, 1, std::nullopt);
      to.loss.in_good = chain.number("in_good", 0, 0.5, 0.0);
      to.loss.in_bad = chain.number("in_bad", 0, 1, 1.0);
      chain.refuse_unknown_keys();
      if (to.loss.mean() > 0.5) throw loss->error(from.path() + ".loss: more than half of all packets would be lost");
    } else if (loss) {
      to.loss.in_good = from.number("loss", 0, 0.5, 0.0);
    }
    picoseconds before = 0;
    for (const config_map& each : from.maps("outages")) {
      outage down;
      down.from = each.quantity("from", dim::time, std::nullopt, true);
      down.to = each.quantity("to", dim::time, std::numeric_limits<picoseconds>::max());
      each.refuse_unknown_keys();
      if (down.to <= down.from) throw each.error(each.path() + ": the outage ends before it begins");
      if (down.from < before) throw each.error(each.path() + ": outages are given in order and do not overlap");
      before = down.to;
      to.outages.push_back(down);
    }
  }

  void check_connected() const {
    std::vector<bool> reached(spec_.routers.size(), false);
    std::vector<unsigned> left{spec_.sites.front().router};
    reached[left.front()] = true;
    while (!left.empty()) {
      const unsigned at = left.back();
      left.pop_back();
      for (const link_spec& link : spec_.links) {
        for (const auto& [from, to] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
          if (from == at && !reached[to]) {
            reached[to] = true;
            left.push_back(to);
          }
        }
      }
    }
    for (std::size_t s = 0; s < spec_.sites.size(); ++s) {
      if (reached[spec_.sites[s].router]) continue;
      throw site_places_[s].error(fmt::format("site '{}' is disconnected: no links lead from it to site '{}'",
                                              spec_.sites[s].name, spec_.sites.front().name));
    }
  }

  void network() {
    const config_map net = root_.map("network");
    const std::string policy = net.choice("buffering", {"per_stream", "in_place", "none"}, "per_stream");
    spec_.policy = policy == "in_place" ? buffering::in_place
                   : policy == "none"   ? buffering::none
                                        : buffering::per_stream;
    spec_.flow = net.choice("flow", {"paced", "credit"}, "paced") == "credit" ? planner::flow_control::credit
                                                                              : planner::flow_control::paced;
    const std::string trees = net.choice("trees", {"shortest", "fewest_links", "least_congestion"}, "shortest");
    spec_.trees = trees == "fewest_links"       ? planner::tree_kind::fewest_links
                  : trees == "least_congestion" ? planner::tree_kind::least_congestion
                                                : planner::tree_kind::shortest;
    spec_.multicast = net.boolean("multicast", true);
    const std::string collective = net.choice("collective", {"exchange", "hub", "ring", "transit"}, "exchange");
    spec_.collective = collective == "hub"       ? collective_choice::hub
                       : collective == "ring"    ? collective_choice::ring
                       : collective == "transit" ? collective_choice::transit
                                                 : collective_choice::exchange;
    spec_.detection_time = net.quantity("detection", dim::time, 50'000'000'000, true);
    spec_.join_latency = net.quantity("join_latency", dim::time, 0, true);
    spec_.joined_before = net.boolean("joined_before", false);
    const config_map repair = net.map("repair");
    const std::string when = repair.choice("when", {"automatic", "always", "never"}, "automatic");
    spec_.repair.when = when == "always"  ? repair_spec::use::always
                        : when == "never" ? repair_spec::use::never
                                          : repair_spec::use::automatic;
    if (repair.has("timeout")) spec_.repair.timeout = repair.quantity("timeout", dim::time, std::nullopt);
    spec_.repair.timeout_max = repair.quantity("timeout_max", dim::time, ps_per_s);
    if (repair.has("nack_delay")) {
      spec_.repair.nack_delay = repair.quantity("nack_delay", dim::time, std::nullopt, true);
    }
    spec_.repair.parity_packets = static_cast<unsigned>(repair.integer("parity", 0, 255, 0));
    repair.refuse_unknown_keys();
    spec_.send_offsets = net.choice("offsets", {"none", "optimised"}, "none") == "optimised";
    if (net.has("pace")) spec_.pace = net.quantity("pace", dim::time, std::nullopt);
    spec_.register_access_time = net.quantity("register_access", dim::time, 0, true);
    net.refuse_unknown_keys();
    for (const config_map& each : root_.maps("failures")) {
      failure_spec failure;
      const located_node name = each.need("site");
      const auto found = site_number_.find(scalar_text(name, each.path() + ".site"));
      if (found == site_number_.end()) {
        throw name.error(fmt::format("a failure names the site '{}', which does not exist", name.node.Scalar()));
      }
      failure.site = found->second;
      failure.at = each.quantity("at", dim::time, std::nullopt, true);
      if (each.has("back")) failure.back = each.quantity("back", dim::time, std::nullopt);
      if (failure.back && *failure.back <= failure.at) {
        throw each.need("back").error(each.path() + ".back: the site is back before it fails");
      }
      each.refuse_unknown_keys();
      spec_.failures.push_back(failure);
    }
    check_collective(net);
  }

  /// Hub, ring and transit reduction are modelled on a network that loses nothing.
  void check_collective(const config_map& net) const {
    if (spec_.collective == collective_choice::exchange) {
      if (spec_.repair.parity_packets != 0 && !spec_.repairs()) {
        throw net.error("network.repair.parity: nothing is lost here, and repair is not set to always");
      }
      return;
    }
    const auto refuse = [&net](const char* why) {
      throw net.need("collective").error(fmt::format("network.collective: {} {}", net.text("collective"), why));
    };
    if (spec_.repairs() || spec_.lossy()) refuse("is modelled on a network that loses nothing");
    if (spec_.flow == planner::flow_control::credit) refuse("is paced, not credited");
    if (spec_.values == value_format::bf16) refuse("would round bf16 sums at every site on the way");
    if (spec_.collective == collective_choice::transit && spec_.policy == buffering::none) {
      refuse("needs aggregators that merge");
    }
  }

  void run() {
    const config_map run = root_.map("run");
    spec_.rounds = static_cast<unsigned>(run.integer("rounds", 1, 1'000'000, 0));
    spec_.seed = run.integer("seed", 0, std::numeric_limits<std::uint64_t>::max(), 1);
    spec_.packet_fidelity = run.choice("fidelity", {"burst", "packet"}, "burst") == "packet";
    const std::string trace = run.choice("trace", {"none", "round", "chunk", "packet"}, "chunk");
    spec_.trace = trace == "none"    ? trace_level::none
                  : trace == "round" ? trace_level::round
                  : trace == "chunk" ? trace_level::chunk
                                     : trace_level::packet;
    for (const located_node& glob : run.list("signals"))
      spec_.traced_signals.push_back(scalar_text(glob, "run.signals"));
    spec_.whole_run_waveform = run.boolean("whole_run_waveform", false);
    spec_.timeline = run.boolean("timeline", true);
    for (const located_node& glob : run.list("capture"))
      spec_.captured_links.push_back(scalar_text(glob, "run.capture"));
    if (!spec_.captured_links.empty() && !spec_.packet_fidelity) {
      throw run.need("capture").error("run.capture: packets are there to capture at packet fidelity only");
    }
    if (!spec_.captured_links.empty() && spec_.format.header_bytes != 52) {
      throw run.need("capture").error("run.capture: the capture writes headers of 52 B; set wire.headers to that");
    }
    if (run.has("round_timeout")) spec_.round_timeout = run.quantity("round_timeout", dim::time, std::nullopt);
    spec_.site_timeout = run.quantity("site_timeout", dim::time, ps_per_s);
    spec_.epsilon = run.number("epsilon", 0, 1, 1e-6);
    run.refuse_unknown_keys();
  }

  void schedule() {
    if (!options_.schedule.empty()) {
      (void)root_.find("schedule");
      schedule_from_word(options_.schedule,
                         config_error(fmt::format("--schedule {}: not a schedule file, 'all_to_all' or "
                                                  "'rotating:K'",
                                                  options_.schedule)));
      return;
    }
    const std::optional<located_node> found = root_.find("schedule");
    if (!found) return;
    if (found->node.IsScalar()) {
      schedule_from_word(found->node.Scalar(),
                         found->error(fmt::format("schedule: '{}' is not 'all_to_all', 'rotating:K' or a schedule file",
                                                  found->node.Scalar())));
      return;
    }
    schedule_from_map(root_.map("schedule"));
  }

  void schedule_from_word(const std::string& word, const config_error& complaint) {
    schedule_spec& to = spec_.schedule;
    if (word == "all_to_all") {
      to.type = schedule_spec::kind::all_to_all;
      return;
    }
    if (word.rfind("rotating:", 0) == 0) {
      const std::string number = word.substr(9);
      if (number.empty() || number.size() > 2 ||
          !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }))
        throw complaint;
      to.type = schedule_spec::kind::rotating;
      to.group_size = static_cast<unsigned>(std::stoul(number));
      if (to.group_size < 2 || to.group_size > spec_.sites.size()) throw complaint;
      return;
    }
    std::string path = word;
    if (!fs::exists(path))
      path = configs_folder() + "/schedules/" + word + (word.find(".yaml") == std::string::npos ? ".yaml" : "");
    if (!fs::exists(path)) throw complaint;
    const located_node top = load_yaml_file(path);
    const config_map file({top}, top, "");
    (void)file.text("description", "");
    schedule_from_map(file.map("schedule"));
    file.refuse_unknown_keys();
  }

  void schedule_from_map(const config_map& from) {
    schedule_spec& to = spec_.schedule;
    const std::string type =
        from.choice("type", {"all_to_all", "rotating", "explicit"}, from.has("rounds") ? "explicit" : "all_to_all");
    to.name = from.text("name", "");
    if (type == "rotating") {
      to.type = schedule_spec::kind::rotating;
      to.group_size = static_cast<unsigned>(from.integer("group", 2, spec_.sites.size(), 3));
    } else if (type == "explicit") {
      to.type = schedule_spec::kind::explicit_rounds;
      (void)from.need("rounds");
      for (const located_node& round : from.list("rounds")) to.rounds.push_back(read_round(round));
      if (to.rounds.empty()) throw from.need("rounds").error("schedule.rounds: at least one round");
      for (const located_node& each : from.list("blend")) {
        double blend = 0;
        if (!each.node.IsScalar() || !YAML::convert<double>::decode(each.node, blend) || !(blend > 0 && blend < 2)) {
          throw each.error("schedule.blend: a number between 0 and 2 for each round");
        }
        to.blend.push_back(blend);
      }
      if (!to.blend.empty() && to.blend.size() != to.rounds.size()) {
        throw from.need("blend").error(
            fmt::format("schedule.blend: {} numbers for {} rounds", to.blend.size(), to.rounds.size()));
      }
    }
    from.refuse_unknown_keys();
  }

  planner::partition read_round(const located_node& round) const {
    if (!round.node.IsSequence()) throw round.error("a round is a list of groups, each a list of sites");
    planner::partition groups;
    std::set<unsigned> seen;
    for (const auto& element : round.node) {
      const located_node group{element, round.file};
      if (!element.IsSequence() || element.size() == 0) throw group.error("a group is a list of sites");
      planner::group members;
      for (const auto& name : element) {
        const located_node at{name, round.file};
        const std::string site = scalar_text(at, "a site of a group");
        const auto found = site_number_.find(site);
        if (found == site_number_.end()) {
          std::vector<std::string> known;
          for (const auto& [each, number] : site_number_) known.push_back(each);
          const std::string near = nearest(site, known);
          throw at.error(fmt::format("a group names the site '{}', which does not exist{}", site,
                                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
        }
        if (!seen.insert(found->second).second) {
          throw at.error(fmt::format("site '{}' stands twice in the same round", site));
        }
        members.push_back(found->second);
      }
      groups.push_back(std::move(members));
    }
    planner::normalise(groups);
    return groups;
  }

  static constexpr unsigned none = std::numeric_limits<unsigned>::max();
  preset_library presets_;
  config_map root_;
  load_options options_;
  platform_spec spec_;
  identifiers ids_;
  std::map<std::string, unsigned> router_number_;
  std::map<std::string, unsigned> site_number_;
  std::vector<located_node> site_places_;
};

}  // namespace

std::string configs_folder() {
  if (const char* set = std::getenv("TRIBUTARY_CONFIGS"); set != nullptr && *set != 0) return set;
  std::error_code ignored;
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  if (!ignored) {
    for (fs::path folder = executable.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
      if (fs::exists(folder / "configs/presets/cards.yaml", ignored)) return (folder / "configs").string();
      if (fs::exists(folder / "share/tributary/configs/presets/cards.yaml", ignored)) {
        return (folder / "share/tributary/configs").string();
      }
    }
  }
  return TRIBUTARY_SOURCE_CONFIGS;
}

bits_per_s memory_device_spec::peak_rate() const {
  return level == memory_level::rate ? channel_rate * channels : dram.channel_peak() * dram.geometry.channels;
}

bits_per_s memory_device_spec::sustained_rate(std::uint64_t access_bytes) const {
  if (level != memory_level::rate) return bulk_timing(dram).mixed_rate(access_bytes);
  return static_cast<bits_per_s>(static_cast<double>(channel_rate) * efficiency) * channels;
}

picoseconds memory_device_spec::access_latency() const {
  return latency + (level == memory_level::rate ? 0 : (dram.timing.rcd + dram.timing.read_latency) * dram.timing.clock);
}

memory_parameters memory_device_spec::parameters() const {
  memory_parameters to;
  to.capacity_bytes = capacity_bytes;
  to.latency = latency;
  to.level = level;
  to.channels = channels;
  to.interleave_bytes = interleave_bytes;
  to.channel_rate = static_cast<bits_per_s>(static_cast<double>(channel_rate) * efficiency);
  to.device = dram;
  to.four_phase = four_phase;
  return to;
}

bool platform_spec::lossy() const {
  return !failures.empty() || std::any_of(links.begin(), links.end(), [](const link_spec& link) {
    return link.loss.any() || !link.outages.empty();
  }) || std::any_of(routers.begin(), routers.end(), [](const router_spec& router) {
    return router.parameters.when_full == full_queue::drop_tail;
  });
}

platform_spec load_platform(const std::string& path, const load_options& options) {
  return platform_loader(path, options).load();
}

planner::platform_model model_of(const platform_spec& spec) {
  planner::platform_model model;
  for (const router_spec& router : spec.routers) model.network.add_device(router.name);
  for (const link_spec& link : spec.links) {
    model.network.add_link({link.a, link.b, link.rate_ab, link.rate_ba, link.latency_ab + link.fec_latency,
                            link.latency_ba + link.fec_latency, link.jitter, link.jitter, link.loss.mean(),
                            link.loss.mean()});
  }
  for (const site_spec& site : spec.sites) {
    planner::site_model each;
    each.name = site.name;
    each.device = site.router;
    each.access_up = site.access_up;
    each.access_down = site.access_down;
    each.aggregator_ports = site.aggregator.ports;
    each.access_latency = site.access_latency;
    // A running sum of bf16 takes twice the room and the traffic of what travels.
    const std::uint64_t wider = spec.slot_bytes() / spec.chunk_bytes;
    each.memory_bytes = site.aggregator.memory_bytes / wider;
    each.memory_rate = site.aggregator.device.sustained_rate(spec.chunk_bytes) / wider;
    each.memory_latency = site.aggregator.device.access_latency();
    each.datapath_rate = site.aggregator.datapath_rate();
    each.adder_latency = site.aggregator.adder_latency();
    each.compute_time = site.cluster.compute_time + site.cluster.reduce_time;
    each.apply_time = site.cluster.apply_time;
    each.consume_rate = site.cluster.consume_rate;
    each.weight = site.weight;
    model.sites.push_back(std::move(each));
  }
  model.format = spec.format;
  bool all_cut_through = true;
  for (const router_spec& router : spec.routers) {
    model.forwarding_latency = std::max(model.forwarding_latency, router.parameters.forwarding_latency);
    if (router.cut_through_header == 0) {
      all_cut_through = false;
    } else {
      model.cut_through_header = std::max(model.cut_through_header, router.cut_through_header);
    }
  }
  if (!all_cut_through) model.cut_through_header = 0;
  model.multicast = spec.multicast;
  model.repair = spec.repairs();
  model.repair_delay = spec.repair.nack_delay.value_or(0);
  for (const link_spec& link : spec.links) {
    if (!spec.repair.nack_delay && link.reorders) model.repair_delay = std::max(model.repair_delay, link.jitter);
  }
  model.parity_packets = model.repair ? spec.repair.parity_packets : 0;
  model.update_bytes = spec.update_bytes;
  model.chunk_bytes = spec.chunk_bytes;
  model.buffering = spec.policy == buffering::in_place ? planner::buffering_policy::in_place
                    : spec.policy == buffering::none   ? planner::buffering_policy::none
                                                       : planner::buffering_policy::per_stream;
  model.trees = spec.trees;
  model.flow = spec.flow;
  model.send_offsets = spec.send_offsets;
  return model;
}

planner::schedule schedule_of(const platform_spec& spec, const planner::platform_model& model) {
  const auto sites = static_cast<unsigned>(spec.sites.size());
  switch (spec.schedule.type) {
    case schedule_spec::kind::all_to_all: return planner::all_to_all(sites);
    case schedule_spec::kind::rotating:
      return planner::rotating_groups(model, spec.schedule.group_size, planner::wire_overhead(model, true));
    case schedule_spec::kind::explicit_rounds:
      return {spec.schedule.name.empty() ? "explicit" : spec.schedule.name, spec.schedule.rounds, spec.schedule.blend};
  }
  return planner::all_to_all(sites);
}

memory_device_spec memory_preset(const std::string& name) {
  const preset_library library = load_presets();
  const located_node& entry = library.memories.at(name);
  config_map from({entry}, entry, name);
  (void)from.text("source", "");
  (void)from.text("summary", "");
  memory_device_spec device;
  memory_device(std::move(from), library, device);
  device.preset = name;
  return device;
}

std::vector<preset_entry> list_presets() {
  const preset_library library = load_presets();
  std::vector<preset_entry> entries;
  const auto add = [&entries](const char* kind, const std::map<std::string, located_node>& from) {
    for (const auto& [name, at] : from) {
      const config_map map({at}, at, name);
      entries.push_back({kind, name, map.text("summary", ""), map.text("source", "")});
    }
  };
  add("card", library.cards);
  add("memory", library.memories);
  return entries;
}

}  // namespace tributary
