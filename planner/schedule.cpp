#include "planner/schedule.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tributary::planner {

void normalise(partition& round) {
  for (group& each : round) std::sort(each.begin(), each.end());
  std::sort(round.begin(), round.end());
}

bool is_partition(const partition& round, unsigned sites) {
  std::vector<bool> seen(sites, false);
  for (const group& each : round) {
    for (const unsigned site : each) {
      if (site >= sites || seen[site]) return false;
      seen[site] = true;
    }
  }
  return true;
}

bool orthogonal(const partition& a, const partition& b) {
  for (const group& x : a) {
    for (const group& y : b) {
      const auto shared = std::count_if(x.begin(), x.end(),
                                        [&](unsigned site) { return std::find(y.begin(), y.end(), site) != y.end(); });
      if (shared != 1) return false;
    }
  }
  return true;
}

schedule all_to_all(unsigned sites) {
  group everyone(sites);
  std::iota(everyone.begin(), everyone.end(), 0U);
  return {"all-to-all", {{everyone}}};
}

std::vector<partition> all_partitions(unsigned sites, unsigned size) {
  std::vector<partition> found;
  if (size == 0 || sites % size != 0) return found;
  std::vector<bool> used(sites, false);
  partition current;
  // The lowest free site opens the next group, so each partition comes up once.
  std::function<void()> open_group = [&] {
    const auto first = static_cast<unsigned>(std::find(used.begin(), used.end(), false) - used.begin());
    if (first == sites) {
      found.push_back(current);
      return;
    }
    current.push_back({first});
    used[first] = true;
    std::function<void(unsigned)> fill = [&](unsigned from) {
      if (current.back().size() == size) {
        open_group();
        return;
      }
      for (unsigned site = from; site < sites; ++site) {
        if (used[site]) continue;
        used[site] = true;
        current.back().push_back(site);
        fill(site + 1);
        current.back().pop_back();
        used[site] = false;
      }
    };
    fill(first + 1);
    used[first] = false;
    current.pop_back();
  };
  open_group();
  return found;
}

}  // namespace tributary::planner
