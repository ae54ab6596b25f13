// The fair-comparison contract: what two runs must have in common, beside what the axis varies, so that a
// difference between their results says something about that axis. Held against resolved runs before launch
// (`check`, `plan`, `run`) and against the database after it, where more is known: initial weights, versions,
// samples seen, devices. A foreign arm states what it can in its `start` record.
//
// The number of devices, replicas, stages and micro-batches is no term: it is what a strategy varies.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/parameter.h"
#include "experiments/design/experiment.h"
#include "experiments/run/run.h"

namespace trainyard::experiments {

// What one run states of each term, by the term's name; a term that is missing is not stated.
using StatedTerms = std::map<std::string, std::string>;

// A row of the contract: what a key states (its row in experiments/run/keys.cpp says so), or what only
// records know. Hyper-parameters of the model are terms too, by their own names.
struct ContractTerm {
  std::string name;                      // "global_batch": also the member in a foreign `start` record
  std::vector<std::string> declared_by;  // names in `differs`, or the axis, that allow a difference
  std::string title;                     // "global batch"
  bool only_times = false;               // a difference spoils times, not accuracies and losses
};
std::span<const ContractTerm> contract_terms();

// What the resolved values of a run (`values_by_name`) state.
StatedTerms stated_by(const std::map<std::string, Value>& values);

// What a foreign `start` record states: the members that are named as terms. Initial weights are an object of
// layer path and hash.
StatedTerms stated_by_start(const nlohmann::json& start);

// Initial weights as the text of their term, layer by layer in the order of a chain.
std::string weights_text(const std::map<std::string, std::string>& hash_by_path);

// Of each epoch the hash of the samples it took, in the order of its global batches, as the text of the term
// `batches` (docs/record-protocol.md).
std::string batches_text(const std::map<std::int64_t, std::string>& hash_by_epoch);

// Terms of the contract that a run of this kind should state and does not, by title.
std::vector<std::string> not_stated(const StatedTerms& terms);

struct TermDifference {
  std::string title;
  std::string baseline;
  std::string arm;
  bool declared = false;  // by the axis or by `differs`: said with the verdict, not held against it
  bool by_axis = false;   // it is what the axis varies
  bool only_times = false;
  std::string declare_as;  // the name for `differs` that would declare it
};
std::string to_text(const TermDifference& difference);  // "global batch 256 against 128"

// Terms that both state, and not alike.
std::vector<TermDifference> differing_terms(const StatedTerms& baseline, const StatedTerms& arm,
                                            const Compare& compare);

// What a mesh changes by itself and no file can declare away: said with the verdict, never held against it.
// Empty where there is nothing to say.
std::string declared_mesh_difference(const std::map<std::string, Value>& baseline,
                                     const std::map<std::string, Value>& arm);

// Names that `differs` may have beside those of keys and axes.
std::vector<std::string> contract_names();

}  // namespace trainyard::experiments
