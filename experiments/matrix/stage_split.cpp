#include "experiments/matrix/stage_split.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "experiments/design/experiment.h"
#include "experiments/run/run_model.h"

namespace trainyard::experiments {

namespace {

// Row p, column n: a result for the first n items in p parts.
template <typename Number>
using Table = std::vector<std::vector<Number>>;

template <typename Number>
std::vector<Number> running_sums(const std::vector<Number>& costs) {
  std::vector<Number> sums(costs.size() + 1, Number{0});
  std::partial_sum(costs.begin(), costs.end(), sums.begin() + 1);
  return sums;
}

// The minimal cost of the most expensive of `parts` parts.
double least_maximum(const std::vector<double>& sums, std::size_t parts) {
  const std::size_t items = sums.size() - 1;
  std::vector<double> best = sums;  // for one part
  for (std::size_t part = 2; part <= parts; ++part) {
    std::vector<double> next(items + 1, std::numeric_limits<double>::infinity());
    for (std::size_t end = part; end <= items; ++end)
      for (std::size_t cut = part - 1; cut < end; ++cut)
        next[end] = std::min(next[end], std::max(best[cut], sums[end] - sums[cut]));
    best = std::move(next);
  }
  return best[items];
}

// Costs as integers, in units of 2⁻²⁰ of the total. Sums of their squares are exact on every machine.
std::vector<std::int64_t> whole_shares(const std::vector<double>& costs, double total) {
  std::vector<std::int64_t> shares;
  shares.reserve(costs.size());
  for (const double cost : costs) shares.push_back(total > 0 ? std::llround(cost / total * 0x1p20) : 0);
  return shares;
}

// Best cuts without a part above `limit`: the least sum of squares, and the start of the last part.
struct Cuts {
  Table<std::int64_t> squares;
  Table<std::size_t> starts;
};

Cuts cuts_within(double limit, const std::vector<double>& sums, const std::vector<std::int64_t>& shares,
                 std::size_t parts) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  const std::size_t items = sums.size() - 1;
  Cuts cuts{Table<std::int64_t>(parts + 1, std::vector<std::int64_t>(items + 1, none)),
            Table<std::size_t>(parts + 1, std::vector<std::size_t>(items + 1, 0))};
  cuts.squares[0][0] = 0;
  for (std::size_t part = 1; part <= parts; ++part)
    for (std::size_t end = part; end <= items; ++end)
      for (std::size_t start = part - 1; start < end; ++start) {
        if (cuts.squares[part - 1][start] == none || sums[end] - sums[start] > limit) continue;
        const std::int64_t share = shares[end] - shares[start];
        const std::int64_t squares = cuts.squares[part - 1][start] + share * share;
        if (squares > cuts.squares[part][end]) continue;
        cuts.squares[part][end] = squares;  // the last of equal starts is kept
        cuts.starts[part][end] = start;
      }
  return cuts;
}

// The nodes at which a stage may begin, the first one included. Beginnings of blocks if there are enough.
std::vector<std::size_t> beginnings(const std::vector<models::Node>& nodes, std::int64_t stages) {
  const auto all = [&](bool models::Node::*wanted) {
    std::vector<std::size_t> found{0};
    for (std::size_t i = 1; i < nodes.size(); ++i)
      if (nodes[i].may_begin_stage && nodes[i].*wanted) found.push_back(i);
    return found;
  };
  std::vector<std::size_t> blocks = all(&models::Node::begins_block);
  return static_cast<std::int64_t>(blocks.size()) >= stages ? blocks : all(&models::Node::may_begin_stage);
}

std::vector<std::int64_t> boundaries_between_blocks(const std::vector<models::Node>& nodes,
                                                    std::int64_t stages) {
  const std::vector<std::size_t> begins = beginnings(nodes, stages);
  std::vector<double> costs(begins.size(), 0);
  for (std::size_t i = 0, block = 0; i < nodes.size(); ++i) {
    if (block + 1 < begins.size() && i == begins[block + 1]) ++block;
    costs[block] += models::counted_cost(nodes[i]);
  }
  std::vector<std::int64_t> boundaries = balanced_boundaries(costs, stages);
  for (std::int64_t& boundary : boundaries)
    boundary = static_cast<std::int64_t>(begins.at(static_cast<std::size_t>(boundary)));
  return boundaries;
}

}  // namespace

std::vector<std::int64_t> balanced_boundaries(const std::vector<double>& costs, std::int64_t parts) {
  const auto count = static_cast<std::size_t>(parts);
  if (parts < 1 || count > costs.size())
    throw InternalError(fmt::format("{} layers cannot be cut into {} stages", costs.size(), parts));
  const std::vector<double> sums = running_sums(costs);
  const std::vector<std::int64_t> shares = running_sums(whole_shares(costs, sums.back()));
  const Cuts cuts = cuts_within(least_maximum(sums, count), sums, shares, count);
  std::vector<std::int64_t> boundaries;
  std::size_t end = costs.size();
  for (std::size_t part = count; part > 1; --part) {
    end = cuts.starts[part][end];
    boundaries.push_back(static_cast<std::int64_t>(end));
  }
  std::ranges::reverse(boundaries);
  return boundaries;
}

void resolve_stages(Experiment& experiment) {
  for (Run& run : experiment.runs) {
    const bool splits = run.strategy.stages > 1 && run.strategy.split == "auto";
    const bool has_parts = run.strategy.tensor > 1;
    if (!splits && !has_parts && !run.exported) continue;
    const models::Graph graph = graph_of(run, run.data.input);  // also checks that the data fits
    if (has_parts) run.strategy.tensor_split = layers_to_split(run, graph);
    if (splits) run.strategy.boundaries = boundaries_between_blocks(graph.nodes, run.strategy.stages);
  }
}

std::string stages_text(const Run& run) {
  if (run.strategy.boundaries.empty()) return "";
  std::vector<double> costs;  // of each layer in forward, for one typical sample
  for (const models::Node& node : graph_of(run, run.data.input).nodes)
    costs.push_back(models::counted_cost(node));
  const std::vector<double> sums = running_sums(costs);
  std::vector<std::int64_t> ends = run.strategy.boundaries;
  ends.push_back(static_cast<std::int64_t>(costs.size()));
  std::string layers, shares;
  std::int64_t start = 0;
  for (const std::int64_t end : ends) {
    const double cost = sums[static_cast<std::size_t>(end)] - sums[static_cast<std::size_t>(start)];
    const double percent = sums.back() > 0 ? std::round(1000 * cost / sums.back()) / 10 : 0;
    layers += fmt::format("{}{}", layers.empty() ? "" : " | ", start);
    if (end - start > 1) layers += fmt::format("-{}", end - 1);
    shares += (shares.empty() ? "" : " + ") + trainyard::to_text(percent);
    start = end;
  }
  return fmt::format("{} ({} % of the estimated cost)", layers, shares);
}

}  // namespace trainyard::experiments
