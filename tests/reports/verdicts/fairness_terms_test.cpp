// Lines of the fairness list on terms that both arms share. Each is taken from the records of both arms, or
// is "not stated by ARM".
#include <algorithm>

#include <doctest/doctest.h>

#include "reports/answer/verdict_text.h"
#include "reports/content/content.h"
#include "reports/content/paper_tables.h"
#include "reports/format/table.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "reports/verdicts/fairness.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

db::RunEvidence full_evidence(const db::RunSummary& run) {
  db::RunEvidence evidence;
  evidence.run_key = run.run_key;
  evidence.strategy_kind = run.strategy;
  evidence.host = "lab-node-03";
  evidence.processor = "Xeon";
  evidence.data_fingerprint = "5e1f";
  evidence.samples_an_epoch = 1600;
  const std::string hash = "seed-" + std::to_string(run.seed);
  evidence.batches = {{1, hash}, {2, hash + "-again"}};
  for (std::int64_t rank = 0; rank < run.replicas; ++rank)
    evidence.ranks.push_back({rank,
                              rank,
                              "cpu:" + std::to_string(rank),
                              1,
                              "0.1.0",
                              "2.13.0",
                              {{"initial_weights", {{"0.weight", hash}, {"2.weight", hash}}}}});
  return evidence;
}

// MLP with trainyard's own single and ddp.
ReportData two_arms() {
  ReportData data = invented({.models = {"mlp"}, .seeds = 3});
  for (db::RunSummary& run : data.runs) {
    run.axes["global_batch"] = std::int64_t{128};
    data.evidence[run.run_key] = full_evidence(run);
  }
  return data;
}

// Like two_arms(), but ddp is a foreign program that states `start`.
ReportData foreign_arm(const nlohmann::json& start) {
  ReportData data = two_arms();
  for (db::RunSummary& run : data.runs) {
    if (run.strategy != "ddp") continue;
    run.kind = "foreign";
    db::RunEvidence& evidence = data.evidence.at(run.run_key);
    evidence.strategy_kind = "foreign";
    evidence.batches.clear();
    for (db::RunEvidence::Rank& rank : evidence.ranks) rank = {rank.rank, rank.rank, "", 0, "", "", start};
  }
  return data;
}

bool prints(const ReportData& data, Severity bearing, const std::string& part) {
  const Content content = compose(data);
  return std::ranges::any_of(content.report->fairness, [&](const Statement& statement) {
    return statement.severity == bearing && contains(statement.text, part);
  });
}

std::size_t occurrences(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST_CASE("lines for built-in arms are ticked from their records") {
  const ReportData data = two_arms();
  CHECK(prints(data, Severity::fair, "Global batch: the same for all arms of a cell (128)."));
  CHECK(prints(data, Severity::fair, "Replicas of ddp: each of N gets 1/N of the global batch"));
  CHECK(prints(data, Severity::fair, "Initial weights: the same in each pair"));
  CHECK(prints(data, Severity::fair, "Data order: the same samples in the same order in each pair"));
  CHECK(prints(data, Severity::fair, "LibTorch: 2.13.0 in all runs."));
}

TEST_CASE("seeds that begin with the same weights are named with their model") {
  ReportData data = two_arms();
  const std::string line =
      "Seeds of MLP: all begin with the same weights, so the verdicts hold only for these.";
  CHECK_FALSE(prints(data, Severity::unfair, line));
  const auto begin_with = [&](const std::string& hash, int seeds) {
    for (const db::RunSummary& run : data.runs)
      if (run.seed < seeds)
        for (db::RunEvidence::Rank& rank : data.evidence.at(run.run_key).ranks)
          rank.start["initial_weights"] = {{"0.weight", hash}, {"2.weight", hash}};
  };
  begin_with("that of the file", 2);
  CHECK_FALSE(prints(data, Severity::unfair, line));
  begin_with("that of the file", 3);
  CHECK(prints(data, Severity::unfair, line));  // of `initial`
  CHECK_FALSE(prints(data, Severity::unfair, "trainyard export"));
  for (db::RunSummary& run : data.runs) {
    run.model = "net";
    run.model_title = "MLP";
  }
  CHECK(prints(data, Severity::unfair, line + " `trainyard export … --seeds` writes weights for each seed."));
  for (db::RunSummary& run : data.runs) run.kind = data.evidence.at(run.run_key).strategy_kind = "foreign";
  CHECK(prints(data, Severity::unfair, line));
  CHECK_FALSE(prints(data, Severity::unfair, "trainyard export"));
}

TEST_CASE("no line is ticked for a foreign arm that states nothing") {
  const ReportData data = foreign_arm(nlohmann::json::object());
  for (const char* line : {"Global batch: not stated by ddp.",
                           "Replicas of ddp: their parts of the global batch are not stated.",
                           "Initial weights: not stated by ddp.", "Data order: not stated by ddp.",
                           "LibTorch: not stated by ddp."})
    CHECK_MESSAGE(prints(data, Severity::note, line), line);
  for (const char* claim : {"Global batch: the same", "gets 1/N", "Initial weights: the same",
                            "Data order: the same", "in all runs"})
    for (const Severity bearing : {Severity::fair, Severity::unfair, Severity::note})
      CHECK_FALSE_MESSAGE(prints(data, bearing, claim), claim);
}

TEST_CASE("the line of a term that a foreign arm states is ticked, and a false statement is reported") {
  ReportData data = foreign_arm({{"global_batch", 128}});
  CHECK(prints(data, Severity::fair, "Global batch: the same for all arms of a cell (128)."));
  const auto state = [&](const std::string& second) {
    for (const db::RunSummary& run : data.runs) {
      if (run.strategy != "ddp") continue;
      const std::string hash = "seed-" + std::to_string(run.seed);
      nlohmann::json weights = {{"0.weight", hash}};
      if (second != "left out") weights["2.weight"] = second.empty() ? hash : second;
      data.evidence.at(run.run_key).ranks.front().start["initial_weights"] = weights;
    }
  };
  state("");
  CHECK(prints(data, Severity::fair, "Initial weights: the same in each pair"));
  state("left out");
  CHECK(prints(data, Severity::note, "Initial weights: stated only in part by ddp."));
  state("another");
  CHECK(prints(data, Severity::unfair, "Initial weights: ddp differs from the baseline."));
  for (const db::RunSummary& run : data.runs)
    data.evidence.at(run.run_key).batches = full_evidence(run).batches;
  CHECK(prints(data, Severity::fair, "Data order: the same samples in the same order in each pair"));
  data.evidence.at(data.runs.back().run_key).batches.erase(2);
  CHECK(prints(data, Severity::note, "Data order: stated only in part by ddp."));
  data.evidence.at(data.runs.back().run_key).batches[1] = "another";
  CHECK(prints(data, Severity::unfair, "Data order: ddp differs from the baseline."));
}

TEST_CASE("replicas that saw more samples than the baseline did not share a batch") {
  ReportData data = two_arms();
  for (const db::RunSummary& run : data.runs)
    if (run.strategy == "ddp") data.evidence.at(run.run_key).samples_an_epoch = 3200;
  CHECK_FALSE(prints(data, Severity::fair, "gets 1/N"));
  CHECK(
      prints(data, Severity::note,
             "Replicas of ddp: it is not recorded that together they saw as many samples as the baseline."));
}

TEST_CASE("different versions of LibTorch are named") {
  ReportData data = two_arms();
  data.evidence.at(data.runs.back().run_key).ranks.back().libtorch_version = "2.11.0";
  CHECK(prints(data, Severity::unfair, "LibTorch: versions differ (2.11.0, 2.13.0)."));
}

TEST_CASE("probes by a foreign program do not count as trainyard's parity check") {
  ReportData data = foreign_arm(nlohmann::json::object());
  for (const db::RunSummary& run : data.runs) data.probes[run.run_key] = {{run.run_key, 0, {{"step", 1}}}};
  CHECK(prints(data, Severity::note, "Parity check: missing for MLP ddp."));
}

TEST_CASE("NOT VERIFIED and its reason are printed once per arm: terminal, page, Markdown and LaTeX") {
  const ReportData data = foreign_arm({{"epochs", 6}});
  const Content content = compose(data);
  const std::vector<Verdict>& verdicts = content.report->comparisons.front().cells.front().verdicts;
  REQUIRE(verdicts.size() == 8);
  for (const Verdict& verdict : verdicts) {
    CHECK_FALSE(verdict.verified);
    CHECK_FALSE(contains(remarks_of(verdict), "NOT VERIFIED"));
  }
  std::size_t lines = 0;
  for (const std::string& line : grouped_remarks(content.report->comparisons))
    lines += contains(line, "NOT VERIFIED") ? 1 : 0;
  CHECK(lines == 1);
  CHECK(occurrences("NOT VERIFIED", terminal_table(content)) == 1);
  for (const PaperTable& paper : content.tables)
    CHECK(occurrences("NOT VERIFIED", std::get<std::string>(paper.table.rows.front().front())) ==
          (paper.slug == "effects" ? 1 : 0));
  // In the fairness list, the arm's own row, the title of that row, the remarks, and the table of all numbers.
  CHECK(occurrences("NOT VERIFIED", page_html(content, {})) == 5);
  CHECK(occurrences("NOT VERIFIED", markdown_report(content, {})) == 2);
}

TEST_CASE("arms that leave out the same terms share one line") {
  ReportData data = invented({.models = {"mlp", "cnn"}, .seeds = 3});
  for (db::RunSummary& run : data.runs) {
    data.evidence[run.run_key] = full_evidence(run);
    if (run.strategy != "ddp") continue;
    data.evidence[run.run_key].strategy_kind = run.kind = "foreign";
    for (db::RunEvidence::Rank& rank : data.evidence[run.run_key].ranks) rank.start = nullptr;
  }
  CHECK(prints(data, Severity::unfair, "NOT VERIFIED: MLP ddp and 1 other arm: the records do not state "));
  CHECK(occurrences("NOT VERIFIED", terminal_table(compose(data))) == 1);
}

TEST_CASE("the page and its tables label each p-value with its hypothesis") {
  const ReportData data = two_arms();
  const Content content = compose(data);
  const std::string page = page_html(content, {});
  CHECK(contains(page, "s correction, with its hypothesis"));
  CHECK(contains(page, " (better)</td>"));
  CHECK(contains(page, " (better), margin a factor of 1.05"));
  for (const PaperTable& paper : content.tables)
    if (paper.slug == "effects") CHECK(contains(markdown_table(paper.table), " (better) |"));
}

TEST_CASE("equal remarks on metrics and arms are one line, with the reason first") {
  ReportData data = invented({.models = {"mlp", "cnn"}, .seeds = 3});
  for (const char* model : {"mlp", "cnn"})
    for (int seed = 0; seed < 3; ++seed) {
      set_status(data, model, "ddp", seed, "failed");
      run_of(data, model, "ddp", seed).failure = std::string(306, 'x');
    }
  const Content content = compose(data);
  const std::vector<std::string> lines = grouped_remarks(content.report->comparisons);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "NO DATA: all three runs of ddp failed [MLP ddp: all 8 metrics, and 1 other arm]");
  CHECK(lines[1] == "left out: seed 0, seed 1, seed 2: ddp failed: " + std::string(306, 'x') +
                        " [MLP ddp: all 8 metrics, and 1 other arm]");
  // On the page: once in the remarks, once per run in the table of all runs, and once as a warning.
  CHECK(occurrences(std::string(306, 'x'), page_html(content, {})) == 1 + 6 + 1);
}

}  // namespace
}  // namespace trainyard::reports
