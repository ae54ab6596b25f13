// The answer of a report in words.
#include "reports/answer/answer.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/text.h"
#include "reports/analysis/analysis.h"
#include "reports/content/content.h"
#include "reports/content/paper_tables.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "tests/reports/support/made_results.h"
#include "tests/support/contains.h"

namespace trainyard::reports {
namespace {

// One answer. `data` must outlive the call only.
std::string answer_of(const ReportData& data) {
  return joined(compose(data).answer.paragraphs.front(), {}, " ");
}

// Times of an arm as a ratio to those of its baseline, with a small spread over seeds.
void set_times(ReportData& data, const std::string& model, const std::string& strategy, double ratio) {
  set_final(data, model, strategy, "epoch_train_seconds",
            [&](int seed) { return 2 * ratio * (1 + 0.002 * seed + (ratio == 1 ? 0 : 0.001 * (seed % 2))); });
}

void set_validation_accuracy(ReportData& data, const std::string& model, const std::string& strategy,
                             double value) {
  set_final(data, model, strategy, "validation_accuracy",
            [&](int seed) { return value + 0.0001 * seed + (strategy == "ddp" ? 1e-5 * (seed % 2) : 0); });
}

// All metrics of all arms are the same to 1e-5, but for the times: `ddp` takes `ratio` of the baseline's time.
ReportData equal_but_for_times(const std::vector<std::string>& models, double ratio, int seeds = 5) {
  ReportData data = invented({.models = models, .seeds = seeds});
  for (const std::string& model : models)
    for (const db::FinalMetrics& single : std::vector<db::FinalMetrics>(data.finals)) {
      if (single.model != model || single.strategy != "single") continue;
      db::FinalMetrics& ddp = final_of(data, model, "ddp", static_cast<int>(single.seed));
      const std::string key = ddp.run_key;
      ddp = single;
      ddp.run_key = key;
      ddp.strategy = "ddp";
      for (const char* metric : {"accuracy", "loss"})
        for (const char* phase : {"train_", "validation_", "test_"})
          ddp[db::MetricColumn::named(std::string(phase) + metric)] +=
              1e-5 * static_cast<double>(single.seed % 2);
    }
  for (const std::string& model : models) {
    set_times(data, model, "single", 1);
    set_times(data, model, "ddp", ratio);
  }
  return data;
}

TEST_CASE("the answer has a sentence per metric, with the models and their effects") {
  ReportData data = equal_but_for_times({"mlp", "cnn", "vgg11"}, 0.6);
  set_times(data, "cnn", "ddp", 0.75);
  CHECK(answer_of(data) ==
        "Training time improves for MLP (−39.98 %), CNN (−24.97 %) and VGG11 (−39.98 %). Accuracy does not "
        "change for MLP, CNN and VGG11. Loss does not change for MLP, CNN and VGG11.");
}

TEST_CASE("models that get faster, slower, worse or stay within the margin are named") {
  ReportData data = equal_but_for_times({"mlp", "cnn", "vgg11", "nbow"}, 0.6);
  set_times(data, "cnn", "ddp", 1.2);
  set_times(data, "nbow", "ddp", 1.0);
  for (const char* model : {"mlp", "cnn", "vgg11", "nbow"}) {
    set_validation_accuracy(data, model, "single", 0.9);
    set_validation_accuracy(data, model, "ddp", 0.9);
  }
  set_validation_accuracy(data, "cnn", "ddp", 0.87);
  set_validation_accuracy(data, "vgg11", "ddp", 0.92);
  set_final(data, "mlp", "ddp", "test_accuracy", [](int seed) { return 0.5 + 0.0001 * seed; });
  const std::string text = answer_of(data);
  CHECK_MESSAGE(
      text.starts_with("Training time improves for MLP (−39.98 %) and VGG11 (−39.98 %), does not change "
                       "for NBoW and deteriorates for CNN (+20.05 %). "),
      text);
  CHECK_MESSAGE(contains(text, "deteriorates for CNN (−3.000 pp)."), text);
  CHECK_MESSAGE(contains(text, "Accuracy improves for VGG11 (+2.000 pp)"), text);
  CHECK_MESSAGE(contains(text, "Other metrics that deteriorate: test accuracy of MLP (−"), text);
}

TEST_CASE("an arm that gets worse because a seed diverged is called diverged, without an effect") {
  ReportData data = equal_but_for_times({"mlp"}, 0.6);
  set_final(data, "mlp", "ddp", "validation_loss", [](int seed) { return seed == 0 ? NAN : 0.3; });
  CHECK_MESSAGE(contains(answer_of(data), "oss deteriorates for MLP (diverged)."), answer_of(data));
}

TEST_CASE("verdicts that are not decided are named with the reason") {
  ReportData seeds = equal_but_for_times({"mlp", "cnn"}, 0.6);
  set_final(seeds, "mlp", "ddp", "epoch_train_seconds", [](int seed) { return 1.7 + 0.15 * seed; });
  CHECK_MESSAGE(
      contains(answer_of(seeds), "Not decided: training time of MLP (more seeds are needed, about "),
      answer_of(seeds));
  CHECK(contains(answer_of(seeds), "Training time improves for CNN"));
  CHECK(answer_of(equal_but_for_times({"mlp"}, 0.6, 1)) ==
        "Not decided: training time of MLP, accuracy of MLP and loss of MLP (only 1 pair, at least 3 are "
        "needed).");
  const auto reason = [](const ReportData& data) {
    const std::string text = answer_of(data);
    return text.substr(text.find('('));
  };
  ReportData data = equal_but_for_times({"mlp"}, 0.6);
  set_status(data, "mlp", "ddp", 4, "planned");
  CHECK(reason(data) == "(planned runs are not finished).");
  for (int seed = 0; seed < 5; ++seed) set_status(data, "mlp", "ddp", seed, "failed");
  CHECK(reason(data) == "(all five runs of ddp failed).");
  ReportData other = equal_but_for_times({"mlp"}, 0.6);
  for (db::RunSummary& run : other.runs)
    run.axes["global_batch"] = std::int64_t{run.strategy == "ddp" ? 256 : 128};
  CHECK(reason(other).starts_with("(global batch"));
}

TEST_CASE("without a decided training time the answer has the processor time") {
  ReportData data = equal_but_for_times({"mlp"}, 0.6);
  for (db::FinalMetrics& final : data.finals) {
    final.times_count = false;
    final.other_share = 0.5;
    final.others_limit = 0.02;
    final["epoch_processor_seconds"] = final["epoch_train_seconds"];
  }
  CHECK_MESSAGE(answer_of(data).starts_with("No training time is decided. Processor time of the busiest rank "
                                            "improves for MLP (−39.98 %)."),
                answer_of(data));
}

TEST_CASE("with several arms each item names its arm, and a broken arm is not decided") {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "ddp", "mp-ddp"}});
  for (const char* arm : {"ddp", "mp-ddp"}) set_times(data, "mlp", arm, 0.6);
  set_times(data, "mlp", "single", 1);
  const std::string key = run_of(data, "mlp", "mp-ddp", 0).run_key;
  const nlohmann::json layer{
      {"path", "0.weight"}, {"gradient_norm", 0.5}, {"difference", 0.3}, {"parameter_hash", "aa"}};
  const nlohmann::json steps{
      {"step", 1}, {"loss", 2.3}, {"gradient_norm", 1.25}, {"layers", nlohmann::json::array({layer})}};
  data.probes[key].push_back(db::Probe{key, 0, steps});
  const std::string text = answer_of(data);
  CHECK_MESSAGE(text.starts_with("Training time improves for MLP (−"), text);
  CHECK_MESSAGE(contains(text, " %) with ddp. "), text);
  CHECK_MESSAGE(contains(text,
                         "training time of MLP with mp-ddp, accuracy of MLP with mp-ddp and loss of MLP with "
                         "mp-ddp (the parity check found another training)"),
                text);
}

TEST_CASE("a comparison with many undecided results and reasons has at most six sentences") {
  const std::vector<std::string> models{"mlp", "cnn", "vgg11", "conv-autoencoder", "nbow", "seq2seq"};
  ReportData data = invented({.models = models, .strategies = {"single", "ddp", "mp-ddp"}});
  for (const std::string& model : models) set_times(data, model, "single", 1);
  set_times(data, "mlp", "ddp", 0.6);
  set_times(data, "cnn", "mp-ddp", 1);
  set_status(data, "seq2seq", "ddp", 4, "planned");
  for (int seed = 0; seed < 5; ++seed) set_status(data, "nbow", "mp-ddp", seed, "failed");
  for (const char* model : {"vgg11", "conv-autoencoder"})
    set_final(data, model, "ddp", "epoch_train_seconds", [](int seed) { return 1.7 + 0.15 * seed; });
  const std::string text = answer_of(data);
  std::size_t sentences = 0;
  for (std::size_t at = text.find(". "); at != std::string::npos; at = text.find(". ", at + 1)) ++sentences;
  CHECK_MESSAGE(sentences + 1 <= 6, text);
  CHECK_MESSAGE(text.size() < 1300, text);
  CHECK_MESSAGE(contains(text, "(planned runs are not finished)"), text);
  CHECK_MESSAGE(contains(text, "(all five runs of mp-ddp failed)"), text);
}

TEST_CASE("each verdict without a decision has the kind of its reason") {
  const auto kind_of = [](const ReportData& data) {
    return compose(data).report->comparisons.front().cells.front().find("ddp", "train-seconds")->reason.kind;
  };
  CHECK(kind_of(equal_but_for_times({"mlp"}, 0.6)) == ReasonKind::none);
  CHECK(kind_of(equal_but_for_times({"mlp"}, 0.6, 1)) == ReasonKind::few_pairs);
  ReportData data = equal_but_for_times({"mlp"}, 0.6);
  set_final(data, "mlp", "ddp", "epoch_train_seconds", [](int seed) { return 1.7 + 0.15 * seed; });
  CHECK(kind_of(data) == ReasonKind::few_seeds);
  set_final(data, "mlp", "ddp", "epoch_train_seconds", [](int) { return -1; });
  CHECK(kind_of(data) == ReasonKind::no_ratio);
  set_status(data, "mlp", "ddp", 4, "planned");
  CHECK(kind_of(data) == ReasonKind::planned_runs);
  for (int seed = 0; seed < 5; ++seed) set_status(data, "mlp", "ddp", seed, "failed");
  CHECK(kind_of(data) == ReasonKind::no_values);
}

TEST_CASE("a model without accuracy has no sentence on it") {
  const std::string text = answer_of(equal_but_for_times({"conv-autoencoder"}, 0.6));
  CHECK_MESSAGE(contains(text, "Loss does not change for "), text);
  CHECK_FALSE(contains(text, "Accuracy"));
}

// A study of one axis: strategies of the invented data become its values.
ReportData answered_study(const std::string& axis) {
  ReportData data = invented({.models = {"mlp"}, .strategies = {"single", "b", "c"}});
  data.plan.varied = {axis, "seed"};
  data.plan.compare.front().axis = axis;
  data.plan.compare.front().baseline = "1";
  for (const char* arm : {"b", "c"}) set_times(data, "mlp", arm, *arm == 'b' ? 0.6 : 0.4);
  set_times(data, "mlp", "single", 1);
  for (db::RunSummary& run : data.runs) {
    run.axes[axis] = std::int64_t{run.strategy == "single" ? 1 : run.strategy == "b" ? 2 : 4};
    run.axes["strategy"] = std::string("single");
    run.strategy = "single";
    run.replicas = 1;
  }
  data.history.front().compare = data.plan.compare;
  return data;
}

TEST_CASE("a parameter study has its axis in subtitle and answer") {
  const ReportData threads = answered_study("threads");
  const Content content = compose(threads);
  CHECK(subtitle(content.report->comparisons.front()) == "Effect of threads (2 and 4 against 1) on MLP");
  const std::string text = joined(content.answer.paragraphs.front(), {}, " ");
  CHECK_MESSAGE(
      text.starts_with("Training time improves for MLP (−39.98 %) with 2 threads and MLP (−59.98 %) with 4 "
                       "threads."),
      text);
  const ReportData rates = answered_study("learning_rate");
  CHECK(contains(answer_of(rates), "MLP (−39.98 %) with learning rate 2"));
  CHECK(subtitle(compose(rates).report->comparisons.front()) ==
        "Effect of learning rate (2 and 4 against 1) on MLP");
}

TEST_CASE("the subtitle of a comparison of strategies names arms and models") {
  const ReportData data = invented({.models = {"mlp", "cnn"}, .strategies = {"single", "ddp", "mp-ddp"}});
  CHECK(subtitle(compose(data).report->comparisons.front()) ==
        "Effect of strategy (ddp and mp-ddp against single) on MLP and CNN");
}

TEST_CASE("with 20 models and 5 arms the answer stays short, with counts and some names") {
  std::vector<std::string> models;
  models.reserve(20);
  for (int i = 0; i < 20; ++i) models.push_back(std::string(1, static_cast<char>('a' + i)) + "x");
  ReportData data = invented(
      {.models = models, .strategies = {"single", "a", "b", "c", "d", "e"}, .seeds = 3, .epochs = 3});
  for (const std::string& model : models) {
    set_times(data, model, "single", 1);
    for (const char* arm : {"a", "b", "c", "d", "e"}) set_times(data, model, arm, *arm == 'e' ? 1.5 : 0.5);
  }
  const std::string text = answer_of(data);
  CHECK_MESSAGE(text.size() < 900, text);
  CHECK_MESSAGE(text.starts_with("Training time improves for ax (−49.98 %), "), text);
  CHECK_MESSAGE(contains(text, " and 15 others with a, b, c and d and deteriorates for ax (+50.0 %), "),
                text);
}

TEST_CASE("the answer is on the terminal and in the Markdown report, before the tables") {
  const ReportData data = equal_but_for_times({"mlp", "cnn"}, 0.6);
  const Content content = compose(data);
  const std::string answer = joined(content.answer.paragraphs.front(), {}, " ");
  CHECK(terminal_table(content).starts_with(answer + "\n"));
  const std::string markdown = markdown_report(content, {});
  CHECK(markdown.find("Training time improves for") < markdown.find("Is this comparison fair?"));
  CHECK(markdown.find("## Provenance") > markdown.find("## Verdicts"));
}

TEST_CASE("the answer states what was compared and on which machine") {
  const ReportData data = equal_but_for_times({"mlp", "cnn"}, 0.6);
  const Answer answer = compose(data).answer;
  CHECK(answer.compared ==
        "5 seeds per arm, 6 epochs. Data: mnist (stand-in: synthetic-digits). Strategies: "
        "ddp: 2 replicas. Runs: 20 complete, 0 failed.");
  CHECK(answer.machine == "lab-node-03, Xeon. trainyard 0.1.0 Release.");
  CHECK(answer.published.empty());
}

TEST_CASE("the machine says whether the runs trained on CPU or GPU, per strategy if they differ") {
  ReportData data = equal_but_for_times({"mlp"}, 0.6);
  const auto train_on = [&](const char* single, const char* ddp) {
    for (const db::RunSummary& run : data.runs) {
      db::RunEvidence& evidence = data.evidence[run.run_key];
      evidence.ranks.clear();
      for (std::int64_t rank = 0; rank < run.replicas; ++rank) {
        evidence.ranks.emplace_back();
        evidence.ranks.back().device = run.strategy == "single" ? single : ddp;
      }
    }
    return compose(data).answer.machine;
  };
  CHECK(train_on("cpu:0", "cpu:1") == "lab-node-03, Xeon. Trained on the CPU. trainyard 0.1.0 Release.");
  CHECK(contains(train_on("cuda:0", "cuda:1"), ". Trained on GPUs (CUDA). "));
  CHECK(contains(train_on("cpu:0", "cuda:1"), ". single on the CPU, ddp on GPUs (CUDA). "));
  CHECK(contains(train_on("", ""), ". CPU or GPU: not recorded. "));
}

TEST_CASE("the terminal has the published study and the machine below the answer") {
  ReportData data = equal_but_for_times({"mlp"}, 0.6);
  data.plan.published.emplace();
  data.plan.published->sources = {{"paper", {{"single", "one card"}}, {}, {}}};
  const std::string text = terminal_table(compose(data));
  CHECK_MESSAGE(contains(text, "\nPublished study: paper. Its hardware: single on one card. Its numbers"),
                text);
  CHECK_MESSAGE(contains(text, "\nMachine: lab-node-03, Xeon."), text);
  CHECK(text.find("Machine: ") < text.find("erdicts against single"));
}

TEST_CASE("a published study is compared verdict by verdict, with its hardware") {
  ReportData data = equal_but_for_times({"mlp", "cnn"}, 0.6);
  data.plan.published.emplace();
  experiments::PublishedSource source{"paper", {{"single", "one card"}, {"ddp", "two others"}}, {}, {}};
  source.series = {{"mlp", "single", "train_seconds", {{0, 24}}}, {"mlp", "ddp", "train_seconds", {{0, 11}}}};
  source.verdicts = {{"time", "improves", "mlp", ""},       {"time", "improves", "cnn", "ddp"},
                     {"accuracy", "improves", "mlp", ""},   {"accuracy", "deteriorates", "cnn", ""},
                     {"loss", "no-change", "mlp", "ddp"},   {"loss", "no-change", "vgg11", ""},
                     {"loss", "no-change", "cnn", "mp-ddp"}};
  data.plan.published->sources = {source};
  const std::vector<std::string> texts = compose(data).answer.published;
  REQUIRE(texts.size() == 1);
  const std::string table = markdown_table(published_verdicts(make_report(data)).table);
  CHECK_MESSAGE(contains(table, "| accuracy | DETERIORATES | NO CHANGE"), table);
  CHECK(contains(page_html(compose(data), {}), "<h2>Published verdicts</h2>"));
  for (db::RunSummary& run : data.runs) run.axes["train_samples"] = std::int64_t{2000};
  data.plan.published->sources.front().sizes = {{"train_samples", "50000"}, {"width", "64"}};
  const std::string sizes = compose(data).answer.published.front();
  CHECK_MESSAGE(contains(sizes, "2 differ: accuracy of"), sizes);
  CHECK_MESSAGE(sizes.ends_with("; train samples: 50000 there, 2000 here."), sizes);
  for (const char* part :
       {"ddp on two others, single on one card", "Training time: IMPROVES for MLP and CNN (ddp).",
        "Accuracy: IMPROVES for MLP, DETERIORATES for CNN.",
        "Loss: NO CHANGE for MLP (ddp), VGG11 and CNN (mp-ddp).",
        "3 of our 5 verdicts on these agree and 2 differ",
        "accuracy of MLP with ddp (IMPROVES there, NO CHANGE here)",
        "accuracy of CNN with ddp (DETERIORATES there, NO CHANGE here)"})
    CHECK_MESSAGE(contains(texts.front(), part), texts.front());
}

TEST_CASE("a published source without a table of verdicts is said to be drawn only") {
  ReportData data = equal_but_for_times({"mlp"}, 0.6);
  data.plan.published.emplace();
  data.plan.published->sources = {{"paper", {{"single", "one card"}}, {}, {}}};
  CHECK(compose(data).answer.published.front() ==
        "paper. Its hardware: single on one card. Its numbers are drawn in the figures and not used in "
        "verdicts.");
}

}  // namespace
}  // namespace trainyard::reports
