// Which runs form a cell, an arm and a pair. Planning, warnings, verdicts and predictions all ask here.
//
// A cell is one model and one combination of the values that the matrix varies beside the compared axis and
// the pairing. Its arms are the values of the compared axis. A pair is one run of each arm with equal values
// of the pairing. Seeds are the replicates: they never make a cell, even if the arms are not paired by them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/design/experiment.h"

namespace trainyard::experiments {

struct CellPlace {
  using Further = std::vector<std::pair<std::string, std::string>>;
  using Cell = std::pair<std::string, Further>;
  using Pair = std::pair<Cell, std::string>;
  std::string model;  // empty if models are compared
  Further further;    // the cell's other values, in the order of `varied`
  std::string pair;   // "3", or "seed=3 fold=1" of several; empty if nothing is paired
  std::string arm;    // value of the compared axis; empty if the run has none
  Cell cell() const { return {model, further}; }
  Pair cell_and_pair() const { return {cell(), pair}; }
};

// A run's value of that name as text; empty if it has none.
using ValueText = std::function<std::string(const std::string& name)>;
ValueText text_in(const std::map<std::string, Value>& values);  // which must outlive it

// `varied`: names that may make a cell.
CellPlace cell_place(const ValueText& value, const Compare& compare, const std::vector<std::string>& varied);
// Every value of the matrix makes a cell, also one that is the same in all runs.
CellPlace cell_place(const Run& run, const Compare& compare);

// "batch 64, epochs 3": the further values that the run has, for people.
std::string further_text(const CellPlace& place);

// An arm that no verdict judges: where strategies are compared, independent runs show the machine's limit.
bool is_limit(const Compare& compare, std::string_view strategy_kind, const std::string& arm);

}  // namespace trainyard::experiments
