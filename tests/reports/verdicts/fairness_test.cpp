// The fairness list of a report ("Is this comparison fair?") and other sentences of a report.
#include "reports/verdicts/fairness.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "reports/answer/answer.h"
#include "reports/content/content.h"
#include "reports/content/paper_tables.h"
#include "reports/report/report.h"
#include "reports/results/report_data.h"
#include "reports/results/sanity_checks.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

bool says(const ReportData& data, const std::string& part) {
  const Content content = compose(data);
  return std::ranges::any_of(content.report->fairness,
                             [&](const Statement& statement) { return contains(statement.text, part); });
}

bool says(const ReportData& data, Severity bearing, const std::string& part) {
  const Content content = compose(data);
  return std::ranges::any_of(content.report->fairness, [&](const Statement& statement) {
    return statement.severity == bearing && contains(statement.text, part);
  });
}

TEST_CASE("the fairness list follows from the data") {
  ReportData data = invented();
  for (db::RunSummary& run : data.runs) run.axes["global_batch"] = std::int64_t{128};
  CHECK(says(data, Severity::fair, "Global batch: the same"));
  CHECK(says(data, Severity::fair, "same 5 values of seed. Differences are computed per pair."));
  CHECK(says(data, Severity::fair,
             "Times: each timed run was the only one on its host and had its devices to itself"));
  CHECK(says(data, Severity::fair, "pinned to 1 core for 1 thread."));
  final_of(data, "mlp", "ddp", 0).times_count = false;
  CHECK(says(data, Severity::unfair, "Times: those of 1 run of 20 are flagged and not used in verdicts"));
  run_of(data, "mlp", "ddp", 0).axes["global_batch"] = std::int64_t{64};
  CHECK(says(data, Severity::unfair, "Global batch: ddp differs from the baseline (128, 64)"));
  data.launched[run_of(data, "mlp", "ddp", 0).run_key].cores = {2, 2};
  CHECK(says(data, Severity::unfair,
             "Cores: not the same for all ranks of a cell (1 core for 1 thread, 2 cores for 1 thread)"));
}

TEST_CASE("stand-ins for several data sets are one line") {
  ReportData data = invented();
  for (db::RunSummary& run : data.runs)
    if (run.model == "cnn") {
      run.dataset = "cifar10";
      run.data_source = "synthetic-images";
    }
  CHECK(says(data, Severity::unfair,
             "Stand-in data: synthetic-digits instead of mnist, synthetic-images instead of cifar10. "
             "The results do not apply to cifar10, mnist."));
  const Content content = compose(data);
  CHECK(std::ranges::count_if(content.report->fairness, [](const Statement& statement) {
          return statement.text.starts_with("Stand-in data");
        }) == 1);
}

TEST_CASE("the line on cores counts cores per thread") {
  ReportData data = invented();
  for (auto& [key, launched] : data.launched) launched.circumstances.threads_per_rank = 2;
  for (auto& [key, launched] : data.launched) launched.cores.assign(launched.cores.size(), 2);
  CHECK(says(data, Severity::fair,
             "Cores: each rank, also of a run on one device, is pinned to 2 cores for 2 threads."));
}

TEST_CASE("the line on the host has the share of other processes, and is not ticked without it") {
  ReportData data = invented();
  final_of(data, "mlp", "ddp", 0).other_share = 0.0123;
  CHECK(says(data, Severity::fair,
             "to itself. Other processes took at most 1.2 % of the leased cores in the epochs that count."));
  final_of(data, "mlp", "ddp", 1).other_share = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(says(data, Severity::fair, "was the only one on its host"));
  CHECK(says(
      data, Severity::note,
      "Times: the load of other processes was not recorded for 1 run, so devices may have been shared."));
  for (const int seed : {2, 3}) {
    final_of(data, "mlp", "ddp", seed).times_count = false;
    final_of(data, "mlp", "ddp", seed).times_problem = "a rank had 1 core for 2 threads";
  }
  final_of(data, "cnn", "ddp", 0).times_count = false;
  final_of(data, "cnn", "ddp", 0).times_problem = "other processes took 31 % of its cores (limit 2 %)";
  CHECK(says(
      data, Severity::unfair,
      "Times: those of 3 runs of 20 are flagged and not used in verdicts (2 runs: a rank had 1 core for 2 "
      "threads; 1 run: other processes took 31 % of its cores (limit 2 %))."));
}

TEST_CASE("the load of other processes is one line, and a limit that is not the usual one is named") {
  ReportData data = invented();
  for (db::FinalMetrics& final : data.finals) {
    final.other_share = final.seed == 0 ? 0.32 : final.seed == 1 ? 0.78 : 0.01;
    final.others_limit = 0.02;
    final.times_count = final.seed > 1;
  }
  CHECK(says(
      data, Severity::unfair,
      "Times: those of 8 runs of 20 are flagged and not used in verdicts (8 runs: other processes took 32 "
      "– 78 % of their cores)."));
  for (db::FinalMetrics& final : data.finals)
    final.times_count = true;  // a load of less than 0.1 s always counts
  CHECK(says(data, Severity::fair,
             "Other processes took at most 78 % of the leased cores in the epochs that count."));
  for (db::FinalMetrics& final : data.finals) final.others_limit = 1;
  CHECK(says(data, Severity::unfair,
             "Times: other processes may take 100 % of the cores (TRAINYARD_OTHERS_LIMIT), not 2 %."));
}

TEST_CASE("differences between cells are not differences between arms") {
  ReportData data = invented();
  for (const db::RunSummary& run : data.runs)
    if (run.model == "cnn") data.launched[run.run_key].cores = std::vector<std::size_t>(run.replicas, 2);
  CHECK(says(data, Severity::fair, "is pinned to 1 core for 1 thread or 2 cores for 1 thread."));
  std::erase_if(data.runs, [](const db::RunSummary& run) { return run.model == "cnn" && run.seed > 2; });
  CHECK(says(data, Severity::fair, "Pairs: all arms of a cell have the same values of seed"));
  std::erase_if(data.runs, [](const db::RunSummary& run) { return run.strategy == "ddp" && run.seed == 1; });
  CHECK(says(data, Severity::unfair, "Pairs: not all arms have the same values of seed"));
}

TEST_CASE("without a finished run the report has no sentence on times") {
  ReportData data = invented({.models = {"mlp"}, .seeds = 1});
  for (const char* strategy : {"single", "ddp"}) set_status(data, "mlp", strategy, 0, "failed");
  CHECK(says(data, Severity::note, "Times: none are known yet."));
  CHECK_FALSE(says(data, "the only one on its host"));
  data.launched.clear();
  CHECK(says(data, Severity::note, "Machine: not known."));
  CHECK_FALSE(says(data, "all runs used the same"));
}

TEST_CASE("without a second arm the report has no sentence on arms, pairs and corrections") {
  const ReportData data = invented({.models = {"mlp"}, .strategies = {"single"}});
  for (const char* part : {"Pairs", "all arms", "per pair", "p-values: corrected"})
    CHECK_FALSE(says(data, part));
  CHECK(says(invented(), "p-values: corrected"));
}

TEST_CASE("a failed run is named with all varied values, unless it is not planned any more") {
  ReportData data = invented({.models = {"mlp"}});
  data.plan.varied.emplace_back("batch");
  for (db::RunSummary& run : data.runs) run.axes["batch"] = std::int64_t{64};
  set_status(data, "mlp", "ddp", 1, "failed");
  run_of(data, "mlp", "ddp", 1).failure = "rank 1 was killed";
  CHECK(says(data, Severity::unfair, "Failed and left out: rank 1 was killed: MLP ddp seed 1 batch=64."));
  for (db::RunSummary& run : data.runs)
    if (run.seed != 1) run.axes["epochs"] = std::int64_t{30};
  plan_again(data, keys_of_seeds(data, 2, 4));
  CHECK_FALSE(says(data, "Failed and left out"));
}

TEST_CASE("equal failures are one warning, with the reason first, a count and an example") {
  ReportData data = invented({.models = {"mlp", "cnn"}, .seeds = 3});
  for (const char* model : {"mlp", "cnn"})
    for (int seed = 0; seed < 3; ++seed) {
      set_status(data, model, "ddp", seed, "failed");
      run_of(data, model, "ddp", seed).failure = "rank 0: exit code 1";
    }
  CHECK(says(data, Severity::unfair,
             "Failed and left out: rank 0: exit code 1: 6 runs, for example CNN ddp seed 0."));
  const std::string terminal = terminal_table(compose(data));
  const std::size_t first = terminal.find("Failed and left out");
  CHECK(first != std::string::npos);
  CHECK(terminal.find("Failed and left out", first + 1) == std::string::npos);
}

TEST_CASE("every format of a report on a part of the runs has a warning") {
  ReportData data = invented({.models = {"mlp", "cnn"}, .seeds = 3});
  keep_selected(data, {{}, "", {"model=mlp"}});
  CHECK(says(data, Severity::unfair, "This report includes only a part of the runs (model=mlp)"));
  CHECK(contains(markdown_report(compose(data), {}), "This report includes only a part of the runs"));
  CHECK(contains(terminal_table(compose(data)), "warning: This report includes only a part of the runs"));
}

TEST_CASE("the number of diverged runs decides between \"has\" and \"have\"") {
  ReportData data = invented({.models = {"cnn"}});
  for (db::EpochRow& epoch : data.averages)
    if (epoch.strategy == "ddp" && epoch.seed == 0) epoch["train_loss"] = std::nan("");
  CHECK(contains(training_symptoms(data).at(0), "1 of 5 runs has diverged"));
}

TEST_CASE("one axis with two baselines has separate figures and tables for each comparison") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "mp"}});
  data.plan.compare.push_back(data.plan.compare.front());
  data.plan.compare.back().baseline = "ddp";
  const Content content = compose(data);
  std::vector<std::string> names;
  for (const Figure* figure : all_figures(content)) names.push_back(figure->slug);
  for (const PaperTable& paper : content.tables) names.push_back(paper.slug);  // also the labels
  CHECK(std::ranges::find(names, "effects-strategy") != names.end());
  CHECK(std::ranges::find(names, "effects-strategy-against-ddp") != names.end());
  std::ranges::sort(names);
  CHECK(std::ranges::adjacent_find(names) == names.end());
}

TEST_CASE("the speed-up of one seed has no interval, and the caption explains this") {
  const auto caption = [](int seeds) {
    const ReportData data = invented({.models = {"mlp"}, .seeds = seeds});
    const Content content = compose(data);
    const std::vector<const Figure*> figures = all_figures(content);
    return (*std::ranges::find(figures, "speed-up", &Figure::slug))->caption;
  };
  CHECK(contains(caption(1), "One seed, so no interval is shown."));
  CHECK(contains(caption(3), "A vertical line is the 95 % t interval of this mean"));
  CHECK(contains(caption(3), "geometric mean over pairs."));
}

TEST_CASE("a numeric baseline is named with its axis") {
  experiments::Compare compare;
  compare.axis = "batch";
  compare.baseline = "64";
  CHECK(no_verdicts_text({compare, {}, "", ""}) == "No verdicts against batch 64: there is no arm of batch.");
  compare.axis = "strategy";
  compare.baseline = "single";
  CHECK(no_verdicts_text({compare, {}, "", ""}) ==
        "No verdicts against single: there is no arm of strategy.");
}

TEST_CASE("on a terminal, blocks are separated by one blank line, and there is none at the end") {
  ReportData data = invented({.models = {"mlp"}});
  const std::string verdicts = terminal_table(compose(data));
  CHECK_FALSE(contains(verdicts, "\n\n\n"));
  CHECK_FALSE(verdicts.ends_with("\n\n"));
  final_of(data, "mlp", "ddp", 0).times_count = false;
  const std::string warned = terminal_table(compose(data));
  CHECK(contains(warned, "\n\nwarning: Times: those of 1 run of 10 are flagged"));
  CHECK_FALSE(contains(warned, "\n\n\n"));
  CHECK_FALSE(warned.ends_with("\n\n"));
}

TEST_CASE("tables explain what n counts") {
  ReportData data = invented({.models = {"mlp"}});
  const auto caption = [&] { return compose(data).tables.at(1).table.caption; };
  CHECK(contains(caption(), "n: number of pairs."));
  data.plan.compare.front().pair.clear();
  CHECK(contains(caption(), "n: number of runs in the smaller arm."));
}

TEST_CASE("the effect of a single pair is exported without an interval, and BLEU is in points") {
  const ReportData data = invented({.models = {"seq2seq"}, .seeds = 1});
  const Table table = verdict_numbers(compose(data).report->comparisons);
  const auto column = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(table.columns, name, &TableColumn::title) -
                                    table.columns.begin());
  };
  for (const TableRow& row : table.rows) {
    CHECK(std::isfinite(std::get<double>(row[column("effect")])));
    CHECK(std::isnan(std::get<double>(row[column("low_95")])));
    if (std::get<std::string>(row[column("metric")]) == "test-bleu")
      CHECK(std::get<std::string>(row[column("unit")]) == "points");
  }
  CHECK(table.rows.size() > 5);
}

TEST_CASE("each comparison without an arm has one sentence in Markdown, and no empty tables") {
  ReportData data = invented({.models = {"mlp"}});
  data.plan.compare.push_back(data.plan.compare.front());
  data.plan.compare.back().axis = "precision";
  data.plan.compare.back().baseline = "float32";
  for (db::RunSummary& run : data.runs) run.axes["precision"] = std::string("float32");
  const std::string text = markdown_report(compose(data), {});
  CHECK(contains(text, "No verdicts against precision float32: there is no arm of precision."));
  CHECK(contains(text, "against single"));
  CHECK_FALSE(contains(text, "All effects against precision float32"));
}

TEST_CASE("the report has the parameters, the hardware and the system that ranks recorded, and the commit") {
  ReportData data = invented({.models = {"mlp"}});
  for (const db::RunSummary& run : data.runs) {
    db::RunEvidence::Rank rank;
    rank.parameters = 100;
    rank.start = {
        {"hardware", {{"cores", 2}, {"memory_bytes", std::int64_t{3} << 30}, {"system", "Debian"}}}};
    data.evidence[run.run_key].ranks = {rank, rank};
    data.evidence[run.run_key].ranks.back().rank = 1;
    data.launched[run.run_key].commit = "3f9a21c4d0e2";
  }
  data.evidence[data.runs.front().run_key].ranks.front().start["hardware"] = "wrong";
  const Content content = compose(data);
  const auto known = [&](const std::string& name) {
    for (const auto& [one, value] : content.report->provenance)
      if (one == name) return value;
    return std::string();
  };
  CHECK(known("Parameters") == "MLP 200");  // of both ranks, which are stages of one replica
  CHECK(known("Cores and memory") == "2 cores, 3.0 GiB");
  CHECK(known("System") == "Debian");
  CHECK(known("Commit") == "3f9a21c4d0e2");
  CHECK(contains(content.answer.machine, "2 cores, 3.0 GiB, Debian."));
}

TEST_CASE("runs that are in no current plan are counted separately") {
  ReportData data = invented({.models = {"mlp"}});  // two arms of five seeds
  CHECK(compose(data).report->provenance.front() ==
        std::pair<std::string, std::string>("Runs", "10 complete, 0 failed"));
  for (std::size_t i = 0; i < 3; ++i) data.runs[i].in_latest_plan = false;
  CHECK(compose(data).report->provenance.front().second ==
        "7 complete, 0 failed; planned before, not in the latest plan: 3 complete, 0 failed");
}

}  // namespace
}  // namespace trainyard::reports
