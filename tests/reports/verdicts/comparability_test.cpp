// The fair-comparison contract, checked against results: NOT COMPARABLE, BROKEN, NOT VERIFIED, and training
// without progress.
#include "reports/verdicts/comparability.h"

#include <cmath>

#include <doctest/doctest.h>

#include "reports/analysis/analysis.h"
#include "reports/content/content.h"
#include "reports/results/sanity_checks.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

// One model with two arms. Each run has evidence of one rank per replica.
ReportData with_evidence() {
  ReportData data = invented({.models = {"mlp"}});
  for (const db::RunSummary& run : data.runs) {
    db::RunEvidence evidence;
    evidence.run_key = run.run_key;
    evidence.strategy_kind = run.strategy;
    evidence.data_fingerprint = "5e1f";
    evidence.host = "lab-node-03";
    evidence.processor = "Xeon";
    evidence.samples_an_epoch = 1600;
    evidence.validation_samples = evidence.test_samples = 200;
    evidence.first_loss = 2.3;
    for (std::int64_t rank = 0; rank < run.replicas; ++rank)
      evidence.ranks.push_back({rank,
                                rank,
                                "cpu:" + std::to_string(rank),
                                1,
                                "0.1.0",
                                "2.13.0",
                                {{"initial_weights", {{"0.weight", "seed " + std::to_string(run.seed)}}}}});
    evidence.batches = {{1, "first of seed " + std::to_string(run.seed)},
                        {2, "second of seed " + std::to_string(run.seed)}};
    data.evidence[run.run_key] = evidence;
  }
  return data;
}

db::RunEvidence& evidence_of(ReportData& data, const std::string& strategy, int seed) {
  return data.evidence.at(run_of(data, "mlp", strategy, seed).run_key);
}

TestedVerdict verdict_on(const ReportData& data, const std::string& metric) {
  const std::vector<CellVerdicts> cells = judge(data, data.plan.compare.front());
  const TestedVerdict* verdict = cells.front().find("ddp", metric);
  REQUIRE(verdict != nullptr);
  return *verdict;
}

TEST_CASE("runs that differ only in strategy are comparable and verified") {
  const ReportData data = with_evidence();
  const TestedVerdict verdict = verdict_on(data, "train-seconds");
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK(verdict.verified);
  CHECK(verdict.notes.empty());
}

TEST_CASE("another global batch makes the cell NOT COMPARABLE, unless the file declares it") {
  ReportData data = with_evidence();
  for (db::RunSummary& run : data.runs)
    run.axes["global_batch"] = std::int64_t{run.strategy == "ddp" ? 256 : 128};
  const TestedVerdict refused = verdict_on(data, "validation-accuracy");
  CHECK(refused.kind == VerdictKind::not_comparable);
  CHECK(refused.reason.text == "global batch (samples per step) 256 against 128");
  CHECK_FALSE(refused.tested);
  CHECK(refused.estimate.has_value());
  data.plan.compare.front().differs = {"batch"};
  const TestedVerdict declared = verdict_on(data, "train-seconds");
  CHECK(declared.kind == VerdictKind::improves);
  REQUIRE(declared.notes.size() == 1);
  CHECK(declared.notes[0] == "declared: global batch (samples per step) 256 against 128");
}

TEST_CASE("terms that only the records contain are compared too") {
  struct Case {
    const char* named;
    void (*change)(db::RunEvidence&);
  };
  const std::vector<Case> cases{
      {"initial weights 0.weight seed 99 against 0.weight seed 2",
       [](db::RunEvidence& evidence) {
         evidence.ranks.front().start["initial_weights"]["0.weight"] = "seed 99";
       }},
      {"versions trainyard 0.1.0, LibTorch 2.11.0",
       [](db::RunEvidence& evidence) {
         for (auto& rank : evidence.ranks) rank.libtorch_version = "2.11.0";
       }},
      {"samples seen in an epoch 1601 against 1600",
       [](db::RunEvidence& evidence) { evidence.samples_an_epoch = 1601; }},
      {"validation samples 100 against 200",
       [](db::RunEvidence& evidence) { evidence.validation_samples = 100; }},
      {"test samples 100 against 200", [](db::RunEvidence& evidence) { evidence.test_samples = 100; }},
      {"threads per rank 2 against 1",
       [](db::RunEvidence& evidence) {
         for (auto& rank : evidence.ranks) rank.threads = 2;
       }},
      {"data order epoch 2 97 against epoch 2 second of seed 2",
       [](db::RunEvidence& evidence) { evidence.batches[2] = "97"; }},
      {"data fingerprint 77 against 5e1f",
       [](db::RunEvidence& evidence) { evidence.data_fingerprint = "77"; }}};
  for (const Case& one : cases) {
    ReportData data = with_evidence();
    one.change(evidence_of(data, "ddp", 2));
    const TestedVerdict verdict = verdict_on(data, "validation-loss");
    CHECK(verdict.kind == VerdictKind::not_comparable);
    CHECK_MESSAGE(contains(verdict.reason.text, one.named), verdict.reason.text);
  }
}

TEST_CASE("a Tesla K80 is not compared with a Tesla P100") {
  ReportData data = with_evidence();
  for (auto& [key, evidence] : data.evidence) {
    const bool two = evidence.strategy_kind == "ddp";
    evidence.processor = two ? "Tesla K80" : "Tesla P100";
    for (auto& rank : evidence.ranks) rank.device = "cuda:0";
  }
  const TestedVerdict verdict = verdict_on(data, "validation-accuracy");
  CHECK(verdict.kind == VerdictKind::not_comparable);
  CHECK(verdict.reason.text == "kind of device cuda Tesla K80 against cuda Tesla P100");
}

TEST_CASE("on a cluster the GPUs are those that the ranks found, not those the launcher requested") {
  ReportData data = with_evidence();
  for (auto& [key, evidence] : data.evidence) {
    evidence.host = "slurm:gpu";
    evidence.processor = "GPUs as the launcher chose";
    for (auto& rank : evidence.ranks) {
      rank.device = "cuda:0";
      rank.start["gpu"] = {{"model", "NVIDIA H200"}};
    }
  }
  CHECK(verdict_on(data, "train-seconds").kind == VerdictKind::improves);
  evidence_of(data, "ddp", 2).ranks.back().start["gpu"]["model"] = "NVIDIA A100";
  CHECK(verdict_on(data, "train-seconds").reason.text ==
        "kind of device cuda NVIDIA A100, cuda NVIDIA H200 against cuda NVIDIA H200");
}

TEST_CASE("arms on different machines have no time verdict, but keep the other verdicts") {
  ReportData data = with_evidence();
  for (int seed = 0; seed < 5; ++seed) evidence_of(data, "ddp", seed).host = "lab-node-04";
  CHECK(verdict_on(data, "train-seconds").kind == VerdictKind::not_comparable);
  CHECK(contains(verdict_on(data, "train-seconds").reason.text,
                 "machine lab-node-04 Xeon against lab-node-03 Xeon"));
  CHECK(verdict_on(data, "validation-accuracy").kind != VerdictKind::not_comparable);
}

TEST_CASE("arms with another environment have no time verdict, and the other verdicts are marked") {
  ReportData data = with_evidence();
  const auto set = [&](int seed) {
    data.launched[run_of(data, "mlp", "ddp", seed).run_key].circumstances.environment = {
        {"OMP_PLACES", "cores"}};
  };
  set(3);
  CHECK(verdict_on(data, "train-seconds").n == 4);
  CHECK(contains(verdict_on(data, "train-seconds").dropped.at(0),
                 "seed 3: OMP_PLACES cores against not set: times are not compared"));
  CHECK(verdict_on(data, "train-seconds").caveats.empty());
  const auto marked = verdict_on(data, "validation-accuracy");
  CHECK(marked.n == 5);
  REQUIRE(marked.caveats.size() == 1);
  CHECK(marked.caveats[0].mark == "SETTINGS");
  CHECK(marked.caveats[0].text == "OMP_PLACES cores against not set (seed 3)");
  for (int seed = 0; seed < 5; ++seed) set(seed);
  CHECK(verdict_on(data, "train-seconds").kind == VerdictKind::not_comparable);
  CHECK(verdict_on(data, "train-seconds").reason.text == "OMP_PLACES cores against not set");
}

TEST_CASE("first losses more than ten times apart are marked, if both arms start from the same weights") {
  ReportData data = with_evidence();
  db::RunEvidence& evidence = evidence_of(data, "ddp", 2);
  evidence.first_loss = 0.24;
  CHECK(verdict_on(data, "validation-loss").caveats.empty());
  evidence.first_loss = 0.0046;
  const auto caveats = verdict_on(data, "validation-loss").caveats;
  REQUIRE(caveats.size() == 1);
  CHECK(caveats[0].mark == "DOUBTFUL");
  CHECK(contains(caveats[0].text, "0.0046 against 2.3 (seed 2)"));
  CHECK(verdict_on(data, "train-seconds").caveats.empty());
  evidence.ranks.front().start.erase("initial_weights");
  CHECK(verdict_on(data, "validation-loss").caveats.empty());
}

TEST_CASE("a foreign arm that leaves out terms keeps its verdicts and is NOT VERIFIED") {
  ReportData data = with_evidence();
  for (int seed = 0; seed < 5; ++seed) {
    db::RunEvidence& evidence = evidence_of(data, "ddp", seed);
    evidence.strategy_kind = "foreign";
    evidence.ranks.front().start = {{"epochs", 6}};
  }
  const TestedVerdict verdict = verdict_on(data, "train-seconds");
  CHECK(verdict.kind == VerdictKind::improves);
  CHECK_FALSE(verdict.verified);
  CHECK(verdict.notes.empty());  // reported once per arm, not with each metric
  const auto said = [&] {
    return not_verified(make_report(data).comparisons.front().cells.front().arms.front());
  };
  CHECK(said().starts_with("NOT VERIFIED: the records do not state data fingerprint; global batch"));
  CHECK_FALSE(contains(said(), "threads per rank"));  // stated in a column of `start`
  CHECK_FALSE(contains(said(), "kind of device"));
  CHECK_FALSE(contains(said(), "data order"));  // stated by its epochs
  for (int seed = 0; seed < 5; ++seed) evidence_of(data, "ddp", seed).batches.clear();
  CHECK(contains(said(), "data order"));
  for (int seed = 0; seed < 5; ++seed) {
    for (auto& rank : evidence_of(data, "ddp", seed).ranks) {
      rank.threads = 0;
      rank.device = "";
    }
  }
  CHECK(contains(said(), "threads per rank; kind of device"));
  for (int seed = 0; seed < 5; ++seed) evidence_of(data, "single", seed).strategy_kind = "single";
  for (db::RunSummary& run : data.runs) run.axes["epochs"] = std::int64_t{8};
  CHECK(verdict_on(data, "train-seconds").reason.text == "epochs 6 against 8");
}

TEST_CASE("threads, devices and layers of every rank of a foreign arm are compared") {
  struct Case {
    const char* named;
    void (*change)(db::RunEvidence::Rank&);
  };
  const std::vector<Case> cases{
      {"threads per rank 1, 4 against 1", [](db::RunEvidence::Rank& rank) { rank.threads = 4; }},
      {"kind of device cpu, cuda Xeon against cpu",
       [](db::RunEvidence::Rank& rank) { rank.device = "cuda:0"; }},
      {"initial weights 2.weight bb against 2.weight aa", [](db::RunEvidence::Rank& rank) {
         rank.start["initial_weights"] = {{"2.weight", "bb"}};
       }}};
  for (const Case& one : cases) {
    ReportData data = with_evidence();
    evidence_of(data, "single", 2).ranks.front().start["initial_weights"]["2.weight"] = "aa";
    db::RunEvidence& evidence = evidence_of(data, "ddp", 2);
    evidence.strategy_kind = "foreign";
    one.change(evidence.ranks.back());
    const TestedVerdict verdict = verdict_on(data, "validation-loss");
    CHECK(verdict.kind == VerdictKind::not_comparable);
    CHECK_MESSAGE(contains(verdict.reason.text, one.named), verdict.reason.text);
  }
}

nlohmann::json layer(const std::string& path, double difference, const std::string& hash) {
  return {{"path", path}, {"gradient_norm", 0.5}, {"difference", difference}, {"parameter_hash", hash}};
}

db::Probe probe(const ReportData& data, std::int64_t rank, double difference, const std::string& hash) {
  const std::string& key = data.runs.back().run_key;  // ddp
  return {key,
          rank,
          {{"step", 1},
           {"loss", 2.3},
           {"gradient_norm", 1.25},
           {"layers",
            {layer("0.weight", 1e-6, "aa"), layer("2.weight", difference, hash),
             layer("10.weight", difference, hash)}}}};
}

TEST_CASE("an arm with other gradients than the reference is BROKEN, with the first layer") {
  ReportData data = with_evidence();
  data.probes[data.runs.back().run_key] = {probe(data, 0, 1e-6, "bb"), probe(data, 1, 1e-6, "bb")};
  CHECK(verdict_on(data, "train-seconds").kind == VerdictKind::improves);
  data.probes[data.runs.back().run_key] = {probe(data, 0, 0.3, "bb")};
  const TestedVerdict verdict = verdict_on(data, "train-seconds");
  CHECK(verdict.kind == VerdictKind::broken);
  CHECK(verdict.reason.text == "the gradient of layer 2.weight differs from the reference after step 1");
}

TEST_CASE("with bfloat16 the tolerance for gradients is its rounding") {
  ReportData data = with_evidence();
  data.probes[data.runs.back().run_key] = {probe(data, 0, 0.005, "bb")};
  CHECK(verdict_on(data, "train-seconds").kind == VerdictKind::broken);
  for (db::RunSummary& run : data.runs) run.axes["precision"] = std::string("bfloat16");
  CHECK(verdict_on(data, "train-seconds").kind == VerdictKind::improves);
}

TEST_CASE("synchronised batch normalisation has a larger tolerance for gradients") {
  ReportData data = with_evidence();
  db::RunSummary& last = data.runs.back();
  for (db::RunSummary& run : data.runs) run.axes["batch_norm"] = std::string("sync");
  data.probes[last.run_key] = {probe(data, 0, 0.03, "bb"), probe(data, 1, 0.03, "bb")};
  CHECK(verdict_on(data, "train-seconds").kind == VerdictKind::improves);
  data.probes[last.run_key] = {probe(data, 0, 0.3, "bb")};
  CHECK(verdict_on(data, "train-seconds").kind == VerdictKind::broken);
}

TEST_CASE("an arm is BROKEN if its replicas drift apart") {
  ReportData data = with_evidence();
  data.probes[data.runs.back().run_key] = {probe(data, 0, 0, "bb"), probe(data, 1, 0, "cc")};
  const TestedVerdict verdict = verdict_on(data, "validation-loss");
  CHECK(verdict.kind == VerdictKind::broken);
  CHECK(verdict.reason.text == "replicas have different parameters in layer 2.weight after step 1");
  const Content content = compose(data);
  CHECK(std::ranges::any_of(content.report->fairness, [](const Statement& statement) {
    return statement.text.starts_with(
        "BROKEN: MLP ddp: replicas have different parameters in layer 2.weight");
  }));
  const Table table = models_table(content.report->comparisons.front());
  CHECK(std::get<std::string>(table.rows.front().back()).starts_with("broken"));
}

TEST_CASE("the report names the arms that were probed and those that were not") {
  ReportData data = with_evidence();
  const auto said = [&](Severity bearing, const std::string& beginning) {
    const Content content = compose(data);
    return std::ranges::any_of(content.report->fairness, [&](const Statement& statement) {
      return statement.severity == bearing && statement.text.starts_with(beginning);
    });
  };
  const std::string all =
      "Parity check: before timing, the first steps of each arm were compared with a single process.";
  CHECK(said(Severity::note, "Parity check: missing for MLP ddp, MLP single."));
  data.probes[data.runs.back().run_key] = {probe(data, 0, 0, "bb")};
  CHECK(said(Severity::note, "Parity check: missing for MLP single."));
  CHECK_FALSE(said(Severity::fair, all));
  data.probes[run_of(data, "mlp", "single", 0).run_key] = {probe(data, 0, 0, "bb")};
  CHECK(said(Severity::fair, all));
}

void set_losses(ReportData& data, const std::string& strategy, double loss, double accuracy, double step) {
  for (db::EpochRow& epoch : data.averages) {
    if (epoch.strategy != strategy) continue;
    epoch["train_loss"] = loss + step * static_cast<double>(epoch.epoch);
    epoch["train_accuracy"] = accuracy;
  }
}

TEST_CASE("training that stays at ln 10 and one in ten is reported") {
  ReportData data = invented({.models = {"cnn"}});
  CHECK(training_symptoms(data).empty());
  set_losses(data, "ddp", 2.3026, 0.101, 0.0001);
  const std::vector<std::string> lines = training_symptoms(data);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("CNN ddp: 5 of 5 runs are at chance: the training loss stays at ln 10 = 2.303"));
  const Content content = compose(data);
  CHECK(std::ranges::any_of(content.report->fairness,
                            [&](const Statement& statement) { return statement.text == lines[0]; }));
}

TEST_CASE("arms with the same symptom are one line, with a count and an example") {
  ReportData data = invented({.models = {"cnn", "mlp"}});
  for (const char* strategy : {"single", "ddp"}) set_losses(data, strategy, 1.5, 0.6, 0);
  const std::vector<std::string> lines = training_symptoms(data);
  REQUIRE(lines.size() == 1);
  CHECK(
      lines[0] ==
      "CNN single and 3 other arms: 5 of 5 runs are constant: the training loss is the same in every epoch.");
}

TEST_CASE("a constant loss and a NaN loss are reported") {
  ReportData data = invented({.models = {"cnn"}});
  set_losses(data, "ddp", 1.5, 0.6, 0);
  REQUIRE(training_symptoms(data).size() == 1);
  CHECK(contains(training_symptoms(data)[0], "are constant"));
  set_losses(data, "ddp", std::nan(""), 0.6, 0);
  CHECK(contains(training_symptoms(data)[0], "5 runs have diverged"));
  for (db::EpochRow& row : data.averages) row["train_loss"] = 1.0 / static_cast<double>(row.epoch);
  for (db::EpochRow& row : data.averages) row["validation_accuracy"] = 5;
  CHECK(contains(training_symptoms(data).at(0), "implausible: an accuracy is above 100 %"));
}

}  // namespace
}  // namespace trainyard::reports
