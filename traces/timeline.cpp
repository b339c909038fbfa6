#include "traces/timeline.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tributary {

namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Trace-event times are microseconds; six decimals keep the picosecond.
std::string us(picoseconds t) {
  char text[40];
  std::snprintf(text, sizeof text, "%llu.%06llu", static_cast<unsigned long long>(t / 1'000'000),
                static_cast<unsigned long long>(t % 1'000'000));
  return text;
}

bool is_link_busy(const probe_info& info) { return info.name.rfind("busy_", 0) == 0; }

}  // namespace

timeline_writer::timeline_writer(const std::string& path, const std::vector<std::string>& sites, picoseconds resolution)
    : path_(path),
      file_(std::fopen(path.c_str(), "wb")),
      sites_(sites),
      resolution_(std::max<picoseconds>(1, resolution)) {
  if (file_ == nullptr) throw std::runtime_error("cannot write " + path);
  std::fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", file_);
  (void)process_of("critical path");
  for (const std::string& site : sites_) (void)process_of(site);
}

timeline_writer::~timeline_writer() {
  for (const followed& each : followed_) each.source->detach(*this);
  if (file_ != nullptr) {
    std::fclose(file_);
    std::remove(path_.c_str());
  }
}

void timeline_writer::event(const std::string& body) {
  std::fputs(first_ ? "{" : ",\n{", file_);
  first_ = false;
  std::fputs(body.c_str(), file_);
  std::fputs("}", file_);
}

unsigned timeline_writer::process_of(const std::string& name) {
  const auto [entry, added] = processes_.try_emplace(name, static_cast<unsigned>(processes_.size()) + 1);
  if (added) {
    const std::string pid = std::to_string(entry->second);
    event("\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + pid + ",\"tid\":0,\"args\":{\"name\":" + quoted(name) +
          "}");
    event("\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":" + pid + ",\"tid\":0,\"args\":{\"sort_index\":" + pid +
          "}");
  }
  return entry->second;
}

unsigned timeline_writer::track_of(unsigned process, const std::string& name) {
  const auto [entry, added] = tracks_.try_emplace({process, name}, static_cast<unsigned>(tracks_.size()) + 1);
  if (added) {
    event("\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":" + std::to_string(process) +
          ",\"tid\":" + std::to_string(entry->second) + ",\"args\":{\"name\":" + quoted(name) + "}");
  }
  return entry->second;
}

void timeline_writer::span(const std::string& name, const std::string& category, unsigned process, unsigned track,
                           picoseconds from, picoseconds to, const std::string& arguments) {
  event("\"ph\":\"X\",\"name\":" + quoted(name) + ",\"cat\":" + quoted(category) +
        ",\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(track) + ",\"ts\":" + us(from) +
        ",\"dur\":" + us(to - from) + (arguments.empty() ? "" : ",\"args\":{" + arguments + "}"));
}

void timeline_writer::flow(char phase, std::uint64_t id, unsigned process, unsigned track, picoseconds at) {
  event(std::string("\"ph\":\"") + phase + "\",\"name\":\"chunk\",\"cat\":\"flow\",\"id\":" + std::to_string(id) +
        ",\"pid\":" + std::to_string(process) + ",\"tid\":" + std::to_string(track) + ",\"ts\":" + us(at) +
        (phase == 'f' ? ",\"bp\":\"e\"" : ""));
}

void timeline_writer::follow(probe& source, const std::string& process, const std::string& track) {
  followed each;
  each.source = &source;
  each.process = process_of(process);
  each.track = track_of(each.process, track);
  each.value = source.value();
  source.attach(*this, static_cast<unsigned>(followed_.size()));
  followed_.push_back(each);
}

void timeline_writer::end_state(followed& what, picoseconds at) {
  const probe_info& info = what.source->info();
  if (at <= what.since) return;
  if (info.kind == probe_kind::flag) {
    if (what.value != 0) span("memory stall", "stall", what.process, what.track, what.since, at);
    return;
  }
  const std::string& name = info.states[what.value];
  if (name == "idle" || name == "done") return;
  // Words a reader of a timeline expects: the cluster's exchange is its send phase, the aggregator's merging its
  // reduce.
  const std::string shown = name == "exchange" ? "send" : name == "merging" ? "reduce" : name;
  span(shown, "state", what.process, what.track, what.since, at);
}

void timeline_writer::end_busy(followed& what) {
  if (!what.busy_open) return;
  what.busy_open = false;
  span("sending", "link", what.process, what.track, what.busy_from, what.busy_to,
       "\"joined over gaps under us\":" + us(resolution_));
}

void timeline_writer::counter(const followed& what, picoseconds at) {
  event("\"ph\":\"C\",\"name\":" + quoted(what.source->info().name) + ",\"pid\":" + std::to_string(what.process) +
        ",\"tid\":" + std::to_string(what.track) + ",\"ts\":" + us(at) + ",\"args\":{" +
        quoted(what.source->info().unit.empty() ? "value" : what.source->info().unit) + ":" +
        std::to_string(what.value) + "}");
}

void timeline_writer::changed(unsigned id, picoseconds /*now*/, picoseconds when, std::uint64_t value) {
  followed& what = followed_[id];
  const probe_info& info = what.source->info();
  if (info.kind == probe_kind::quantity) {
    if (what.pending_point && when >= what.last_point + resolution_) {
      counter(what, what.last_point + resolution_);
      what.last_point += resolution_;
      what.pending_point = false;
    }
    what.value = value;
    if (when >= what.last_point + resolution_ || what.last_point == 0) {
      counter(what, when);
      what.last_point = when;
      what.pending_point = false;
    } else {
      what.pending_point = true;
    }
    return;
  }
  if (is_link_busy(info)) {
    if (value != 0) {
      if (what.busy_open && when > what.busy_to + resolution_) end_busy(what);
      if (!what.busy_open) {
        what.busy_open = true;
        what.busy_from = when;
      }
    }
    what.busy_to = when;
    return;
  }
  end_state(what, when);
  what.value = value;
  what.since = when;
}

void timeline_writer::begin_round(std::uint32_t chunks) {
  chunks_ = chunks;
  stride_ = std::max(1U, chunks / 16);
  departures_.clear();
}

bool timeline_writer::drawn(std::uint32_t chunk) const { return chunk % stride_ == 0 || chunk + 1 == chunks_; }

void timeline_writer::departed(unsigned site, std::uint32_t chunk, picoseconds at, picoseconds until) {
  if (!drawn(chunk)) return;
  const unsigned process = process_of(sites_[site]);
  span("send chunk " + std::to_string(chunk), "chunk", process, track_of(process, "sending"), at, until);
  departures_[{site, chunk}] = at;
}

void timeline_writer::arrived(unsigned site, unsigned source, std::uint32_t chunk, picoseconds head, picoseconds tail) {
  if (!drawn(chunk)) return;
  const unsigned from = process_of(sites_[source]);
  const unsigned to = process_of(sites_[site]);
  const unsigned track = track_of(to, "from " + sites_[source]);
  span("chunk " + std::to_string(chunk), "chunk", to, track, head, tail);
  const auto departure = departures_.find({source, chunk});
  if (departure == departures_.end()) return;
  const std::uint64_t id = ++flows_;
  flow('s', id, from, track_of(from, "sending"), departure->second);
  flow('f', id, to, track, head);
}

void timeline_writer::merged(unsigned site, std::uint32_t chunk, picoseconds from, picoseconds to) {
  if (!drawn(chunk)) return;
  const unsigned process = process_of(sites_[site]);
  span("merge chunk " + std::to_string(chunk), "reduce", process, track_of(process, "merging"), from, to);
}

void timeline_writer::end_round(unsigned index, picoseconds from, picoseconds to,
                                const std::vector<timeline_span>& critical_path) {
  const unsigned process = process_of("critical path");
  span("round " + std::to_string(index), "round", process, track_of(process, "rounds"), from, to);
  const unsigned track = track_of(process, "what set its length");
  for (const timeline_span& each : critical_path) {
    span(each.name, each.category, process, track, each.from, each.to, "\"where\":" + quoted(each.where));
  }
}

void timeline_writer::close(picoseconds now) {
  for (followed& each : followed_) {
    const probe_info& info = each.source->info();
    if (info.kind == probe_kind::quantity) {
      if (each.pending_point) counter(each, std::max(now, each.last_point));
    } else if (is_link_busy(info)) {
      end_busy(each);
    } else {
      end_state(each, now);
    }
    each.source->detach(*this);
  }
  followed_.clear();
  std::fputs("\n]}\n", file_);
  const bool failed = std::ferror(file_) != 0;
  const bool unclosed = std::fclose(file_) != 0;
  file_ = nullptr;
  if (failed || unclosed) {
    std::remove(path_.c_str());
    throw std::runtime_error("writing " + path_ + " failed (disk full?)");
  }
}

}  // namespace tributary
