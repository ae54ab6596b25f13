// Assigns runs to cells, arms and pairs. Planning, warnings and verdicts all use this.
//
// - Cell: one model with one combination of all varied values, except the compared axis and the pairing.
// - Arm: one value of the compared axis.
// - Pair: one run per arm, with equal values of the pairing.
// - Seeds are replicates. They never make a cell, even if the arms are not paired by seed.
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
  std::string model;  // empty if models are compared or paired
  Further further;    // the cell's other values, in the order of `varied`
  std::string pair;   // "3", or "seed=3 fold=1" for several names; empty if nothing is paired
  std::string arm;    // value of the compared axis; empty if the run has none
  Cell cell() const { return {model, further}; }
  Pair cell_and_pair() const { return {cell(), pair}; }
};

// Gives the value of a run with this name as text, or an empty text if it has none.
using ValueText = std::function<std::string(const std::string& name)>;
ValueText text_in(const std::map<std::string, Value>& values);  // `values` must outlive the result
std::string value_text(const std::map<std::string, Value>& values, const std::string& name);

// `varied`: names of the values that can make a cell.
CellPlace cell_place(const ValueText& value, const Compare& compare, const std::vector<std::string>& varied);
// As above; every value of the matrix can make a cell, even if it is the same in all runs.
CellPlace cell_place(const Run& run, const Compare& compare);

// The further values of the place for people: "batch 64, epochs 3".
std::string further_text(const CellPlace& place);

// Whether the arm gets no verdict: independent runs show the limit of the machine if strategies are compared.
bool is_limit(const Compare& compare, std::string_view strategy_kind, const std::string& arm);

}  // namespace trainyard::experiments
