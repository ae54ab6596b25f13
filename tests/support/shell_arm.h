// Arms that are shell scripts. They train nothing and write the records of docs/record-protocol.md. A run
// takes some hundredths of a second.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include "tests/support/program.h"

namespace trainyard::e2e {

// A script that defines protocol helpers before `body`. Its argument is the seed.
// - variables: `key`, `attempt`, `seed`
// - functions: `record TYPE MEMBERS`, `epoch NUMBER`, `finish`, `until_there FILE`
inline std::string shell_arm(const std::string& body) {
  return R"sh(dir=$(dirname "$TRAINYARD_RUN"); key=$(basename "$(dirname "$dir")"); attempt=${dir##*-}; seed=$1; seq=0
record() {
  printf '{"v":1,"run":"%s","attempt":%s,"rank":%s,"seq":%s,"type":"%s","time":"2026-11-20T09:30:12.345Z","elapsed_seconds":0,%s}\n' \
    "$key" "$attempt" "$RANK" "$seq" "$1" "$2" >> "$dir/rank-$RANK.records.jsonl"
  seq=$((seq + 1))
}
epoch() {
  record epoch "\"epoch\":$1,\"train_seconds\":0.001,\"validation_seconds\":0,\"metrics\":[{\"phase\":\"train\",\"name\":\"loss\",\"sum\":5,\"weight\":10}]"
}
finish() { record end '"status":"finished"'; }
until_there() { while [ ! -e "$1" ]; do sleep 0.02; done; }
)sh" + body +
         "\n";
}

// An experiment with these seeds and one arm, the script arm.sh.
inline std::string shell_arm_file(const std::string& seeds, int replicas = 1, const std::string& more = "") {
  return "name = \"arms\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"mine\"]\nseed = " + seeds +
         "\n[defaults]\ndataset = \"synthetic-digits\"\nepochs = 1\n[strategy.mine]\n"
         "command = [\"/bin/sh\", \"arm.sh\", \"{seed}\"]\nreplicas = " +
         std::to_string(replicas) + "\n" + more;
}

// A scratch folder with that script and that experiment, in arm.sh and arms.toml.
struct ArmScratch : Scratch {
  explicit ArmScratch(const std::string& body, const std::string& seeds = "[1]", int replicas = 1,
                      const std::string& more = "") {
    write("arm.sh", shell_arm(body));
    write("arms.toml", shell_arm_file(seeds, replicas, more));
  }
};

// The same after the experiment has finished.
struct FinishedArms : ArmScratch {
  explicit FinishedArms(const std::string& body, const std::string& seeds = "[1]", int replicas = 1)
      : ArmScratch(body, seeds, replicas) {
    const Output run = at({"run", "arms.toml", "--no-report"});
    REQUIRE_MESSAGE(run.code == 0, (run.out + run.err));
  }
};

}  // namespace trainyard::e2e
