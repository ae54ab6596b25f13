// One training, completely resolved: no default is applied after this. `experiments/file` makes it from TOML,
// the orchestrator writes it into `run.json`, the runner trains it, the database keeps its JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/catalogue.h"
#include "models/datasets/datasets.h"

namespace trainyard::experiments {

// A file that a foreign program reads, beside the experiment's file.
struct ForeignFile {
  std::string name;
  std::string sha256;  // empty before `resolve_data`
  bool found = false;  // by a pattern or in a folder: its name is part of the key too
  bool operator==(const ForeignFile&) const = default;
};

// Mesh and schedule. `name` is the label in the file, `kind` what it does.
struct Strategy {
  std::string name = "single";
  std::string kind = "single";  // a row of strategies.h; "foreign": a program of the user's
  std::int64_t replicas = 1;
  std::int64_t stages = 1;
  std::string schedule = "";       // "gpipe", "1f1b"; empty where a step is one micro-batch
  std::int64_t micro_batches = 1;  // of each replica's part of a step
  // The first layer of stages 1 … S − 1, ascending. Empty with one stage, and before `resolve_data` where the
  // file leaves the split to the counted cost.
  std::vector<std::int64_t> boundaries = {};
  std::string split = "auto";  // where the boundaries are from: "auto" (counted cost), "given" (the file)
  std::vector<std::string> command = {};  // of a foreign arm: argv, with the run's values put in
  std::vector<ForeignFile> files = {};    // that it declares
  std::map<std::string, std::string> environment = {};  // variables of its own, with the run's values put in
  std::string folder = {};                              // where it starts: the experiment file's
  std::int64_t world_size() const { return replicas * stages; }
  bool independent() const;  // each rank trains by itself
  bool foreign() const { return !command.empty(); }
  // Replicas that share each batch.
  std::int64_t sharing_replicas() const { return independent() ? 1 : replicas; }
  bool operator==(const Strategy&) const = default;
};

struct Optimizer {
  std::string kind = "sgd";  // "sgd", "adam", "adamw"
  double learning_rate = 0.05;
  double momentum = 0.9;  // sgd only; 0 for adam and adamw
  double weight_decay = 0;
  std::string schedule = "constant";  // "constant", "step", "cosine"
  std::int64_t schedule_epochs = 0;   // of "step": the rate is multiplied after every so many epochs
  double schedule_factor = 0.1;       // … by this
  double clip_norm = 0;               // largest L2 norm of all gradients together; 0 = not clipped
  bool operator==(const Optimizer&) const = default;
};

// What the file says of a model and a data set of the user's own, so that a report needs no other file. Empty
// for those of trainyard. Not part of the key, which has their names.
struct Declaration {
  std::string model_title;
  std::string task;  // of the model; empty: the file does not say
  std::string dataset_title;
  bool operator==(const Declaration&) const = default;
};

struct Run {
  std::string model;
  models::Hyperparameters hyperparameters;
  models::DataChoice data;
  Strategy strategy;
  Optimizer optimizer;
  std::int64_t epochs = 10;
  std::int64_t batch_size = 128;               // as the file says it …
  std::string batch_per = "global";            // … of all replicas together, or of each ("replica")
  std::int64_t global_batch = 128;             // samples a step over all replicas: what the two come to
  std::int64_t gradient_accumulation = 1;      // turns in which a rank computes its part of a step
  std::string sampler = "exact";               // "exact", "distributed" (padded to equal parts, as PyTorch's)
  std::string learning_rate_scaling = "none";  // "none", "linear", "sqrt": with global_batch / batch_size
  std::string augmentation = "none";           // "none", "flip", "crop", "flip-crop"
  std::string batch_norm = "local";            // statistics of each replica and micro-batch, or "sync"
  std::string precision = "float32";  // "float32", "bfloat16", "float16", "tf32": runner/device/precision.h
  std::string save;                   // weights to keep: "", "last", "best"; not part of the key
  std::string checkpoint;  // when it writes what it can go on from: "" never, "epoch"; not part of the key
  std::uint64_t seed = 0;
  std::optional<std::int64_t> threads;  // per rank; empty: as many as the rank has cores
  // The matrix's values for this run, by key, as text of `Value` types; what distinguishes the run in
  // its experiment. Not part of the key, except `threads`.
  std::map<std::string, Value> axes;
  Declaration declared;
  bool operator==(const Run&) const = default;
};

// The learning rate of the first step: scaled with the global batch, as `learning_rate_scaling` says (Goyal
// et al. 2017, section 2.1, for "linear"). A batch that is given for all replicas together scales nothing.
double effective_learning_rate(const Run& run);

nlohmann::json to_json(const Value& value);
Value value_from_json(const nlohmann::json& value);

// All of the run, `axes` and `data.folder` included; members in alphabetical order.
nlohmann::json to_json(const Run& run);
// Also JSON of before strategies had stages: members that were added later may be missing and mean what was
// done then. InternalError where another is missing, or any is of a wrong type.
Run run_from_json(const nlohmann::json& json);

// Canonical work: what the result depends on and nothing else, as one line of JSON with sorted members and
// shortest round-trip numbers, beginning with the key version. A field added later is written only when it
// differs from the value that reproduces the old behaviour.
std::string canonical_work(const Run& run);

// The first 12 hexadecimal digits of SHA-256(canonical work): the run's name everywhere.
std::string run_key(const Run& run);

// A batch as one value: 128 over all replicas, or "64 per replica".
Value batch_value(std::int64_t size, const std::string& per);

// Every resolved value by key name ("model", "strategy", "seed", "epochs", "batch", hyper-parameters, …):
// what `--where`, the `run_axis` view and comparisons look values up in.
std::map<std::string, Value> values_by_name(const Run& run);

// Whether runs have a value of that name whatever their model: all of `values_by_name` but hyper-parameters.
bool is_run_value(std::string_view name);

// Text as it is, everything else as in TOML: what `--where` and the baseline of a comparison are held
// against.
std::string plain_text(const Value& value);

// "mlp ddp seed 3", with every further axis as " name=value": one line for people.
std::string label(const Run& run);

}  // namespace trainyard::experiments
