#include "reports/content/palette.h"

#include <algorithm>
#include <array>
#include <set>

namespace trainyard::reports {

namespace {

constexpr std::array roles{"ddp", "mpddp", "extra1", "extra2", "extra3"};

std::string own_role(const std::string& value) {
  if (value == "ddp") return "ddp";
  if (value == "mp-ddp") return "mpddp";
  return "";
}

}  // namespace

Palette make_palette(const std::vector<Cell>& cells) {
  Palette palette;
  std::set<std::string> used;
  std::vector<std::string> others;
  for (const Cell& cell : cells) {
    palette[cell.baseline.value] = "single";
    for (const Arm& arm : cell.arms) {
      if (const std::string role = own_role(arm.value); !role.empty()) {
        palette[arm.value] = role;
        used.insert(role);
      } else if (std::ranges::find(others, arm.value) == others.end()) {
        others.push_back(arm.value);
      }
    }
  }
  std::size_t next = 0;
  for (const std::string& value : others) {
    for (std::size_t tried = 0; tried < roles.size() && used.count(roles[next % roles.size()]) != 0; ++tried)
      ++next;
    palette[value] = roles[next++ % roles.size()];
  }
  return palette;
}

std::vector<Series> legend(const std::vector<Figure>& figures) {
  std::vector<Series> result;
  std::set<std::string> seen;
  for (const Figure& figure : figures) {
    for (const Series& series : figure.series) {
      if (seen.insert(series.key).second)
        result.push_back(
            {series.key, series.label, series.short_label, series.colour, series.dash, {}, std::nullopt});
    }
  }
  return result;
}

}  // namespace trainyard::reports
