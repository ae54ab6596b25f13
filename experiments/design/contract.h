// The fair-comparison contract: terms that must be equal in two runs, except for what the compared axis
// varies. Otherwise a difference between the results may have another cause than the axis.
// - Before launch, `check`, `plan` and `run` compare the resolved runs.
// - After it, reports compare what is in the database: also initial weights, versions, samples and devices.
// - A foreign arm states its terms in its `start` record.
// - The numbers of devices, replicas, stages and micro-batches are not terms, because a strategy varies them.
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

// The stated terms of one run, by name. A missing term is not stated.
using StatedTerms = std::map<std::string, std::string>;

// A row of the contract: from a key (`term` in experiments/run/keys.cpp), or known only from records.
// Hyper-parameters of the model are terms too, under their own names.
struct ContractTerm {
  std::string name;  // "global_batch"; also the name of the member in a foreign `start` record
  std::vector<std::string> declared_by;  // names that allow a difference, in `differs` or as the axis
  std::string title;                     // "global batch"
  bool only_times = false;               // a difference affects times, but not accuracies and losses
};
std::span<const ContractTerm> contract_terms();

// The terms that the resolved values of a run (`values_by_name`) state.
StatedTerms stated_by(const std::map<std::string, Value>& values);

// The terms that a foreign `start` record states: its members with the name of a term. Initial weights are an
// object of layer paths and hashes.
StatedTerms stated_by_start(const nlohmann::json& start);

// The text of the term `initial_weights`: one line per layer, in the order of the chain.
std::string weights_text(const std::map<std::string, std::string>& hash_by_path);

// The text of the term `batches` (docs/record-protocol.md): one line per epoch and form of its hash.
std::string batches_text(const std::map<std::int64_t, std::string>& hash_by_epoch);

// Titles of the terms that a foreign run should state but does not.
std::vector<std::string> not_stated(const StatedTerms& terms);

struct TermDifference {
  std::string title;
  std::string baseline;
  std::string arm;
  bool declared = false;  // by the axis or by `differs`: printed with the verdict, which stays valid
  bool by_axis = false;   // the axis varies it
  bool only_times = false;
  std::string declare_as;  // name for `differs` that declares it
};
std::string to_text(const TermDifference& difference);  // "global batch 256 against 128"

// Titles of the terms of several parts that both state, but without a common layer, epoch or form of a hash. Terms that
// may differ are left out.
std::vector<std::string> without_common_part(const StatedTerms& baseline, const StatedTerms& arm,
                                             const Compare& compare);

// Whether both state the data order of the first epoch in a common form, and agree.
bool have_same_first_order(const StatedTerms& one, const StatedTerms& other);

// Terms that both state with different values.
std::vector<TermDifference> differing_terms(const StatedTerms& baseline, const StatedTerms& arm,
                                            const Compare& compare);

// The arms take statistics of batch normalisation from other parts of a step.
inline constexpr const char* split_batch_statistics =
    "batch normalisation takes its statistics from each replica's and micro-batch's own part of a step";

// Whether the values are those of a model of trainyard with batch normalisation.
bool normalises_batches(const std::map<std::string, Value>& values);

// A difference that the mesh itself causes, or empty. It is printed with the verdict, which stays valid.
std::string declared_mesh_difference(const std::map<std::string, Value>& baseline,
                                     const std::map<std::string, Value>& arm);

// Names that `differs` may have in addition to keys and axes.
std::vector<std::string> contract_names();

}  // namespace trainyard::experiments
