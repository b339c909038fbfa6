#include "planner/constructions.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

namespace tributary::planner {

construction all_to_all_construction(unsigned sites) { return {all_to_all(sites), 1, 1}; }

construction mixed_radix(const std::vector<unsigned>& radices) {
  const unsigned sites = std::accumulate(radices.begin(), radices.end(), 1U, std::multiplies<>());
  construction result;
  std::string name;
  for (const unsigned radix : radices) name += (name.empty() ? "" : " x ") + std::to_string(radix);
  result.rounds.name = "grid " + name;
  unsigned stride = sites;
  for (const unsigned radix : radices) {
    stride /= radix;
    partition round;
    for (unsigned site = 0; site < sites; ++site) {
      if (site / stride % radix != 0) continue;  // the member with digit 0 opens the group
      group members;
      for (unsigned digit = 0; digit < radix; ++digit) members.push_back(site + digit * stride);
      round.push_back(std::move(members));
    }
    result.rounds.rounds.push_back(std::move(round));
  }
  result.exact_after = static_cast<unsigned>(radices.size());
  result.pairs_each = radices.size() == 1 ? 1 : 0;
  return result;
}

std::vector<unsigned> radices_for(unsigned sites, unsigned largest) {
  // Fewest factors, each at most `largest`: by depth-first search, larger factors first; sizes here are small.
  std::vector<unsigned> best;
  std::vector<unsigned> current;
  const std::function<void(unsigned, unsigned)> split = [&](unsigned left, unsigned most) {
    if (left == 1) {
      if (best.empty() || current.size() < best.size()) best = current;
      return;
    }
    if (!best.empty() && current.size() + 1 > best.size()) return;
    for (unsigned factor = std::min(most, left); factor >= 2; --factor) {
      if (left % factor != 0) continue;
      current.push_back(factor);
      split(left / factor, factor);
      current.pop_back();
    }
  };
  if (sites >= 2) split(sites, largest);
  return best;
}

namespace {

/// Arithmetic of the field of q elements, q = p^m <= 9: elements are polynomials over p, numbered by their digits base
/// p, modulo an irreducible one.
class small_field {
 public:
  static std::optional<small_field> of(unsigned order) {
    switch (order) {
      case 2:
      case 3:
      case 5:
      case 7: return small_field(order, 1, {});
      case 4: return small_field(2, 2, {1, 1});     // x^2 = x + 1
      case 8: return small_field(2, 3, {1, 1, 0});  // x^3 = x + 1
      case 9: return small_field(3, 2, {2, 0});     // x^2 = 2
      default: return std::nullopt;
    }
  }
  [[nodiscard]] unsigned order() const { return order_; }
  [[nodiscard]] unsigned add(unsigned a, unsigned b) const {
    unsigned sum = 0;
    for (unsigned place = 1; place < order_; place *= prime_) {
      sum += (a / place + b / place) % prime_ * place;
    }
    return sum;
  }
  [[nodiscard]] unsigned multiply(unsigned a, unsigned b) const {
    unsigned product = 0;
    unsigned shifted = a;  // a x^i
    for (unsigned rest = b; rest != 0; rest /= prime_) {
      for (unsigned times = rest % prime_; times > 0; --times) product = add(product, shifted);
      shifted = times_x(shifted);
    }
    return product;
  }

 private:
  small_field(unsigned prime, unsigned degree, std::vector<unsigned> top) : prime_(prime), top_(std::move(top)) {
    order_ = 1;
    for (unsigned d = 0; d < degree; ++d) order_ *= prime;
  }
  [[nodiscard]] unsigned times_x(unsigned a) const {
    if (order_ == prime_) return 0;  // constants only; x never occurs
    const unsigned leading = a / (order_ / prime_);
    unsigned result = a % (order_ / prime_) * prime_;
    unsigned reduced = 0;
    unsigned place = 1;
    for (const unsigned coefficient : top_) {
      reduced += coefficient * leading % prime_ * place;
      place *= prime_;
    }
    return add(result, reduced);
  }

  unsigned prime_;
  unsigned order_ = 0;
  std::vector<unsigned> top_;  ///< x^degree in lower powers, constant first
};

}  // namespace

std::optional<construction> affine_plane(unsigned order) {
  const std::optional<small_field> field = small_field::of(order);
  if (!field) return std::nullopt;
  const unsigned q = order;
  construction result;
  result.rounds.name = "affine plane of order " + std::to_string(q);
  // Site x q + y is the point (x, y). Lines y = m x + b for each slope m, and the verticals x = b.
  for (unsigned slope = 0; slope <= q; ++slope) {
    partition round(q);
    for (unsigned b = 0; b < q; ++b) {
      for (unsigned x = 0; x < q; ++x) {
        const unsigned site = slope == q ? b * q + x : x * q + field->add(field->multiply(slope, x), b);
        round[b].push_back(site);
      }
    }
    normalise(round);
    result.rounds.rounds.push_back(std::move(round));
  }
  result.exact_after = 2;
  result.pairs_each = 1;
  return result;
}

construction kirkman_fifteen() {
  // Points are 1..15, lines {a, b, a xor b}. First all 56 spreads (five disjoint lines), then seven disjoint spreads.
  std::vector<group> lines;
  for (unsigned a = 1; a < 16; ++a) {
    for (unsigned b = a + 1; b < 16; ++b) {
      if ((a ^ b) > b) lines.push_back({a, b, a ^ b});
    }
  }
  std::vector<std::vector<unsigned>> spreads;
  std::vector<unsigned> chosen;
  const std::function<void(unsigned)> cover = [&](unsigned covered) {
    if (covered == 0xfffe) {
      spreads.push_back(chosen);
      return;
    }
    unsigned first = 1;
    while ((covered >> first & 1) != 0) ++first;
    for (unsigned l = 0; l < lines.size(); ++l) {
      const unsigned mask = 1U << lines[l][0] | 1U << lines[l][1] | 1U << lines[l][2];
      if (lines[l][0] != first || (covered & mask) != 0) continue;
      chosen.push_back(l);
      cover(covered | mask);
      chosen.pop_back();
    }
  };
  cover(0);
  std::vector<unsigned> packing;
  std::set<unsigned> used;
  const std::function<bool()> pack = [&] {
    if (packing.size() == 7) return true;
    unsigned first = 0;
    while (used.count(first) != 0) ++first;
    for (unsigned s = 0; s < spreads.size(); ++s) {
      if (std::find(spreads[s].begin(), spreads[s].end(), first) == spreads[s].end()) continue;
      if (std::any_of(spreads[s].begin(), spreads[s].end(), [&](unsigned l) { return used.count(l) != 0; })) continue;
      packing.push_back(s);
      used.insert(spreads[s].begin(), spreads[s].end());
      if (pack()) return true;
      packing.pop_back();
      for (const unsigned l : spreads[s]) used.erase(l);
    }
    return false;
  };
  (void)pack();
  construction result;
  result.rounds.name = "Kirkman's fifteen";
  for (const unsigned s : packing) {
    partition round;
    for (const unsigned l : spreads[s]) round.push_back({lines[l][0] - 1, lines[l][1] - 1, lines[l][2] - 1});
    normalise(round);
    result.rounds.rounds.push_back(std::move(round));
  }
  result.exact_after = 0;
  result.pairs_each = 1;
  return result;
}

construction one_factorisation(unsigned sites) {
  construction result;
  result.rounds.name = "pairs, every one once";
  // One site stands still, the others move round it; with an odd number the one that stands still is the pause.
  const unsigned seats = sites + sites % 2;
  for (unsigned turn = 0; turn + 1 < seats; ++turn) {
    const auto at = [&](unsigned seat) { return seat == 0 ? seats - 1 : (turn + seat) % (seats - 1); };
    partition round;
    for (unsigned seat = 0; seat < seats / 2; ++seat) {
      const unsigned a = at(seat);
      const unsigned b = at(seats - 1 - seat);
      if (a < sites && b < sites) {
        round.push_back({a, b});
      } else {
        round.push_back({std::min(a, b)});
      }
    }
    normalise(round);
    result.rounds.rounds.push_back(std::move(round));
  }
  result.exact_after = sites == 2 ? 1 : sites == 4 ? 2 : 0;
  result.pairs_each = 1;
  return result;
}

construction ring(unsigned sites) {
  construction result;
  result.rounds.name = "ring of neighbours";
  const unsigned rounds = sites % 2 == 0 ? 2 : 3;
  for (unsigned turn = 0; turn < rounds; ++turn) {
    partition round;
    std::vector<bool> busy(sites, false);
    // Edges (i, i + 1): even ones, odd ones, and with an odd number the edge that closes the ring by itself.
    for (unsigned i = 0; i < sites; ++i) {
      const unsigned next = (i + 1) % sites;
      const bool closing = sites % 2 == 1 && i + 1 == sites;
      if (closing ? turn != 2 : (turn == 2 || i % 2 != turn)) continue;
      if (busy[i] || busy[next]) continue;
      busy[i] = busy[next] = true;
      round.push_back({i, next});
    }
    for (unsigned i = 0; i < sites; ++i) {
      if (!busy[i]) round.push_back({i});
    }
    normalise(round);
    result.rounds.rounds.push_back(std::move(round));
  }
  result.exact_after = sites == 2 ? 1 : sites == 4 ? 2 : 0;
  return result;
}

construction grid_rotation(unsigned sites, unsigned size) {
  const unsigned rows = std::max(1U, (sites + size - 1) / size);
  partition row_groups(rows);
  const unsigned columns = (sites + rows - 1) / rows;
  partition column_groups(columns);
  for (unsigned site = 0; site < sites; ++site) {
    row_groups[site % rows].push_back(site);  // as equal as they can be
    column_groups[site / rows].push_back(site);
  }
  construction result;
  result.rounds.name = "rotating groups of " + std::to_string(size);
  for (partition* round : {&row_groups, &column_groups}) {
    // Columns of a wide grid are longer than `size`: cut them.
    partition cut;
    for (const group& each : *round) {
      const auto pieces = static_cast<unsigned>((each.size() + size - 1) / size);
      partition parts(pieces);
      for (std::size_t i = 0; i < each.size(); ++i) parts[i % pieces].push_back(each[i]);
      cut.insert(cut.end(), parts.begin(), parts.end());
    }
    normalise(cut);
    result.rounds.rounds.push_back(std::move(cut));
  }
  const bool square = size * size == sites;
  result.exact_after = square ? 2 : 0;
  return result;
}

construction hierarchy(unsigned sites, unsigned size) {
  construction result;
  result.rounds.name = "hierarchy of groups of " + std::to_string(size);
  partition local;
  partition leaders;
  group heads;
  for (unsigned site = 0; site < sites; ++site) {
    if (site % size == 0) {
      local.emplace_back();
      heads.push_back(site);
    } else {
      leaders.push_back({site});
    }
    local.back().push_back(site);
  }
  leaders.push_back(heads);
  normalise(leaders);
  result.rounds.rounds = {local, leaders, local};
  result.exact_after = sites <= size ? 1 : 0;
  return result;
}

construction one_peer_exponential(unsigned sites) {
  construction result;
  result.rounds.name = "one-peer exponential";
  for (unsigned distance = 1; distance < sites; distance *= 2) {
    partition round;
    for (unsigned i = 0; i < sites; ++i) {
      const bool lower = i / distance % 2 == 0;
      if (lower && i + distance < sites) {
        round.push_back({i, i + distance});
      } else if (lower) {
        round.push_back({i});  // its partner does not exist
      }
    }
    normalise(round);
    result.rounds.rounds.push_back(std::move(round));
  }
  const bool power = sites > 1 && (sites & (sites - 1)) == 0;
  result.exact_after = power ? static_cast<unsigned>(result.rounds.rounds.size()) : 0;
  result.pairs_each = sites == 2 ? 1 : 0;
  return result;
}

namespace {

/// Rounds over sites first .. first + count - 1, everybody else alone; padded to `rounds` by callers.
struct partial_rounds {
  std::vector<partition> rounds;
  std::vector<double> blend;
};

void pad(partial_rounds& of, std::size_t rounds) {
  of.rounds.resize(rounds);
  of.blend.resize(rounds, 1);
}

/// The base_sequence over `count` sites from `first`; groups only, sites alone are left out.
partial_rounds base_rounds(unsigned first, unsigned count, unsigned base) {
  partial_rounds result;
  if (count <= 1) return result;
  unsigned power = 1;
  while (power * base <= count) power *= base;
  const unsigned leading = count / power * power;
  // The hyper-grid of the leading part: one digit of at most base - 1, then digits of base.
  std::vector<unsigned> radices;
  if (leading / power > 1) radices.push_back(leading / power);
  for (unsigned left = power; left > 1; left /= base) radices.push_back(base);
  partial_rounds grid;
  if (!radices.empty()) {
    for (partition round : mixed_radix(radices).rounds.rounds) {
      for (group& members : round) {
        for (unsigned& site : members) site += first;
      }
      grid.rounds.push_back(std::move(round));
      grid.blend.push_back(1);
    }
  }
  const unsigned rest = count - leading;
  if (rest == 0) return grid;
  partial_rounds of_rest = base_rounds(first + leading, rest, base);
  // Blends of the rest's rounds are not 1; rounds that run beside them must do nothing else, so they come first.
  const bool plain = std::all_of(of_rest.blend.begin(), of_rest.blend.end(), [](double each) { return each == 1; });
  if (plain) {
    const std::size_t together = std::max(grid.rounds.size(), of_rest.rounds.size());
    partial_rounds beside = grid;
    pad(beside, together);
    pad(of_rest, together);
    for (std::size_t r = 0; r < together; ++r) {
      partition round = beside.rounds[r];
      round.insert(round.end(), of_rest.rounds[r].begin(), of_rest.rounds[r].end());
      result.rounds.push_back(std::move(round));
      result.blend.push_back(1);
    }
  } else {
    result = of_rest;
    result.rounds.insert(result.rounds.end(), grid.rounds.begin(), grid.rounds.end());
    result.blend.insert(result.blend.end(), grid.blend.begin(), grid.blend.end());
  }
  partition across;
  for (unsigned i = 0; i < rest; ++i) across.push_back({first + i, first + leading + i});
  result.rounds.push_back(std::move(across));
  result.blend.push_back(2.0 * leading / count);
  result.rounds.insert(result.rounds.end(), grid.rounds.begin(), grid.rounds.end());
  result.blend.insert(result.blend.end(), grid.blend.begin(), grid.blend.end());
  return result;
}

}  // namespace

construction base_sequence(unsigned sites, unsigned base) {
  construction result;
  result.rounds.name = "base-" + std::to_string(base) + " sequence";
  partial_rounds rounds = base_rounds(0, sites, base);
  for (partition& round : rounds.rounds) {
    std::vector<bool> busy(sites, false);
    for (const group& members : round) {
      for (const unsigned site : members) busy[site] = true;
    }
    for (unsigned site = 0; site < sites; ++site) {
      if (!busy[site]) round.push_back({site});
    }
    normalise(round);
    result.rounds.rounds.push_back(std::move(round));
  }
  if (std::any_of(rounds.blend.begin(), rounds.blend.end(), [](double each) { return each != 1; })) {
    result.rounds.blend = std::move(rounds.blend);
  }
  result.exact_after = static_cast<unsigned>(result.rounds.rounds.size());
  return result;
}

std::vector<construction> constructions_for(unsigned sites, unsigned largest) {
  std::vector<construction> all{all_to_all_construction(sites)};
  std::set<std::vector<unsigned>> grids;
  for (unsigned k = 2; k <= std::min(largest, sites - 1); ++k) {
    const std::vector<unsigned> radices = radices_for(sites, k);
    if (radices.size() > 1 && grids.insert(radices).second) all.push_back(mixed_radix(radices));
  }
  for (unsigned q = 2; q <= std::min(largest, 9U); ++q) {
    if (q * q != sites) continue;
    if (std::optional<construction> plane = affine_plane(q)) all.push_back(std::move(*plane));
  }
  if (sites == 15 && largest >= 3) all.push_back(kirkman_fifteen());
  for (unsigned k = 3; k <= std::min(largest, sites - 1); ++k) {
    construction grid = grid_rotation(sites, k);
    const bool known = std::any_of(all.begin(), all.end(), [&grid](const construction& each) {
      return each.rounds.rounds.size() == grid.rounds.rounds.size() &&
             each.rounds.rounds.front().size() == grid.rounds.rounds.front().size();
    });  // the same grid, reached with a smaller limit
    if (!known) all.push_back(std::move(grid));
  }
  // Pairs, threes, and as large as may be: those between are hardly ever best, and long.
  for (const unsigned base : std::set<unsigned>{2, 3, largest}) {
    if (base < 2 || base > std::min(largest, sites - 1)) continue;
    construction sequence = base_sequence(sites, base);
    if (!sequence.rounds.blend.empty()) all.push_back(std::move(sequence));  // else it is a hyper-grid, above
  }
  if (sites > 4 && (sites & (sites - 1)) != 0) all.push_back(one_peer_exponential(sites));
  all.push_back(one_factorisation(sites));
  if (sites > 4) all.push_back(ring(sites));
  return all;
}

schedule relabelled(const schedule& of, const std::vector<unsigned>& label) {
  schedule result = of;
  for (partition& round : result.rounds) {
    for (group& members : round) {
      for (unsigned& site : members) site = label[site];
    }
    normalise(round);
  }
  return result;
}

std::vector<std::vector<unsigned>> meetings(const schedule& of, unsigned sites) {
  std::vector<std::vector<unsigned>> count(sites, std::vector<unsigned>(sites, 0));
  for (const partition& round : of.rounds) {
    for (const group& members : round) {
      for (const unsigned i : members) {
        for (const unsigned j : members) {
          if (i != j) ++count[i][j];
        }
      }
    }
  }
  return count;
}

exchange_figures exchange(const schedule& of, const std::vector<double>& round_s, unsigned sites) {
  const double period = std::accumulate(round_s.begin(), round_s.end(), 0.0);
  exchange_figures figures;
  double served = 0;
  for (const partition& round : of.rounds) {
    for (const group& members : round) served += static_cast<double>(members.size() * (members.size() - 1));
  }
  figures.pairs_per_s = served / period;
  double age_sum = 0;
  for (unsigned i = 0; i < sites; ++i) {
    for (unsigned j = 0; j < sites; ++j) {
      if (i == j) continue;
      // Deliveries in two passes: (end of the round, begin of the round). Between deliveries age grows with time.
      std::vector<std::pair<double, double>> deliveries;
      double at = 0;
      for (unsigned pass = 0; pass < 2; ++pass) {
        for (std::size_t r = 0; r < of.rounds.size(); ++r) {
          for (const group& members : of.rounds[r]) {
            const bool both = std::find(members.begin(), members.end(), i) != members.end() &&
                              std::find(members.begin(), members.end(), j) != members.end();
            if (both) deliveries.emplace_back(at + round_s[r], at);
          }
          at += round_s[r];
        }
      }
      if (deliveries.empty()) {
        figures.mean_age_s = figures.worst_age_s = std::numeric_limits<double>::infinity();
        return figures;
      }
      const std::size_t in_a_pass = deliveries.size() / 2;
      double area = 0;
      for (std::size_t d = 0; d < in_a_pass; ++d) {
        const double youngest = deliveries[d].first - deliveries[d].second;
        const double oldest = deliveries[d + 1].first - deliveries[d].second;
        area += (oldest * oldest - youngest * youngest) / 2;  // age rises from one to the other at slope 1
        figures.worst_age_s = std::max(figures.worst_age_s, oldest);
      }
      age_sum += area / period;
    }
  }
  figures.mean_age_s = age_sum / static_cast<double>(sites * (sites - 1));
  return figures;
}

}  // namespace tributary::planner
