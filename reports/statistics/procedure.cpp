#include "reports/statistics/procedure.h"

#include <algorithm>
#include <cmath>

namespace trainyard::reports {

namespace {

constexpr double first_part = 0.8;  // of α; the looks after the first share the rest

// Holm's correction at one look for the cells in `among`. Cells without p have p = 1.
class FamilyLook {
 public:
  FamilyLook(std::span<const std::vector<LookTest>> cells, const std::vector<std::size_t>& among,
             std::size_t look)
      : cells_(cells), look_(look) {
    for (const std::size_t cell : among) p_.push_back(tested(cell) ? test(cell).p->cell : 1);
    adjusted_ = holm(p_);
  }

  const LookTest& test(std::size_t cell) const { return cells_[cell][look_]; }
  bool tested(std::size_t cell) const { return look_ < cells_[cell].size() && test(cell).p.has_value(); }
  double adjusted(std::size_t member) const { return adjusted_[member]; }

  // Threshold of a member. Holm compares the smallest p with α / n, the next with α / (n − 1), and so on. It
  // stops at the first p that fails. All others fail at the same level.
  double holm_level(std::size_t cell, std::size_t member) const {
    const double level = test(cell).level;
    std::size_t before = 0;
    for (std::size_t other = 0; other < p_.size(); ++other)
      if (p_[other] < p_[member] && adjusted_[other] <= level) ++before;
    return level / static_cast<double>(p_.size() - before);
  }

  VerdictKind kind(std::size_t cell, std::size_t member) const {
    const double level = test(cell).level;
    return level > 0 && adjusted_[member] <= level ? smallest_hypothesis(*test(cell).p)
                                                   : VerdictKind::inconclusive;
  }

 private:
  std::span<const std::vector<LookTest>> cells_;
  std::size_t look_;
  std::vector<double> p_;
  std::vector<double> adjusted_;
};

bool decided(const Decision& decision) {
  return decision.kind != VerdictKind::inconclusive;
}

void take_look(std::span<const std::vector<LookTest>> cells, std::size_t look,
               std::vector<Decision>& decisions) {
  std::vector<std::size_t> undecided;
  std::vector<std::size_t> all;
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    all.push_back(cell);
    if (!decided(decisions[cell])) undecided.push_back(cell);
  }
  const FamilyLook whole(cells, all, look);
  const FamilyLook rest(cells, undecided, look);
  for (const std::size_t cell : all)
    if (whole.tested(cell)) decisions[cell].by_look[look] = whole.kind(cell, cell);
  for (std::size_t member = 0; member < undecided.size(); ++member) {
    const std::size_t cell = undecided[member];
    if (!rest.tested(cell)) continue;
    Decision& decision = decisions[cell];
    decision.look = look;
    decision.adjusted_p = rest.adjusted(member);
    decision.holm_level = rest.holm_level(cell, member);
    decision.kind = rest.kind(cell, member);
    decision.by_look[look] = decision.kind;
  }
}

}  // namespace

VerdictKind smallest_hypothesis(const ThreeSided& p) {
  if (p.equivalent <= 2 * std::min(p.better, p.worse)) return VerdictKind::no_change;
  return p.better <= p.worse ? VerdictKind::improves : VerdictKind::deteriorates;
}

double level_of_look(std::size_t look, double alpha, bool final_look) {
  if (look == 0) return final_look ? alpha : first_part * alpha;
  return final_look ? 0 : (1 - first_part) * alpha * std::pow(0.5, static_cast<double>(look));
}

std::vector<Decision> decide_family(std::span<const std::vector<LookTest>> cells) {
  std::size_t looks = 0;
  std::vector<Decision> decisions(cells.size());
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    decisions[cell].by_look.resize(cells[cell].size());
    looks = std::max(looks, cells[cell].size());
  }
  for (std::size_t look = 0; look < looks; ++look) take_look(cells, look, decisions);
  return decisions;
}

}  // namespace trainyard::reports
