// The table of all runs; the script sorts and filters it, without it the order is that of the plan.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "reports/format/number_text.h"
#include "reports/report/page.h"

namespace trainyard::reports {

namespace {

struct Column {
  const char* title;
  bool number;
};
constexpr const char* task_column = "Task metric";  // left out where no run has one
constexpr const char* energy_column = "J/epoch";    // likewise
constexpr const char* memory_column = "Peak GiB";   // likewise
constexpr const char* seed_column = "Seed";         // the axes that vary follow it
constexpr std::array<Column, 15> run_columns{{{"Run", false},
                                              {"Model", false},
                                              {"Strategy", false},
                                              {seed_column, true},
                                              {"Epochs", true},
                                              {"Val. acc. %", true},
                                              {"Val. loss", true},
                                              {"Test acc. %", true},
                                              {task_column, false},
                                              {"s/epoch", true},
                                              {energy_column, true},
                                              {memory_column, true},
                                              {"Wall s", true},
                                              {"Status", false},
                                              {"Remarks", false}}};

void add_number(Markup& out, double value, const std::string& text) {
  out.leaf("td", {{"class", "n"}, {"data-value", std::isfinite(value) ? plain_number(value, 9) : ""}}, text);
}

std::string percent(double fraction) {
  return fixed(100 * fraction, 2);
}

// "BLEU 21.3, perplexity 12.41", "PSNR 18.22 dB": of the test set.
std::string of_the_task(const db::FinalMetrics& final) {
  if (std::isfinite(final.test_psnr)) return "PSNR " + fixed(final.test_psnr, 2) + " dB";
  std::string text;
  if (std::isfinite(final.test_bleu)) text = "BLEU " + fixed(final.test_bleu, 2);
  if (std::isfinite(final.test_perplexity))
    text += (text.empty() ? "perplexity " : ", perplexity ") + for_table(final.test_perplexity);
  return text;
}

// Columns that only some experiments have something in.
struct Measured {
  bool task = false, energy = false, memory = false;

  explicit Measured(const std::vector<db::FinalMetrics>& finals) {
    for (const db::FinalMetrics& final : finals) {
      task |= !of_the_task(final).empty();
      energy |= std::isfinite(final.epoch_energy_joules);
      memory |= std::isfinite(final.peak_device_bytes);
    }
  }
  bool shows(const Column& column) const {
    if (column.title == task_column) return task;
    if (column.title == energy_column) return energy;
    return column.title != memory_column || memory;
  }
};

std::string remarks(const db::RunSummary& run, const db::FinalMetrics* final) {
  std::string text;
  if (final != nullptr && !final->times_count) text += std::string(text.empty() ? "" : ", ") + "times marked";
  if (run.attempts > 1) text += (text.empty() ? "" : ", ") + std::to_string(run.attempts) + " attempts";
  if (!run.failure.empty() && run.status != "finished") text += (text.empty() ? "" : ", ") + run.failure;
  return text;
}

bool has_numbers(const ReportData& data, const std::string& axis) {
  return std::ranges::all_of(data.runs, [&](const db::RunSummary& run) {
    const auto value = run.axes.find(axis);
    return value == run.axes.end() || std::holds_alternative<std::int64_t>(value->second) ||
           std::holds_alternative<double>(value->second);
  });
}

void add_axis(Markup& out, const db::RunSummary& run, const std::string& name) {
  const auto value = run.axes.find(name);
  const std::string text = value_of(run, name);
  if (value == run.axes.end())
    out.leaf("td", {}, text);
  else if (const auto* integer = std::get_if<std::int64_t>(&value->second))
    add_number(out, static_cast<double>(*integer), text);
  else if (const auto* number = std::get_if<double>(&value->second))
    add_number(out, *number, text);
  else
    out.leaf("td", {}, text);
}

void add_row(Markup& out, const db::RunSummary& run, const db::FinalMetrics* final,
             const std::vector<std::string>& axes, const Measured& measured) {
  const double nan = std::nan("");
  const auto value = [&](double db::FinalMetrics::*member) {
    return final == nullptr ? nan : final->*member;
  };
  out.open("tr", {{"class", run.status == "failed" ? "failed" : "run"}});
  out.leaf("td", {{"class", "name"}}, run.run_key).leaf("td", {}, title_of(run)).leaf("td", {}, run.strategy);
  add_number(out, static_cast<double>(run.seed), std::to_string(run.seed));
  for (const std::string& axis : axes) add_axis(out, run, axis);
  add_number(out, static_cast<double>(run.epochs_done),
             std::to_string(run.epochs_done) +
                 (run.epochs_done == run.epochs ? "" : "/" + std::to_string(run.epochs)));
  const double accuracy = value(&db::FinalMetrics::validation_accuracy);
  const double loss = value(&db::FinalMetrics::validation_loss);
  const double tested = value(&db::FinalMetrics::test_accuracy);
  const double seconds = value(&db::FinalMetrics::epoch_train_seconds);
  add_number(out, accuracy, percent(accuracy));
  add_number(out, loss, for_table(loss));
  add_number(out, tested, percent(tested));
  if (measured.task) out.leaf("td", {}, final == nullptr ? "" : of_the_task(*final));
  add_number(out, seconds, for_table(seconds));
  const double joules = value(&db::FinalMetrics::epoch_energy_joules);
  if (measured.energy) add_number(out, joules, for_table(joules));
  const double gibibytes = value(&db::FinalMetrics::peak_device_bytes) * 0x1p-30;
  if (measured.memory) add_number(out, gibibytes, for_table(gibibytes));
  add_number(out, run.total_seconds, for_table(run.total_seconds));
  out.leaf("td", {}, run.status).leaf("td", {{"class", "why"}}, remarks(run, final)).close().line();
}

}  // namespace

Markup page_runs(const Content& content) {
  std::map<std::string, const db::FinalMetrics*> finals;
  for (const db::FinalMetrics& final : content.data->finals) finals[final.run_key] = &final;
  const Measured measured(content.data->finals);
  Markup out;
  out.open("section", {{"id", "all-runs"}}).leaf("h2", {}, "All runs");
  out.open("span", {{"class", "js"}});
  out.leaf("label", {{"class", "sr"}, {"for", "filter"}}, "Filter the runs");
  out.empty("input", {{"id", "filter"}, {"type", "search"}, {"placeholder", "Filter by any text"}});
  out.text(" ").leaf("span", {{"id", "filtered"}, {"aria-live", "polite"}}, "").close();
  out.open("div", {{"class", "scroll"}}).open("table", {{"class", "runs"}, {"id", "runs"}});
  out.leaf("caption", {{"class", "sr"}}, "All runs; the buttons of the columns sort");
  out.open("thead").open("tr");
  std::vector<std::string> axes = varying_axes(*content.data);
  std::erase(axes, "epochs");  // has a column
  const auto add_head = [&](const std::string& title, bool number) {
    out.open("th", {{"scope", "col"}, {"class", number ? "n" : "t"}});
    out.leaf("button", {{"type", "button"}}, title).close();
  };
  for (const Column& column : run_columns) {
    if (measured.shows(column)) add_head(column.title, column.number);
    if (column.title != seed_column) continue;
    for (const std::string& axis : axes) add_head(axis, has_numbers(*content.data, axis));
  }
  out.close().close().open("tbody").line();
  for (const db::RunSummary& run : content.data->runs) {
    const auto final = finals.find(run.run_key);
    add_row(out, run, final == finals.end() ? nullptr : final->second, axes, measured);
  }
  out.close().close().close().close();
  return out;
}

}  // namespace trainyard::reports
