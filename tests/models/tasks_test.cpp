#include "models/tasks.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "base/error.h"
#include "models/metrics.h"

namespace trainyard::models {
namespace {

TEST_CASE("each task says what a network reads and gives") {
  CHECK(reads_text(find_task("classification")) ==
        "floating-point images [batch, channels, height, width], or int64 tokens [batch, length]");
  CHECK(gives_text(find_task("classification")) == "logits [batch, classes]");
  CHECK(reads_text(find_task("regression")) == "floating-point values [batch, columns]");
  CHECK(gives_text(find_task("regression")) == "values [batch, 1]");
  CHECK(gives_text(find_task("reconstruction")) == "images of the shape that it reads");
  CHECK(gives_text(find_task("translation")) == "logits [batch, steps, vocabulary]");
  CHECK(target_name(find_task("language-model").target) == "next token");
  CHECK(output_sizes(find_task("reconstruction")).empty());
  CHECK_THROWS_AS(find_task("own-loss"), UserError);
}

TEST_CASE("only classification has a chance level, and a task of another program none") {
  for (const std::string& name : task_names()) CHECK(has_chance_level(name) == (name == "classification"));
  CHECK_FALSE(has_chance_level("own-loss"));
  CHECK_FALSE(has_chance_level(""));
}

TEST_CASE("metrics are those of tasks that exist, every task has the loss, and records are named once") {
  std::vector<std::string> known = task_names();
  known.emplace_back(own_loss_task);
  for (const Metric& metric : all_metrics)
    for (const std::string_view task : metric.tasks)
      CHECK((task.empty() || std::ranges::find(known, task) != known.end()));
  for (const std::string& task : known) {
    std::vector<std::string> records = records_of(task);
    CHECK(std::ranges::count(records, "loss") == 1);
    std::ranges::sort(records);
    CHECK(std::ranges::adjacent_find(records) == records.end());
  }
  CHECK(records_of("translation") ==
        std::vector<std::string>{"loss", "correct", "bleu_1", "bleu_2", "bleu_3", "bleu_4", "bleu_length"});
}

TEST_CASE("fractions are shown in percent and bounded, and costs have the margin of times") {
  CHECK(metric_kinds::accuracy.suffix() == " %");
  CHECK(metric_kinds::accuracy.is_fraction());
  CHECK(metric_kinds::bleu.is_bounded());
  CHECK_FALSE(metric_kinds::bleu.is_fraction());
  CHECK_FALSE(metric_kinds::psnr.is_bounded());
  for (const Cost& cost : all_costs) CHECK(cost.kind->is_cost());
  for (const Metric& metric : all_metrics) CHECK_FALSE(metric.kind->is_cost());
}

}  // namespace
}  // namespace trainyard::models
