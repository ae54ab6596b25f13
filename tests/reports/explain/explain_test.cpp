// The rules on invented records: a healthy pair is silent, and each fault is named by its evidence.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "reports/analysis/analysis.h"
#include "reports/answer/why.h"
#include "reports/document/report_json.h"
#include "reports/explain/causes.h"
#include "reports/explain/probe.h"
#include "reports/report/page.h"
#include "reports/report/report.h"
#include "tests/reports/support/judged.h"
#include "tests/support/contains.h"

namespace trainyard::reports {

namespace {

using nlohmann::json;

json phases(double own, double wait) {
  return {{"steps", 40},    {"step", 0.1},           {"own", own},     {"wait", wait},
          {"input", 0.001}, {"shortest_wait", wait}, {"between", own}, {"processor", 0.06}};
}

// What the recorder observes of one process with 64 samples per step.
json of_single() {
  const auto step = [](int number) {
    return json{{"step", number},   {"losses", {2.3}}, {"weights", {64}},  {"samples", {64}},
                {"backwards", {1}}, {"kept", {1}},     {"reduction", 1.0}, {"rest", 1e-7}};
  };
  return {{"chain", {step(1), step(2), step(3)}},
          {"epoch_samples", 640},
          {"validation_samples", 100},
          {"batch_norm_samples", 64},
          {"steps", 20},
          {"scheduler_steps", 20},
          {"gradient_bytes", 400000},
          {"cores", 2},
          {"phases", phases(0.09, 0.001)}};
}

// The same with two ranks of 32 samples, whose batch normalisation is synchronised.
json of_two() {
  json observed = of_single();
  for (json& step : observed["chain"]) {
    step["losses"] = {2.28, 2.34};
    for (const char* name : {"weights", "samples"}) step[name] = {32, 32};
    for (const char* name : {"backwards", "kept"}) step[name] = {1, 1};
  }
  observed["random"] = {{"fetch", json::array()}, {"forward", json::array()}};
  observed["overlap"] = 0.0;
  return observed;
}

struct Recorded {
  json terms = json::object();  // further ones
  std::string weights = "3fa9";
  double rate = 0.1;
  std::vector<std::string> orders{"a", "b"};  // by epoch
  double validated = 100;
};

void record(ReportData& data, const std::string& strategy, const std::vector<json>& observed_of_ranks,
            const Recorded& stated = {}) {
  for (const db::RunSummary& run : data.runs) {
    if (run.strategy != strategy) continue;
    db::RunEvidence& evidence = data.evidence[run.run_key];
    evidence = {};
    evidence.run_key = run.run_key;
    evidence.strategy_kind = "foreign";
    evidence.validation_samples = stated.validated;
    for (std::size_t epoch = 0; epoch < stated.orders.size(); ++epoch)
      evidence.batches[static_cast<std::int64_t>(epoch) + 1] = stated.orders[epoch];
    for (std::size_t rank = 0; rank < observed_of_ranks.size(); ++rank) {
      db::RunEvidence::Rank& one = evidence.ranks.emplace_back();
      one.rank = one.replica = static_cast<std::int64_t>(rank);
      one.threads = 1;
      one.start = {{"observed", observed_of_ranks[rank]},
                   {"learning_rate", stated.rate},
                   {"learning_rate_schedule", "constant"},
                   {"epochs", 2},
                   {"initial_weights", {{"0.weight", stated.weights}}}};
      one.start.update(stated.terms);
    }
  }
}

ReportData recorded(const json& arm, const Recorded& stated = {},
                    const json& second = {{"phases", phases(0.09, 0.002)}}) {
  ReportData data = one_model(3);
  record(data, "single", {of_single()});
  record(data, "ddp", {arm, second}, stated);
  return data;
}

Arm explained(const ReportData& data) {
  return make_report(data).comparisons.at(0).cells.at(0).arms.at(0);
}

std::vector<std::string> names(const ReportData& data) {
  std::vector<std::string> found;
  const Arm arm = explained(data);
  for (const Cause& cause : *arm.causes) found.push_back(cause.name);
  return found;
}

using Names = std::vector<std::string>;

json changed_steps(const char* name, const json& value) {
  json observed = of_two();
  for (json& step : observed["chain"]) step[name] = value;
  return observed;
}

json changed(const char* name, const json& value) {
  json observed = of_two();
  observed[name] = value;
  return observed;
}

}  // namespace

TEST_CASE("a healthy pair of recorded scripts has no cause, and neither have trainyard's own arms") {
  CHECK(names(recorded(of_two())).empty());
  CHECK(names(one_model(3)).empty());
}

TEST_CASE("each fault of the result is named by its evidence alone") {
  struct Fault {
    json observed;
    std::string name, evidence;
  };
  json discarded = changed_steps("backwards", {2, 2});
  json compressed = of_two();
  compressed["chain"][2]["rest"] = 0.11;
  for (json& step : compressed["chain"]) step["own"] = 0.5;
  json uncleared = changed_steps("rest", 0.4);
  uncleared["uncleared"] = true;
  const std::vector<Fault> faults{
      {changed("overlap", 1.0), "same-data", "two ranks have 100 % of the samples"},
      {changed("overlap", 0.3), "same-data", "two ranks have 30 % of the samples"},
      {uncleared, "uncleared-gradients", "to those of the step before it"},
      {discarded, "discarded-steps", "2 backward passes for each one"},
      {changed_steps("reduction", 2.0), "summed-gradients", "2 times their mean"},
      {changed_steps("reduction", 0.5), "divided-twice", "0.5 of the mean"},
      {changed_steps("losses", {1.15, 1.14}), "divided-twice", "0.498 of that of single"},
      {changed_steps("samples", {64, 64}), "batch",
       "128 samples per step, single has 64: each rank takes the whole batch"},
      {changed("scheduler_steps", 40), "scheduler-steps", "20 steps per epoch, single has 10"},
      {changed("epoch_samples", 642), "padded-sampler", "642 samples, single has 640"},
      {changed("batch_norm_samples", 32), "batch-norm-samples",
       "from 32 samples per forward pass, single from 64"},
      {changed("random", {{"fetch", {"python"}}, {"forward", json::array()}}), "same-augmentation",
       "(python)"},
      {changed("random", {{"fetch", json::array()}, {"forward", {"torch"}}}), "same-dropout", "same dropout"},
      {changed_steps("rest", 0.002), "lossy-exchange", "by 0.2 %"},
      {changed_steps("losses", {4.5, 4.7}), "multiplied-loss", "2 times that of single"},
      {changed_steps("rest", 0.6), "not-averaged", "60 % off their mean"},
      {changed_steps("rest", 2.4e-4), "lossy-exchange", "rounded to 16 bits"},
      {compressed, "lossy-exchange", "compressed"},
      {changed("eval_steps", 12), "eval-mode", "in 12 steps"},
      {changed("equal_weights", false), "different-weights", "different weights after an epoch"},
      {changed("without_gradient", {"a.bias", "b.bias", "c.bias", "d.bias"}), "other-parameters",
       "a.bias, b.bias, c.bias and 1 more"},
      {changed("train_mode_passes", 4), "train-mode", "in train() mode"},
      {changed("equal_rates", false), "different-rates", "different learning rates"},
      {changed("equal_data", false), "different-data", "before a sampler divides them"},
      {changed("epoch_samples", 320), "fewer-samples", "320 samples, single has 640"}};
  for (const Fault& fault : faults) {
    CAPTURE(fault.name);
    const ReportData data = recorded(fault.observed);
    CHECK(names(data) == Names{fault.name});
    if (names(data).size() == 1) CHECK(contains(explained(data).causes->front().evidence, fault.evidence));
  }
}

TEST_CASE("terms and weights of metrics name the causes that steps do not show") {
  CHECK(names(recorded(of_two(), {.weights = "77c0"})) == Names{"weights"});
  const json clips = {{"clip_norm", 1.0}}, varies = {{"learning_rate_schedule", "varying 3f"}};
  CHECK(names(recorded(of_two(), {.terms = clips})) == Names{"settings"});
  CHECK(names(recorded(of_two(), {.terms = varies})) == Names{"schedule"});
  CHECK(names(recorded(of_two(), {.terms = varies, .rate = 0.2})) == Names{"learning-rate"});
  json clipped_early = changed_steps("rest", 0.6);
  for (json& step : clipped_early["chain"]) step["own"] = 1e-7;
  clipped_early["equal_weights"] = true;
  CHECK(contains(explained(recorded(clipped_early, {.terms = clips})).causes->front().evidence,
                 "clips its own gradient"));
  CHECK(names(recorded(of_two(), {.rate = 0.2})) == Names{"learning-rate"});
  CHECK(names(recorded(changed_steps("samples", {64, 64}), {.rate = 0.2})) == Names{"batch-and-rate"});
  CHECK(names(recorded(of_two(), {.orders = {"a", "a"}})) == Names{"set-epoch"});
  CHECK(names(recorded(of_two(), {.validated = 101})) == Names{"validation-repeated"});
  CHECK(names(recorded(of_two(), {.validated = 50})) == Names{"metric-of-one-rank"});
  CHECK(names(recorded(of_two(), {.validated = 2})) == Names{"mean-of-means"});
}

TEST_CASE("an undivided accumulation and a sum of gradients are two causes, and both are named") {
  json observed = changed_steps("losses", {4.6, 4.6});
  for (json& step : observed["chain"]) step["backwards"] = step["kept"] = {2, 2};
  CHECK(names(recorded(observed)) == Names{"undivided-accumulation"});
  for (json& step : observed["chain"]) step["reduction"] = 2.0;
  CHECK(names(recorded(observed)) == Names{"summed-gradients", "undivided-accumulation"});
}

TEST_CASE("means of unequal parts are named if the loss does not grow with the tokens of a rank") {
  json observed = changed_steps("weights", {40, 20});
  for (json& step : observed["chain"]) step["losses"] = {2.31, 2.29};
  CHECK(names(recorded(observed)) == Names{"uneven-means"});
  for (json& step : observed["chain"]) step["losses"] = {3.07, 1.53};  // the sum over all ranks
  CHECK(names(recorded(observed)).empty());
}

TEST_CASE("a probe says how the gradient of the arm differs, and refuses what it cannot compare") {
  const auto step = [](double distance, double factor, double rest, std::vector<double> shares) {
    return json{{"samples", {32, 16}}, {"distance", distance}, {"factor", factor},        {"rest", rest},
                {"shares", shares},    {"unexplained", 1e-7},  {"parameter", "last.bias"}};
  };
  struct Said {
    json step;
    std::string text;
  };
  std::vector<Said> answers{{step(3e-7, 1, 3e-7, {0.5, 0.5}), "ddp has the gradients of single"},
                            {step(1, 2, 3e-7, {0.5, 0.5}), "the gradient is 2 times that of single"},
                            {step(0.6, 1.05, 0.6, {0.667, 0.333}), "gives them 66.7 % and 33.3 %"},
                            {step(0.4, 0.9, 0.4, {0.5, 0.5}), "40 % of the gradient differs"}};
  json alone = step(0.4, 0.9, 0.4, {0.667, 0.333}), compressed = alone;
  alone["inside"] = {{"rest", 0.3}, {"own", 1e-8}};
  compressed["inside"] = {{"rest", 0.8}, {"own", 0.9}};
  answers.push_back({alone, "is that of rank 0 alone"});
  answers.push_back({compressed, "80 % of the gradient is not the mean of the ranks"});
  const experiments::Probe probe{.baseline = "single", .arm = "ddp", .axes = {}, .folder = "", .samples = 0};
  for (const Said& answer : answers) {
    ReportData data = recorded(of_two());
    CHECK_THROWS_AS(probe_table(data, probe), UserError);
    json observed = of_single();
    observed["probe"] = {answer.step, step(3e-7, 1, 3e-7, {0.5, 0.5}), answer.step};
    record(data, "single", {observed});
    std::erase_if(data.runs,
                  [](const db::RunSummary& run) { return run.strategy == "single" && run.seed > 1; });
    CHECK(contains(probe_table(data, probe).notes.front(), answer.text));
  }
  const ReportData data = one_model(3);
  CHECK_THROWS_AS(probe_of(data, data.runs.front(), data.runs.back(), "/samples"), UserError);
}

TEST_CASE("times: the late rank, slow input, too many threads and a slow link") {
  const auto arm = [](const json& own) { return changed("phases", own); };
  const ReportData late = recorded(arm(phases(0.02, 0.075)), {}, {{"phases", phases(0.095, 0.001)}});
  CHECK(names(late) == Names{"straggler"});
  CHECK(contains(explained(late).causes->front().evidence,
                 "rank 1 works 95 ms per step, rank 0 works 20 ms and waits 74 ms longer; rank 1 loses the "
                 "time in code"));

  json slow = phases(0.09, 0.001);
  slow["input"] = 0.03;
  CHECK(names(recorded(arm(slow), {}, {{"phases", slow}})) == Names{"input"});

  const json link = phases(0.06, 0.03);
  const ReportData linked = recorded(arm(link), {}, {{"phases", link}});
  CHECK(names(linked) == Names{"slow-exchange"});
  CHECK(contains(explained(linked).causes->front().evidence,
                 "30 ms per step to exchange 0.4 MB of gradients: 13 MB per second"));

  json repeated = changed_steps("kept", {2, 2});
  for (json& step : repeated["chain"]) step["exchanges"] = step["backwards"] = {2, 2};
  CHECK(names(recorded(repeated)) == Names{"repeated-exchange"});

  ReportData spinning = recorded(arm(phases(0.09, 0.001)));
  for (auto& [key, evidence] : spinning.evidence)
    for (db::RunEvidence::Rank& rank : evidence.ranks)
      if (evidence.ranks.size() == 2) rank.threads = 4;
  CHECK(names(spinning) == Names{"threads"});
}

TEST_CASE("a cause must hold in most pairs, and says in how many") {
  ReportData data = recorded(changed("overlap", 1.0));
  const auto heal = [&](int seed) {
    data.evidence.at(run_of(data, "mlp", "ddp", seed).run_key).ranks.front().start["observed"] = of_two();
  };
  heal(1);
  REQUIRE(names(data) == Names{"same-data"});
  CHECK(contains(explained(data).causes->front().evidence, "(in 2 of 3 pairs)"));
  heal(2);
  CHECK(names(data).empty());
}

TEST_CASE("runs that failed by their records have causes, too") {
  ReportData data = recorded(changed("overlap", 1.0));
  for (int seed = 0; seed < 3; ++seed) set_status(data, "mlp", "ddp", seed, "failed");
  CHECK(names(data) == Names{"same-data"});
}

TEST_CASE("records of strangers with wrong types name no cause") {
  json odd = of_two();
  odd["chain"] = {1, "x", {{"step", "one"}, {"losses", {1}}, {"kept", "all"}, {"reduction", nullptr}}};
  odd["random"] = {{"fetch", 3}, {"forward", {1, 2}}};
  odd["phases"] = json::array({1, 2});
  odd["overlap"] = "all";
  CHECK(names(recorded(odd)).empty());
  CHECK(names(recorded(json::array({1}))).empty());
}

TEST_CASE("every output names the cause, and says what is not explained") {
  ReportData data = recorded(changed_steps("reduction", 2.0));
  set_final(data, "mlp", "ddp", "validation_accuracy", [](int seed) { return 0.5 + 0.001 * seed; });
  const std::string text = why_text(make_report(data).comparisons, 0);
  CHECK(contains(text, "ddp against single"));
  CHECK(contains(text,
                 "- summed-gradients: the gradients of the 2 ranks are added, not averaged: 2 times their "
                 "mean. Try: divide"));
  CHECK(contains(text, "validation accuracy: DETERIORATES"));
  const Content content = compose(data);
  for (const std::string& output : {markdown_report(content, {}), terminal_table(content), page_html(content),
                                    report_json(*content.report)})
    CHECK(contains(output, "2 times their mean"));

  ReportData open = one_model(3);
  set_final(open, "mlp", "ddp", "validation_accuracy", [](int seed) { return 0.5 + 0.001 * seed; });
  CHECK(contains(why_text(make_report(open).comparisons, 0),
                 "not explained: the records show no cause of the result"));
}

TEST_CASE("nothing is called unexplained that was not looked for") {
  ReportData data = one_model(5);      // ddp is faster
  const auto text_of_compared = [&] {  // as `trainyard compare`, which reads no parts of epochs
    return why_text(make_report(data, {{data.plan.compare.front(), judged(data)}}).comparisons, 0);
  };
  CHECK(text_of_compared() == "");
  set_final(data, "mlp", "ddp", "validation_accuracy", [](int seed) { return 0.5 + 0.001 * seed; });
  CHECK(contains(text_of_compared(), "the records show no cause of the result"));
  data.of_file = true;  // nothing is known about its runs
  CHECK(text_of_compared() == "");
}

TEST_CASE("the changes of the parts of an epoch add up to the change of its time") {
  ReportData data = one_model(3);
  data.times.clear();
  for (const db::RunSummary& run : data.runs) {
    const double noise = 0.01 * static_cast<double>(run.seed);
    data.times.push_back(
        {run.run_key, run.strategy == "single"
                          ? std::map<std::string, double>{{"forward", 4 + noise}, {"backward", 6}}
                          : std::map<std::string, double>{
                                {"forward", 2 + noise}, {"backward", 3}, {"exposed_communication", 6}}});
  }
  const std::vector<PartChange> parts = *explained(data).part_changes;
  REQUIRE(parts.size() == 3);
  CHECK(parts.front().part == "exposed_communication");
  double sum = 0;
  for (const PartChange& part : parts) sum += part.change;
  CHECK(sum == doctest::Approx(0.1).epsilon(0.02));  // 11 s against 10 s
  CHECK(parts.front().n == 3);
  CHECK(parts.front().ci95->low < parts.front().change);
}

}  // namespace trainyard::reports
