#include "traces/vcd_writer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace tributary {

namespace {

constexpr std::size_t buffer_bytes = 1 << 18;

/// Shortest identifier code for signal n: printable ASCII 33 to 126, base 94.
std::string code_of(std::size_t n) {
  std::string code;
  do {
    code += static_cast<char>('!' + n % 94);
    n /= 94;
  } while (n-- != 0);
  return code;
}

void append_number(std::string& to, std::uint64_t value) {
  char digits[24];
  const auto [end, status] = std::to_chars(digits, digits + sizeof digits, value);
  (void)status;
  to.append(digits, end);
}

}  // namespace

unsigned vcd_writer::width_of(const probe_info& info) {
  switch (info.kind) {
    case probe_kind::flag: return 1;
    case probe_kind::state: {
      unsigned bits = 1;
      while ((std::size_t{1} << bits) < info.states.size()) ++bits;
      return bits;
    }
    case probe_kind::count: return 32;
    case probe_kind::set: return 64;
    case probe_kind::quantity: return 0;
  }
  return 0;
}

vcd_writer::vcd_writer(const std::string& path, const std::string& comment, const std::vector<traced_signal>& signals,
                       trace_level level, picoseconds from)
    : path_(path), file_(std::fopen(path.c_str(), "wb")), time_(from) {
  if (file_ == nullptr) throw std::runtime_error("cannot write " + path);
  buffer_.reserve(buffer_bytes + 256);
  std::vector<traced_signal> chosen;
  for (const traced_signal& each : signals) {
    if (each.source->info().level <= level && level != trace_level::none) chosen.push_back(each);
  }
  // Scopes must come in one piece each.
  std::stable_sort(chosen.begin(), chosen.end(),
                   [](const traced_signal& a, const traced_signal& b) { return a.scope < b.scope; });
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    signal each;
    each.source = chosen[i].source;
    each.code = code_of(i);
    each.width = width_of(each.source->info());
    each.written = each.source->value();
    each.source->attach(*this, static_cast<unsigned>(i));
    signals_.push_back(std::move(each));
  }
  header(comment, chosen);
}

void vcd_writer::header(const std::string& comment, const std::vector<traced_signal>& signals) {
  buffer_ += "$comment " + comment + " $end\n$timescale 1 ps $end\n";
  std::vector<std::string> open;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    const std::vector<std::string>& scope = signals[i].scope;
    std::size_t common = 0;
    while (common < open.size() && common < scope.size() && open[common] == scope[common]) ++common;
    for (; open.size() > common; open.pop_back()) buffer_ += "$upscope $end\n";
    for (; open.size() < scope.size(); open.push_back(scope[open.size()])) {
      buffer_ += "$scope module " + scope[open.size()] + " $end\n";
    }
    const probe_info& info = signals_[i].source->info();
    const unsigned width = signals_[i].width;
    buffer_ += width == 0 ? std::string("$var real 64 ") : "$var wire " + std::to_string(width) + " ";
    buffer_ += signals_[i].code + " " + info.name;
    if (width > 1) buffer_ += " [" + std::to_string(width - 1) + ":0]";
    buffer_ += " $end\n";
  }
  for (; !open.empty(); open.pop_back()) buffer_ += "$upscope $end\n";
  buffer_ += "$enddefinitions $end\n";
}

/// The first step: every signal's value, changes in the same instant included.
void vcd_writer::dump_all() {
  for (const unsigned id : dirty_) {
    signals_[id].written = signals_[id].next;
    signals_[id].dirty = false;
  }
  dirty_.clear();
  buffer_ += '#';
  append_number(buffer_, time_);
  buffer_ += "\n$dumpvars\n";
  for (const signal& each : signals_) put(each, each.written);
  buffer_ += "$end\n";
  stamped_ = time_;
  dumped_ = true;
}

vcd_writer::~vcd_writer() {
  for (const signal& each : signals_) each.source->detach(*this);
  if (file_ != nullptr) {
    std::fclose(file_);
    std::remove(path_.c_str());
  }
}

void vcd_writer::put(const signal& changed, std::uint64_t value) {
  if (changed.width == 1) {
    buffer_ += value != 0 ? '1' : '0';
  } else if (changed.width == 0) {
    buffer_ += 'r';
    append_number(buffer_, value);
    buffer_ += ' ';
  } else {
    char bits[66];
    unsigned used = 0;
    for (unsigned bit = changed.width; bit-- > 0;) {
      const bool one = (value >> bit & 1U) != 0;
      if (one || used != 0 || bit == 0) bits[used++] = one ? '1' : '0';  // leading zeros are implied
    }
    buffer_ += 'b';
    buffer_.append(bits, used);
    buffer_ += ' ';
  }
  buffer_ += changed.code;
  buffer_ += '\n';
}

void vcd_writer::apply(unsigned id, std::uint64_t value) {
  signal& target = signals_[id];
  target.next = value;
  if (!target.dirty) {
    target.dirty = true;
    dirty_.push_back(id);
  }
}

void vcd_writer::flush_step() {
  if (!dumped_) return dump_all();
  for (const unsigned id : dirty_) {
    signal& each = signals_[id];
    each.dirty = false;
    if (each.next == each.written) continue;
    if (stamped_ != time_) {
      buffer_ += '#';
      append_number(buffer_, time_);
      buffer_ += '\n';
      stamped_ = time_;
    }
    each.written = each.next;
    put(each, each.written);
  }
  dirty_.clear();
  if (buffer_.size() >= buffer_bytes) write_buffer();
}

void vcd_writer::write_buffer() {
  (void)std::fwrite(buffer_.data(), 1, buffer_.size(), file_);  // ferror is asked at close
  buffer_.clear();
}

namespace {
constexpr auto later = [](const auto& a, const auto& b) {
  return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
};
}

/// Finishes every step before `to` and opens the one at `to`.
void vcd_writer::advance(picoseconds to) {
  while (!futures_.empty() && futures_.front().when <= to) {
    const future next = futures_.front();
    std::pop_heap(futures_.begin(), futures_.end(), later);
    futures_.pop_back();
    if (next.when > time_) {
      flush_step();
      time_ = next.when;
    }
    if (next.generation == 0 || next.generation == signals_[next.id].source->generation()) apply(next.id, next.value);
  }
  if (to > time_) {
    flush_step();
    time_ = to;
  }
}

void vcd_writer::changed(unsigned id, picoseconds now, picoseconds when, std::uint64_t value) {
  advance(now);
  if (when > now) {
    futures_.push_back({when, sequence_++, id, value, 0});
    std::push_heap(futures_.begin(), futures_.end(), later);
  } else {
    apply(id, value);
  }
}

void vcd_writer::held(unsigned id, picoseconds now, picoseconds until, std::uint64_t then, std::uint64_t generation) {
  advance(now);
  futures_.push_back({until, sequence_++, id, then, generation});
  std::push_heap(futures_.begin(), futures_.end(), later);
}

void vcd_writer::close(picoseconds now) {
  advance(now);
  flush_step();
  if (stamped_ != now) {
    buffer_ += '#';
    append_number(buffer_, now);
    buffer_ += '\n';
  }
  write_buffer();
  const bool failed = std::ferror(file_) != 0;
  const bool unclosed = std::fclose(file_) != 0;
  file_ = nullptr;
  for (const signal& each : signals_) each.source->detach(*this);
  signals_.clear();
  if (failed || unclosed) {
    std::remove(path_.c_str());
    throw std::runtime_error("writing " + path_ + " failed (disk full?)");
  }
}

}  // namespace tributary
