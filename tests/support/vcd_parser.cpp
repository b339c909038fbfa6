#include "tests/support/vcd_parser.hpp"

#include <cstdlib>
#include <set>
#include <sstream>
#include <stdexcept>

namespace tributary::test {

double vcd_signal::at(std::uint64_t time) const {
  double value = 0;
  for (const auto& [when, each] : changes) {
    if (when > time) break;
    value = each;
  }
  return value;
}

double vcd_signal::highest() const {
  double most = changes.front().second;
  for (const auto& [when, value] : changes) most = std::max(most, value);
  return most;
}

namespace {

class parser {
 public:
  explicit parser(const std::string& text) : in_(text) {}

  vcd_dump run() {
    definitions();
    changes();
    for (auto& [code, signal] : by_code_) {
      if (signal.changes.empty()) throw std::runtime_error("no value was dumped for " + signal.name);
      dump_.signals.emplace(signal.name, signal);
    }
    return std::move(dump_);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error("line " + std::to_string(line_number_) + ": " + why + ": " + line_);
  }
  bool next_line() {
    ++line_number_;
    return static_cast<bool>(std::getline(in_, line_));
  }
  static bool identifier(const std::string& word) {
    if (word.empty() || (std::isdigit(static_cast<unsigned char>(word[0])) != 0)) return false;
    for (const char c : word) {
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
    }
    return true;
  }

  void definitions() {
    std::vector<std::string> scope;
    std::set<std::vector<std::string>> closed;
    bool timescale = false;
    while (next_line()) {
      std::istringstream words(line_);
      std::string keyword;
      words >> keyword;
      std::vector<std::string> rest;
      for (std::string word; words >> word;) rest.push_back(word);
      if (rest.empty() || rest.back() != "$end") fail("a declaration ends with $end");
      rest.pop_back();
      if (keyword == "$comment" || keyword == "$version") continue;
      if (keyword == "$timescale") {
        if (rest.size() != 2 || rest[0] != "1" || rest[1] != "ps") fail("time scale");
        timescale = true;
      } else if (keyword == "$scope") {
        if (rest.size() != 2 || rest[0] != "module" || !identifier(rest[1])) fail("scope");
        scope.push_back(rest[1]);
        if (closed.count(scope) != 0) fail("a scope opened twice");
      } else if (keyword == "$upscope") {
        if (!rest.empty() || scope.empty()) fail("upscope");
        closed.insert(scope);
        scope.pop_back();
      } else if (keyword == "$var") {
        if (rest.size() != 4 && rest.size() != 5) fail("var");
        vcd_signal signal;
        signal.type = rest[0];
        signal.width = static_cast<unsigned>(std::stoul(rest[1]));
        if (signal.type != "wire" && signal.type != "real") fail("var type");
        if (signal.type == "real" && signal.width != 64) fail("a real has 64 bits");
        for (const char c : rest[2]) {
          if (c < '!' || c > '~') fail("identifier code");
        }
        if (!identifier(rest[3])) fail("reference");
        if (rest.size() == 5 && rest[4] != "[" + std::to_string(signal.width - 1) + ":0]") fail("range");
        for (const std::string& each : scope) signal.name += each + ".";
        signal.name += rest[3];
        if (!names_.insert(signal.name).second) fail("two signals of one name");
        if (!by_code_.emplace(rest[2], signal).second) fail("identifier code used twice");
      } else if (keyword == "$enddefinitions") {
        if (!scope.empty()) fail("a scope is open at the end of the definitions");
        if (!timescale) fail("no time scale");
        return;
      } else {
        fail("unknown declaration");
      }
    }
    fail("no $enddefinitions");
  }

  void changes() {
    bool timed = false;
    bool dumping = false;
    while (next_line()) {
      if (line_.empty()) fail("an empty line");
      if (line_[0] == '#') {
        char* end = nullptr;
        const std::uint64_t time = std::strtoull(line_.c_str() + 1, &end, 10);
        if (*end != 0) fail("time");
        if (timed && time <= dump_.last_time) fail("time does not move on");
        if (!timed) dump_.first_time = time;
        timed = true;
        dump_.last_time = time;
        continue;
      }
      if (!timed) fail("a value before the first time");
      if (line_ == "$dumpvars") {
        dumping = true;
        continue;
      }
      if (line_ == "$end") {
        if (!dumping) fail("$end without $dumpvars");
        dumping = false;
        continue;
      }
      value();
    }
    if (dumping) fail("$dumpvars is not ended");
    if (!timed) fail("no time");
  }

  void value() {
    const char kind = line_[0];
    std::string code;
    double parsed = 0;
    if (kind == '0' || kind == '1') {
      code = line_.substr(1);
      parsed = kind - '0';
    } else if (kind == 'b' || kind == 'r') {
      const std::size_t space = line_.find(' ');
      if (space == std::string::npos) fail("no identifier code");
      code = line_.substr(space + 1);
      const std::string text = line_.substr(1, space - 1);
      if (kind == 'b') {
        for (const char c : text) {
          if (c != '0' && c != '1') fail("bit");
          parsed = parsed * 2 + (c - '0');
        }
      } else {
        char* end = nullptr;
        parsed = std::strtod(text.c_str(), &end);
        if (*end != 0 || text.empty()) fail("real");
      }
    } else {
      fail("neither a time nor a value");
    }
    const auto found = by_code_.find(code);
    if (found == by_code_.end()) fail("undeclared identifier code");
    vcd_signal& signal = found->second;
    if ((kind == 'r') != (signal.type == "real")) fail("a value of the wrong type");
    if ((kind == '0' || kind == '1') && signal.width != 1) fail("a scalar value for a vector");
    if (kind == 'b' && (signal.width == 1 || line_.find(' ') - 1 > signal.width))
      fail("a vector value of the wrong width");
    if (!signal.changes.empty() && signal.changes.back().first == dump_.last_time) fail("two changes at one time");
    if (!signal.changes.empty() && signal.changes.back().second == parsed) fail("a change that changes nothing");
    signal.changes.emplace_back(dump_.last_time, parsed);
  }

  std::istringstream in_;
  std::string line_;
  std::size_t line_number_ = 0;
  std::map<std::string, vcd_signal> by_code_;
  std::set<std::string> names_;
  vcd_dump dump_;
};

}  // namespace

vcd_dump parse_vcd(const std::string& text) { return parser(text).run(); }

std::vector<std::string> differing_signals(const vcd_dump& a, const vcd_dump& b) {
  std::vector<std::string> different;
  for (const auto& [name, signal] : a.signals) {
    const auto found = b.signals.find(name);
    if (found == b.signals.end() || found->second.changes != signal.changes) different.push_back(name);
  }
  for (const auto& [name, signal] : b.signals) {
    if (a.signals.count(name) == 0) different.push_back(name);
  }
  return different;
}

}  // namespace tributary::test
