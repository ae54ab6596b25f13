// Which colour role an arm has, everywhere in one report: colour is the arm, dash is the replica.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/format/figure.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

// Role by value of the compared axis: the baseline is "single", known strategies have roles of their own,
// others take the next free one in the order of the cells.
using Palette = std::map<std::string, std::string>;
Palette make_palette(const std::vector<Cell>& cells);

// The distinct series of a page, for its legend: baseline first, an arm's ranks before its average.
std::vector<Series> legend(const std::vector<Figure>& figures);

}  // namespace trainyard::reports
