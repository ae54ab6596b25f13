// Curves of a cell as series with colours and labels.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/document/metrics.h"
#include "reports/document/report.h"
#include "reports/format/figure.h"

namespace trainyard::reports {

// Colour role of each arm in a report, by value of the compared axis. (Colour is the arm, dash is the
// replica.) The baseline is "single", known strategies have fixed roles, and others get the next free role.
using Palette = std::map<std::string, std::string>;
Palette make_palette(const std::vector<Comparison>& comparisons);

// The series of lines and bars; empty for other figures.
const std::vector<Series>& series_of(const Figure& figure);

// The distinct series of a page, for its legend: the arms, baseline first, then their ranks.
std::vector<Series> legend(const std::vector<Figure>& figures);

// Series of one metric for all arms of a cell: the baseline, the other arms, then the replicas of each arm.
std::vector<Series> series_of(const Cell& cell, const Metric& metric, const Palette& palette);
// Those of the whole arms alone, with one kind of points.
std::vector<Series> series_of_arms(const Cell& cell, const Metric& metric, const Palette& palette,
                                   std::vector<Point> Curve::*points);

// Key of the series of a whole arm.
std::string key_of(const Arm& arm);

// Label of a whole arm: "single". If it has ranks, also how their values become one: "ddp average", "ddp
// slowest rank", "ddp all devices".
std::string label_of(const Arm& arm, const Metric& metric);

}  // namespace trainyard::reports
