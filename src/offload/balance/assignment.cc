#include "offload/balance/assignment.hh"

#include <algorithm>

namespace headrace::balance {

namespace {

/// The simplex method without columns for the slack: in a pivot, a row and a column change places. Limits are not
/// negative, so the origin is where it begins.
class Simplex {
 public:
  Simplex(size_t rows, size_t columns)
      : columns_(columns), width_(columns + 1), table_((rows + 1) * width_, 0.0), row_of_(rows), column_of_(columns) {
    for (size_t j = 0; j < columns; ++j) column_of_[j] = j;
    for (size_t i = 0; i < rows; ++i) row_of_[i] = columns + i;
  }
  double& at(size_t row, size_t column) { return table_[row * width_ + column]; }
  double& limit(size_t row) { return at(row, columns_); }
  /// What is to be as large as possible: the sum of variables times these.
  void aim(size_t column, double gain) { at(row_of_.size(), column) = -gain; }

  /// The values of all variables.
  std::vector<double> solve() {
    const size_t rows = row_of_.size();
    // The steepest column, until there was no progress for long; then the first one, which cannot go in circles.
    for (size_t round = 0; round < 3 * (rows + columns_); ++round) {
      const bool steepest = round < 2 * (rows + columns_);
      size_t column = columns_;
      for (size_t j = 0; j < columns_; ++j) {
        if (at(rows, j) >= -1e-11) continue;
        const bool better =
            column == columns_ || (steepest ? at(rows, j) < at(rows, column) : column_of_[j] < column_of_[column]);
        if (better) column = j;
      }
      if (column == columns_) break;
      size_t row = rows;
      for (size_t i = 0; i < rows; ++i) {
        if (at(i, column) <= 1e-11) continue;
        if (row == rows || limit(i) * at(row, column) < limit(row) * at(i, column)) row = i;
      }
      if (row == rows) break;  // no limit; the caller has seen to it that there is one
      pivot(row, column);
    }
    std::vector<double> values(columns_, 0.0);
    for (size_t i = 0; i < rows; ++i)
      if (row_of_[i] < columns_) values[row_of_[i]] = std::max(limit(i), 0.0);
    return values;
  }

 private:
  void pivot(size_t row, size_t column) {
    const double by = 1 / at(row, column);
    // Few are not zero.
    used_.clear();
    for (size_t j = 0; j < width_; ++j) {
      at(row, j) *= by;
      if (at(row, j) != 0 && j != column) used_.push_back(j);
    }
    at(row, column) = by;
    const bool few = used_.size() * 6 < width_;
    for (size_t i = 0; i <= row_of_.size(); ++i) {
      const double times = at(i, column);
      if (i == row || times == 0) continue;
      double* to = &at(i, 0);
      const double* from = &at(row, 0);
      if (few)
        for (const size_t j : used_) to[j] -= times * from[j];
      else
        for (size_t j = 0; j < width_; ++j) to[j] -= times * from[j];
      to[column] = -times * by;
    }
    std::swap(row_of_[row], column_of_[column]);
  }

  size_t columns_, width_;
  std::vector<double> table_;
  std::vector<size_t> row_of_, column_of_, used_;
};

}  // namespace

Assignment assign(const std::vector<WorkerGroup>& groups, const std::vector<std::vector<double>>& device_s) {
  const size_t chains = device_s.size(), devices = chains > 0 ? device_s[0].size() : 0;
  // The scale: what all do without devices. Rates are parts of it, cycles parts of a group's.
  double slowest = 0;
  for (const WorkerGroup& g : groups) {
    double cost = g.outside;
    for (const WorkerGroup::Chain& c : g.chains) cost += c.part * c.cpu;
    if (g.cycles > 0 && cost > 0) slowest = slowest > 0 ? std::min(slowest, g.cycles / cost) : g.cycles / cost;
  }
  Assignment result;
  result.shares.assign(groups.size(), std::vector<std::vector<double>>(chains, std::vector<double>(devices, 0.0)));
  if (!(slowest > 0)) return result;

  struct Pair {
    size_t group, chain, device;
  };
  std::vector<Pair> pairs;
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t k = 0; k < chains; ++k)
      for (size_t d = 0; d < devices; ++d)
        if (groups[g].chains[k].part > 0 && groups[g].chains[k].device[d] < groups[g].chains[k].cpu)
          pairs.push_back({g, k, d});
  // Rows: of each group its cycles, its arrivals, and the packets of each chain; the time of each device. Columns: the
  // rate of groups without limit, the rates of the others, and what each pair does.
  const size_t of_group = 2 + chains, device_row = groups.size() * of_group, first_pair = 1 + groups.size();
  Simplex simplex(device_row + devices, first_pair + pairs.size());
  for (size_t d = 0; d < devices; ++d) simplex.limit(device_row + d) = 1;
  for (size_t g = 0; g < groups.size(); ++g) {
    const WorkerGroup& group = groups[g];
    const size_t column = group.arrivals > 0 ? 1 + g : 0;
    const double weight = group.arrivals > 0 ? 1 : group.weight;
    double cost = group.outside;
    for (size_t k = 0; k < chains; ++k) {
      cost += group.chains[k].part * group.chains[k].cpu;
      simplex.at(g * of_group + 2 + k, column) = -weight * group.chains[k].part;
    }
    simplex.at(g * of_group, column) = weight * cost * slowest / group.cycles;
    simplex.limit(g * of_group) = 1;
    simplex.at(g * of_group + 1, column) = 1;
    simplex.limit(g * of_group + 1) = group.arrivals > 0 ? group.arrivals / slowest : 1e6;
    simplex.aim(column, group.arrivals > 0 ? 1.1 : 1);
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [g, k, d] = pairs[i];
    const double saved = (groups[g].chains[k].cpu - groups[g].chains[k].device[d]) * slowest / groups[g].cycles;
    simplex.at(g * of_group, first_pair + i) = -saved;
    simplex.at(g * of_group + 2 + k, first_pair + i) = 1;
    simplex.at(device_row + d, first_pair + i) = device_s[k][d] * slowest;
    // Where cycles bind, what is saved and the rate grow together. Else this decides.
    simplex.aim(first_pair + i, 1e-3 * saved);
  }
  const std::vector<double> values = simplex.solve();
  const auto rate_of = [&](size_t g) { return groups[g].arrivals > 0 ? values[1 + g] : values[0] * groups[g].weight; };
  for (size_t g = 0; g < groups.size(); ++g) {
    result.rates.push_back(rate_of(g) * slowest);
    result.rate += result.rates.back();
  }
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [g, k, d] = pairs[i];
    const double packets = rate_of(g) * groups[g].chains[k].part;
    result.shares[g][k][d] = packets > 0 ? std::clamp(values[first_pair + i] / packets, 0.0, 1.0) : 0;
  }
  return result;
}

}  // namespace headrace::balance
