#include "modules/memory_controller/address_mapping.hpp"

#include <cctype>
#include <stdexcept>

namespace tributary {

namespace {

constexpr std::array<const char*, 6> kinds{"ch", "ra", "bg", "ba", "ro", "co"};
constexpr unsigned row_kind = 4;
constexpr unsigned column_kind = 5;
constexpr unsigned channel_kind = 0;

bool power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }
unsigned bits_of_count(std::uint64_t count) { return static_cast<unsigned>(__builtin_ctzll(count)); }

}  // namespace

std::string dram_device::complaint() const {
  if (timing.clock == 0) return "the clock period must not be zero";
  if (timing.burst_cycles == 0) return "the burst length must be at least 2";
  for (const std::uint64_t count :
       {std::uint64_t{geometry.channels}, std::uint64_t{geometry.ranks}, std::uint64_t{geometry.bank_groups},
        std::uint64_t{geometry.banks}, geometry.rows, geometry.columns, std::uint64_t{geometry.bus_bits}}) {
    if (!power_of_two(count)) {
      return "channels, ranks, bank groups, banks, rows, columns and bus width must be powers of two";
    }
  }
  if (geometry.bus_bits < 8) return "the bus must be at least 8 bits wide";
  if (geometry.banks_per_channel() > 64) return "a channel has at most 64 banks";
  if (geometry.row_bytes() < access_bytes()) return "a row must hold at least one burst";
  if (policy.refresh != refresh_policy::none && timing.refi <= timing.rfc) return "tREFI must be longer than tRFC";
  if (policy.refresh == refresh_policy::per_bank && timing.rfc_pb == 0) return "per-bank refresh needs tRFCpb";
  if (policy.refresh == refresh_policy::per_bank && timing.refi <= timing.rfc_pb) {
    return "tREFI must be longer than tRFCpb";
  }
  if (policy.transaction_queue == 0 || policy.bank_queue == 0 || policy.port_columns == 0) {
    return "queues and ports must hold at least one access";
  }
  if (policy.drain_high == 0 || policy.drain_high > policy.transaction_queue || policy.drain_low >= policy.drain_high) {
    return "write drain watermarks: 0 <= low < high <= transaction queue";
  }
  return {};
}

address_mapping::address_mapping(const dram_device& device) {
  if (const std::string why = device.complaint(); !why.empty()) throw std::invalid_argument(why);
  const dram_geometry& g = device.geometry;
  std::array<unsigned, 6> left{bits_of_count(g.channels),    bits_of_count(g.ranks),
                               bits_of_count(g.bank_groups), bits_of_count(g.banks),
                               bits_of_count(g.rows),        bits_of_count(device.accesses_per_row())};

  struct token {
    unsigned what;
    unsigned bits;  ///< 0: whatever is left of the field
  };
  std::vector<token> tokens;
  const std::string& text = device.policy.mapping;
  for (std::size_t at = 0; at < text.size();) {
    unsigned what = 0;
    while (what < kinds.size() && text.compare(at, 2, kinds[what]) != 0) ++what;
    if (what == kinds.size()) {
      throw std::invalid_argument("address mapping '" + text + "': '" + text.substr(at, 2) +
                                  "' is none of ro, ra, bg, ba, co, ch");
    }
    at += 2;
    unsigned bits = 0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
      bits = bits * 10 + static_cast<unsigned>(text[at++] - '0');
      if (bits > 63) throw std::invalid_argument("address mapping '" + text + "': a field has at most 63 bits");
    }
    tokens.push_back({what, bits});
  }

  unsigned shift = bits_of_count(device.access_bytes());
  std::array<unsigned, 6> position{};
  for (std::size_t t = tokens.size(); t-- > 0;) {
    const auto [what, given] = tokens[t];
    const unsigned bits = given == 0 ? left[what] : given;
    if (bits > left[what]) {
      throw std::invalid_argument("address mapping '" + text + "': more bits of '" + kinds[what] +
                                  "' than the device has");
    }
    fields_.push_back({what, shift, bits, position[what]});
    shift += bits;
    position[what] += bits;
    left[what] -= bits;
  }
  for (unsigned what = 0; what < kinds.size(); ++what) {
    if (left[what] != 0) {
      throw std::invalid_argument("address mapping '" + text + "': " + std::to_string(left[what]) + " bits of '" +
                                  kinds[what] + "' have no place");
    }
  }

  row_run_bytes_ = channel_run_bytes_ = device.access_bytes();
  for (const field& f : fields_) {
    if (f.bits != 0 && f.what != column_kind) break;
    row_run_bytes_ <<= f.bits;
  }
  for (const field& f : fields_) {
    if (f.bits != 0 && f.what == channel_kind) break;
    channel_run_bytes_ <<= f.bits;
  }
}

dram_location address_mapping::locate(std::uint64_t address) const {
  std::array<std::uint64_t, 6> value{};
  for (const field& f : fields_) {
    value[f.what] |= (address >> f.shift & ((std::uint64_t{1} << f.bits) - 1)) << f.position;
  }
  dram_location at;
  at.channel = static_cast<unsigned>(value[channel_kind]);
  at.rank = static_cast<unsigned>(value[1]);
  at.bank_group = static_cast<unsigned>(value[2]);
  at.bank = static_cast<unsigned>(value[3]);
  at.row = value[row_kind];
  at.column = value[column_kind];
  return at;
}

}  // namespace tributary
