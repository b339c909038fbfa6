#include "planner/mixing.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tributary::planner {

Eigen::MatrixXd mixing_matrix(const partition& round, const std::vector<double>& weights, double blend) {
  const auto n = static_cast<Eigen::Index>(weights.size());
  Eigen::MatrixXd w = Eigen::MatrixXd::Identity(n, n);
  for (const group& members : round) {
    double total = 0;
    for (const unsigned site : members) total += weights[site];
    for (const unsigned i : members) {
      for (const unsigned j : members) w(i, j) = blend * weights[j] / total + (i == j ? 1 - blend : 0);
    }
  }
  return w;
}

namespace {

Eigen::MatrixXd averaging(const std::vector<double>& weights) {
  const auto n = static_cast<Eigen::Index>(weights.size());
  double total = 0;
  for (const double weight : weights) total += weight;
  Eigen::MatrixXd average(n, n);
  for (Eigen::Index j = 0; j < n; ++j) average.col(j).setConstant(weights[static_cast<std::size_t>(j)] / total);
  return average;
}

Eigen::MatrixXd matrix_of(const schedule& of, std::size_t t, const std::vector<double>& weights) {
  const std::size_t r = t % of.rounds.size();
  return mixing_matrix(of.rounds[r], weights, of.blend.empty() ? 1 : of.blend[r]);
}

}  // namespace

std::vector<double> disagreement(const schedule& of, const std::vector<double>& weights, unsigned rounds) {
  const auto n = static_cast<Eigen::Index>(weights.size());
  const Eigen::MatrixXd average = averaging(weights);
  Eigen::MatrixXd product = Eigen::MatrixXd::Identity(n, n);
  std::vector<double> sigma;
  for (unsigned t = 0; t < rounds; ++t) {
    product = matrix_of(of, t, weights) * product;
    const Eigen::JacobiSVD<Eigen::MatrixXd> svd(product - average);
    const double norm = svd.singularValues()(0);
    sigma.push_back(norm < 1e-12 ? 0 : norm);
  }
  return sigma;
}

unsigned rounds_to_epsilon(const schedule& of, const std::vector<double>& weights, double epsilon, unsigned most) {
  const std::vector<double> sigma = disagreement(of, weights, most);
  for (unsigned t = 0; t < sigma.size(); ++t) {
    if (sigma[t] <= epsilon) return t + 1;
  }
  return 0;
}

double spectral_gap(const schedule& of, const std::vector<double>& weights) {
  const auto n = static_cast<Eigen::Index>(weights.size());
  Eigen::MatrixXd product = Eigen::MatrixXd::Identity(n, n);
  for (std::size_t t = 0; t < of.rounds.size(); ++t) product = matrix_of(of, t, weights) * product;
  // Taking the average away turns its eigenvalue 1 into 0 and leaves the others.
  const Eigen::EigenSolver<Eigen::MatrixXd> solver(product - averaging(weights), false);
  const double second = solver.eigenvalues().cwiseAbs().maxCoeff();
  return 1 - (second < 1e-7 ? 0 : second);  // a nilpotent rest: its eigenvalues are known to the root of rounding only
}

double random_groups_contraction(unsigned sites, unsigned size) {
  return static_cast<double>(sites - size) / (static_cast<double>(size) * (sites - 1));
}

double contraction_under_failures(const schedule& of, unsigned sites, double failure) {
  const auto n = static_cast<Eigen::Index>(sites);
  const Eigen::MatrixXd average = Eigen::MatrixXd::Constant(n, n, 1.0 / sites);
  Eigen::MatrixXd left = Eigen::MatrixXd::Identity(n, n) - average;
  for (std::size_t t = of.rounds.size(); t-- > 0;) {
    const partition& round = of.rounds[t];
    const double blend = of.blend.empty() ? 1 : of.blend[t];
    // Expected W, group by group, and with it all blocks of E[W' M W] between different groups: they fail apart.
    struct outcome {
      double probability;
      Eigen::MatrixXd w;
    };
    std::vector<std::vector<outcome>> outcomes;
    Eigen::MatrixXd expected = Eigen::MatrixXd::Identity(n, n);
    for (const group& members : round) {
      if (members.size() > 16) throw std::invalid_argument("groups of more than 16 sites have too many subsets");
      const auto k = static_cast<Eigen::Index>(members.size());
      Eigen::MatrixXd mean = Eigen::MatrixXd::Zero(k, k);
      outcomes.emplace_back();
      for (std::uint32_t present = 0; present < (1U << members.size()); ++present) {
        const int count = __builtin_popcount(present);
        outcome each{std::pow(1 - failure, count) * std::pow(failure, static_cast<double>(k) - count),
                     Eigen::MatrixXd::Identity(k, k)};
        for (Eigen::Index i = 0; i < k; ++i) {
          for (Eigen::Index j = 0; j < k; ++j) {
            if ((present >> i & 1U) == 0 || (present >> j & 1U) == 0) continue;
            each.w(i, j) = blend / count + (i == j ? 1 - blend : 0);
          }
        }
        mean += each.probability * each.w;
        if (each.probability > 0) outcomes.back().push_back(std::move(each));
      }
      for (Eigen::Index i = 0; i < k; ++i) {
        for (Eigen::Index j = 0; j < k; ++j) {
          expected(members[static_cast<std::size_t>(i)], members[static_cast<std::size_t>(j)]) = mean(i, j);
        }
      }
    }
    Eigen::MatrixXd next = expected.transpose() * left * expected;
    for (std::size_t g = 0; g < round.size(); ++g) {
      const group& members = round[g];
      const auto k = static_cast<Eigen::Index>(members.size());
      Eigen::MatrixXd block(k, k);
      for (Eigen::Index i = 0; i < k; ++i) {
        for (Eigen::Index j = 0; j < k; ++j) {
          block(i, j) = left(members[static_cast<std::size_t>(i)], members[static_cast<std::size_t>(j)]);
        }
      }
      Eigen::MatrixXd own = Eigen::MatrixXd::Zero(k, k);
      for (const outcome& each : outcomes[g]) own += each.probability * each.w.transpose() * block * each.w;
      for (Eigen::Index i = 0; i < k; ++i) {
        for (Eigen::Index j = 0; j < k; ++j) {
          next(members[static_cast<std::size_t>(i)], members[static_cast<std::size_t>(j)]) = own(i, j);
        }
      }
    }
    left = next;
  }
  const Eigen::MatrixXd off = Eigen::MatrixXd::Identity(n, n) - average;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(off * left * off, Eigen::EigenvaluesOnly);
  return std::max(0.0, solver.eigenvalues().maxCoeff());
}

}  // namespace tributary::planner
