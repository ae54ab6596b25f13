#include "tests/cluster/cluster_sweep.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "tests/support/result_rows.h"

namespace trainyard::cluster {

namespace {

std::string waiting_program(const std::string& waits) {
  return R"sh(#!/bin/sh
dir=$(dirname "$TRAINYARD_RUN"); key=$(basename "$(dirname "$dir")"); attempt=${dir##*-}
echo "$key $attempt $RANK" >> starts
)sh" + waits +
         R"sh(
printf '{"v":1,"run":"%s","attempt":%s,"rank":%s,"seq":0,"type":"epoch","time":"2026-11-20T09:30:12.345Z","elapsed_seconds":0,"epoch":1}\n' \
  "$key" "$attempt" "$RANK" >> "$dir/rank-$RANK.records.jsonl"
printf '{"v":1,"run":"%s","attempt":%s,"rank":%s,"seq":1,"type":"end","time":"2026-11-20T09:30:12.345Z","elapsed_seconds":0,"status":"finished"}\n' \
  "$key" "$attempt" "$RANK" >> "$dir/rank-$RANK.records.jsonl"
)sh";
}

}  // namespace

std::string sleeping_program(double seconds) {
  return waiting_program("sleep " + std::to_string(seconds) + " || exit 1");
}

std::string held_program() {
  return waiting_program("until [ -e go ]; do sleep 0.05; done");
}

std::string sleeping_file(int seeds, int replicas, const std::string& machine) {
  return "name = \"sleepers\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"sleep\"]\nseed = { count = " +
         std::to_string(seeds) +
         " }\n[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\n[strategy.sleep]\n"
         "command = [\"/bin/sh\", \"sleep.sh\", \"$(touch hacked)\", \"; touch hacked #\"]\nreplicas = " +
         std::to_string(replicas) + "\n[machine]\n" + machine;
}

std::string mixed_file(const std::string& machine) {
  return R"(name = "mixed"
[matrix]
model = ["mlp"]
strategy = ["single", "ddp", "tf", "mine"]
seed = [3]
[defaults]
dataset = "synthetic-digits"
train_samples = 500
epochs = 2
learning_rate = 0.1
[strategy.ddp]
replicas = 2
[strategy.tf]
kind = "parameter-server"
servers = 1
[strategy.mine]
command = [")" TRAINYARD_PYTHON R"(", "train.py", "--lr", "{learning_rate}", "--batch", "{batch}"]
files = ["train.py"]
replicas = 2
[machine]
)" + machine;
}

const std::vector<std::string>& rows_here() {
  static const std::vector<std::string> rows = [] {
    const e2e::Scratch scratch;
    scratch.write("train.py", e2e::documented_example());
    scratch.write("here.toml", mixed_file("exclusive = \"devices\"\n"));
    const auto here = scratch.at({"run", "here.toml", "--no-report"});
    if (here.code != 0) throw std::runtime_error(here.out + here.err);
    return tests::result_rows(scratch.path() / "yard");
  }();
  return rows;
}

std::vector<std::string> starts(const std::filesystem::path& folder) {
  std::vector<std::string> lines;
  std::ifstream stream(folder / "starts");
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace trainyard::cluster
