// A run: one training, completely resolved. No default is applied after this. `experiments/file` makes it
// from TOML, the orchestrator writes it to `run.json`, the runner trains it, and `db` stores its JSON.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/catalogue.h"
#include "models/datasets/datasets.h"

namespace trainyard::experiments {

// A file that a foreign program reads. Its path is relative to the folder of the experiment file.
struct ForeignFile {
  std::string name;
  std::string sha256;                // empty before `resolve_data`
  bool found = false;                // by a pattern or a folder; then the run key includes its name
  std::filesystem::path place = {};  // where `resolve_data` read it; not in the JSON
  bool operator==(const ForeignFile&) const = default;
};

// Mesh and schedule. `name` is the label in the file, `kind` is the kind of strategy.
struct Strategy {
  std::string name = "single";
  std::string kind = "single";  // a row of strategies.h, or "foreign" for a program of the user
  std::int64_t replicas = 1;
  std::int64_t stages = 1;
  std::int64_t servers = 0;                    // ranks after the replicas that hold the parameters
  std::string mode = "sync";                   // of servers: "sync", "async"
  std::optional<std::int64_t> staleness = {};  // of "async": the bound
  std::string placement = "even";              // of the parameters on servers: "even", "whole"
  std::string sharding = "";                   // of zero: "optimizer", "gradients", "parameters"
  // Elastic: the fewest replicas of an attempt, less than `replicas`. Empty: each attempt has all.
  std::optional<std::int64_t> min_replicas = {};
  std::string schedule = "";       // "gpipe", "1f1b"; empty if a step has one micro-batch
  std::int64_t micro_batches = 1;  // per replica and step
  // The first layers of stages 1 … S − 1, ascending. Empty for one stage, and for split = "auto" before
  // `resolve_data`.
  std::vector<std::int64_t> boundaries = {};
  std::string split = "auto";  // source of the boundaries: "auto" (estimated cost), "given" (the file)
  std::int64_t tensor = 1;     // parts of split layers, one rank per part
  // The layers that are split, ascending. Empty as the boundaries.
  std::vector<std::int64_t> tensor_split = {};
  std::string tensor_source = "auto";     // of these layers: as `split`, or named dimensions ("width = 2")
  std::vector<std::string> command = {};  // argv of a foreign arm, placeholders replaced
  std::vector<ForeignFile> files = {};    // declared by a foreign arm
  std::map<std::string, std::string> environment = {};  // its own variables, placeholders replaced
  std::string folder = {};                              // working folder: that of the experiment file
  std::int64_t world_size() const { return replicas * stages * tensor + servers; }
  // Ranks that write a checkpoint: those of replica 0, the servers, and all replicas if each one has slices of the state.
  std::int64_t parts_of_checkpoint() const {
    return (sharding.empty() ? stages * tensor : replicas) + servers;
  }
  bool independent() const;  // ranks share neither batch nor gradients
  bool foreign() const { return !command.empty(); }
  bool is_async() const { return mode == "async"; }
  // Replicas that share each batch.
  std::int64_t sharing_replicas() const { return independent() || is_async() ? 1 : replicas; }
  bool operator==(const Strategy&) const = default;
};

// The dimensions and the parts of "width = 2, heads = 2".
struct NamedSplit {
  std::vector<std::string> dimensions;
  std::int64_t parts = 1;
};
NamedSplit named_split(const std::string& tensor_source);

// How a declared file differs from the one in the run key: "train.py has changed …". Empty if none does.
std::string changed_file(const Strategy& strategy);

struct Optimizer {
  std::string kind = "sgd";  // "sgd", "adam", "adamw"
  double learning_rate = 0.05;
  double momentum = 0.9;  // sgd only; 0 for adam and adamw
  double weight_decay = 0;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // of adam and adamw
  std::string schedule = "constant";                  // "constant", "step", "cosine", "cosine-by-step"
  std::int64_t schedule_epochs = 0;                   // "step": number of epochs between changes of the rate
  double schedule_factor = 0.1;                       // "step": factor of each change
  double learning_rate_min = 0;                       // cosine schedules: the rate at their end
  std::int64_t warmup_steps = 0;  // the rate of step s of them, from 1, is s / warmup_steps of its value
  double clip_norm = 0;           // largest L2 norm of all gradients together; 0: no clipping
  std::string weight_decay_of = "all";  // "all", "matrices": parameters with two dimensions or more
  bool operator==(const Optimizer&) const = default;
};

// Declaration of the user's own model and data set, so that reports need no other file. Empty for those of
// trainyard. Not part of the run key, which has the names, and the task of an exported model.
struct Declaration {
  std::string model_title;
  std::string task;                          // of the model; empty: not in the file
  std::vector<std::string> loss_parts = {};  // names, of an exported network
  std::string dataset_title;
  bool operator==(const Declaration&) const = default;
};

inline constexpr std::string_view safetensors_suffix = ".safetensors";

// A network that PyTorch exported. The run key has the hash, not the path.
struct ExportedModel {
  std::string path;    // absolute
  std::string sha256;  // of the file
  // First weights: those of the file, "seed": drawn for each run, or "program": `trainyard export` wrote them.
  std::string initial = "exported";
  std::string weights = {};  // of "program": SHA-256 of the file of the run's seed
  bool operator==(const ExportedModel&) const = default;
};

struct Run {
  std::string model;
  models::Hyperparameters hyperparameters;
  models::DataChoice data;
  Strategy strategy;
  Optimizer optimizer;
  std::int64_t epochs = 10;
  std::int64_t steps_per_epoch = 0;        // 0: an epoch is one pass over the training part
  std::int64_t batch_size = 128;           // as in the file
  std::string batch_per = "global";        // "global": over all replicas, "replica": per replica
  std::int64_t global_batch = 128;         // samples per step over all replicas, from the two above
  std::int64_t gradient_accumulation = 1;  // sequential parts of a rank's step
  std::string sampler = "exact";           // "exact", "distributed" (padded to equal parts, as in PyTorch)
  std::string learning_rate_scaling = "none";  // "none", "linear", "sqrt" of global_batch / batch_size
  std::string augmentation = "none";           // "none", "flip", "crop", "flip-crop"
  std::string batch_norm = "local";            // "local": per replica and micro-batch, or "sync"
  std::string precision = "float32";           // see runner/device/precision.h
  std::string save;                            // kept weights: "", "last", "best"; not part of the key
  std::string checkpoint;  // when to write checkpoints: "" never, "epoch"; not part of the key
  std::uint64_t seed = 0;
  std::string initial;  // file of first weights, absolute; empty: those of the seed or of an exported network
  std::string initial_sha256;           // of that file; the run key has it, not the path
  std::optional<std::int64_t> threads;  // per rank; empty: as many as the rank has cores
  // Values of the matrix for this run, by key. They distinguish the runs of an experiment. Not part of the
  // run key, except `threads`.
  std::map<std::string, Value> axes;
  Declaration declared;
  std::optional<ExportedModel> exported;
  bool operator==(const Run&) const = default;
};

// The learning rate of the first step, scaled with the global batch by `learning_rate_scaling` (Goyal et al.
// 2017, section 2.1, for "linear"). A batch over all replicas is not scaled.
double effective_learning_rate(const Run& run);

// The parts into which a batch is split: replicas, micro-batches and turns of gradient accumulation.
std::int64_t parts_of_batch(const Run& run);

nlohmann::json to_json(const Value& value);
Value value_from_json(const nlohmann::json& value);

// The whole run, including `axes` and `data.folder`. Members are in alphabetical order.
nlohmann::json to_json(const Run& run);
// InternalError if a member that each run has is missing, or a type is wrong.
Run run_from_json(const nlohmann::json& json);

// Canonical work: everything that the result depends on, and nothing else. One line of JSON that begins with
// the key version, with sorted members and shortest round-trip numbers. A member that was added later is
// written only if it differs from the value that reproduces the old behaviour.
std::string canonical_work(const Run& run);

// The run key: the first 12 hexadecimal digits of SHA-256(canonical work). It identifies the run everywhere.
std::string run_key(const Run& run);

// A batch as one value: 128 (over all replicas), or "64 per replica".
Value batch_value(std::int64_t size, const std::string& per);

// Every resolved value by key name ("model", "strategy", "seed", "epochs", "batch", hyper-parameters, …).
// `--where`, the `run_axis` view and comparisons use it.
std::map<std::string, Value> values_by_name(const Run& run);

// Whether runs of any model can have a value with this name: all of `values_by_name` except hyper-parameters.
bool is_run_value(std::string_view name);

// The value as text for `--where` and baselines: a text without quotes, everything else as in TOML.
std::string plain_text(const Value& value);

// The run in one line for people: "mlp ddp seed 3", with every further axis as " name=value".
std::string label(const Run& run);

}  // namespace trainyard::experiments
