// When each source of a group should begin, so that chunks meet at the receivers with the least waiting in memory: a
// linear programme.
//
// Over offsets o_i >= 0, latest arrivals D_j, in place earliest arrivals m_j, seconds a byte t and latest of all E:
//
//   minimise   M t + E
//   subject to D_j >= o_i + L_ij for i != j,   E >= D_j,   t >= 1 / (rate everything but memory allows)
//              per_stream   sum_i (D_j - o_i - L_ij) <= B_j t
//              in_place     m_j <= o_i + L_ij,  D_j - m_j <= B_j t
//
// Rate and offsets are found together: a source that waits longer may let all of them send faster.
#pragma once

#include <vector>

#include "planner/cost_model.hpp"

namespace tributary::planner {

struct offset_solution {
  std::vector<double> offset_s;  ///< per member; the smallest is 0
  double bytes_per_s = 0;        ///< payload, per source
  double latest_s = 0;           ///< E: the latest arrival of a chunk that leaves at its source's offset
  double seconds = 0;            ///< M t + E
};

/// For a group of two or more under paced flow control. `rate_cap`: bytes a second that all but memory allows.
[[nodiscard]] offset_solution best_offsets(const platform_model& model,
                                           const std::vector<std::vector<picoseconds>>& latency, const group& members,
                                           double rate_cap);

}  // namespace tributary::planner
