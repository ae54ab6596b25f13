#include "experiments/file/template.h"

#include "experiments/config/sheet.h"

namespace trainyard::experiments {

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
