#include "experiments/file/file.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "experiments/config/config.h"
#include "experiments/config/diagnostics.h"
#include "experiments/config/key_lookup.h"
#include "experiments/config/toml_tree.h"
#include "experiments/file/read_reference_results.h"
#include "experiments/matrix/expand.h"
#include "experiments/matrix/selection.h"

namespace trainyard::experiments {

namespace {

Loaded failed(const Location& at, const std::string& message) {
  return {std::nullopt, {{at, message, false}}};
}

std::string too_large() {
  return "is larger than " + std::to_string(max_file_bytes) + " bytes, the limit";
}

// At most one byte more than is allowed is read.
std::string read_limited(const std::filesystem::path& file) {
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  std::string bytes(max_file_bytes + 1, '\0');
  if (in) in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in.is_open() || in.bad()) throw std::system_error(errno, std::generic_category());
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  return bytes;
}

void report_no_runs(const ExperimentConfig& sheet, const std::string& file, Diagnostics& problems) {
  const Location at = sheet.matrix.given ? sheet.matrix.at : Location{file, 1, 1};
  const std::string advice = "; [matrix] lists alternatives, as in model = [\"mlp\"]";
  problems.error(
      at, "the experiment has no runs" + (sheet.exclude.empty() ? advice : "; [[exclude]] removes all"));
}

// What is expected of models that have runs.
std::vector<Expectation> expectations(const ExperimentConfig& sheet, Diagnostics& problems) {
  std::vector<Expectation> found;
  const std::vector<std::string> models = used_models(sheet);
  for (const ExpectedLine& line : sheet.expect) {
    const bool used = std::find(models.begin(), models.end(), line.expectation.model) != models.end();
    if (used) found.push_back(line.expectation);
    if (!used && !sheet.matrix.broken && !sheet.overrides.contains("model"))
      problems.warning(
          line.at, "nothing is held against this: no run has the model " + in_quotes(line.expectation.model));
  }
  return found;
}

Experiment experiment_of(ExperimentConfig sheet, const std::vector<ExpandedRun>& runs) {
  Experiment experiment;
  experiment.name = std::move(sheet.name);
  experiment.data_seed = sheet.data_seed;
  experiment.data = std::move(sheet.data);
  experiment.machine = sheet.machine;
  for (const ExpandedRun& each : runs) {
    experiment.runs.push_back(each.run);
    experiment.strategy_locations.push_back(each.strategy_at);
    experiment.thread_locations.push_back(each.threads_at);
  }
  return experiment;
}

// What a tree stands for, with everything that is wrong with it reported.
Experiment experiment_of(const TomlNode& root, const std::string& file, const Selection& selection,
                         Diagnostics& problems) {
  ExperimentConfig sheet = read_config(root, file, problems);
  apply_set(selection.set, sheet, problems);
  check_hyperparameters(sheet.matrix, sheet.declared, problems);
  std::vector<ExpandedRun> runs = expand(sheet, problems);
  const std::vector<std::string> varied = varied_axes(sheet, runs);
  std::vector<Compare> compare = comparisons(sheet, runs, varied, problems);
  std::vector<Expectation> expect = expectations(sheet, problems);
  std::optional<Published> published;
  if (!sheet.published.empty())
    published = read_published(sheet.published, sheet.published_at, std::filesystem::path(file).parent_path(),
                               {model_names(sheet.declared), strategy_labels(sheet)}, problems);
  if (runs.empty() && problems.errors() == 0) report_no_runs(sheet, file, problems);
  apply_where(selection.where, runs, problems);
  apply_exclude_where(selection.exclude_where, runs, problems);
  Experiment experiment = experiment_of(std::move(sheet), runs);
  experiment.varied = varied;
  experiment.compare = std::move(compare);
  experiment.expect = std::move(expect);
  experiment.published = std::move(published);
  return experiment;
}

}  // namespace

Loaded load(const std::filesystem::path& file, const Selection& selection) {
  try {
    return load_text(read_limited(file), file, selection);
  } catch (const std::system_error& error) {
    return failed({.file = file.string()}, "cannot be read: " + error.code().message());
  }
}

Loaded load_text(const std::string& toml, const std::filesystem::path& name, const Selection& selection) {
  if (toml.size() > max_file_bytes) return failed({.file = name.string()}, too_large());
  try {
    Diagnostics problems;
    const TomlNode root = parse_toml(toml, name.string());
    Experiment experiment = experiment_of(root, name.string(), selection, problems);
    experiment.file = name;
    experiment.toml = toml;
    Loaded loaded{std::nullopt, problems.in_file_order()};
    if (problems.errors() == 0) loaded.experiment = std::move(experiment);
    return loaded;
  } catch (const NotToml& error) {
    return failed(error.at, error.message);
  }
}

namespace {

constexpr const char* before_name =
    R"(# An experiment of trainyard. Every run is trained from scratch; each rank is a process of its own.
#   trainyard check FILE    is it right?
#   trainyard plan FILE     which runs, on which devices, and what is done already
#   trainyard run FILE      trains what is left, writes the database and the report
# `trainyard list models|strategies|datasets|keys` says what can stand here.

)";

constexpr const char* after_name = R"(
data_seed = 0                       # split and generated data; the same for all runs

[matrix]                            # lists of alternatives: every combination is a run
model    = ["mlp"]
strategy = ["single", "ddp"]        # also "mp", "pipeline", "mp-ddp", "independent", and names of your own
seed     = { count = 3 }            # 0, 1, 2; five or more find «no change» far more often
# learning_rate = [0.1, 0.05]       # any key can be an axis
# zip = [{ learning_rate = [0.1, 0.05], batch = [256, 128] }]   # these go together

[defaults]                          # for all runs; a table of a model or strategy is stronger, the matrix strongest
dataset       = "synthetic-digits"  # drawn from data_seed: nothing to download
train_samples = 2000                # a cap for quick experiments; leave it out to train on everything
epochs        = 5
batch         = 128                 # samples a step over all replicas, so every strategy takes the same steps;
                                    # { size = 128, per = "replica" }: N replicas take N times as many
optimizer     = "sgd"
learning_rate = 0.05
momentum      = 0.9

[model.mlp]
hidden = [250, 100]                 # outputs of the hidden layers

[strategy.ddp]
replicas = 2                        # ranks, each with its part of the batch

# [strategy.gpipe]                  # add "gpipe" to the matrix: layers on two ranks, eight micro-batches
# kind          = "pipeline"
# stages        = 2
# schedule      = "gpipe"
# micro_batches = 8

# [strategy.mine]                   # a program of yours: docs/record-protocol.md
# command = ["python3", "train.py", "--width", "{width}"]
# files   = ["train.py", "pkg"]     # files, folders, patterns: a changed program is a new run
# env     = { NAME = "value" }      # variables for its ranks
# [model.char-gpt]                  # such a program can train a model and a data set of yours
# title      = "Character GPT"
# dataset    = "my-captions"
# parameters = { width = 64 }
# [dataset.my-captions]
# title = "My captions"

# [data]                            # where real data lies, if `dataset` is not generated; --data DIR overrides it
# mnist = "data/mnist"              # or "synthetic": its generated stand-in

# [[exclude]]                       # leaves out what matches; [[include]] adds a run
# strategy = "ddp"
# seed = 2

[compare]                           # the verdicts of the report
axis     = "strategy"
baseline = "single"
pair     = ["seed"]                 # runs of equal seed are compared with each other
margins  = { time = 1.05, loss = { ratio = 1.02, absolute = 0.005 }, accuracy_points = 0.5 }

# [expect.mlp]                      # checked at the end of `run`, for every run of the model
# test_accuracy = 0.9

[machine]
devices   = "auto"                  # min(2, cores); a device is an equal share of the cores
exclusive = "host"                  # one timed run at a time; "devices" packs runs and marks their times
# launcher = "slurm"                # jobs of a cluster in place of this host; `trainyard list keys` has its keys
)";

}  // namespace

std::string template_file(const std::string& name) {
  return before_name + ("name = \"" + experiment_name(name) + "\"") + after_name;
}

}  // namespace trainyard::experiments
