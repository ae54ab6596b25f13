#include "reports/results/runs_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/named_row.h"
#include "base/number.h"
#include "base/text.h"
#include "models/readers/csv_file.h"
#include "models/readers/data_file.h"
#include "reports/results/cells.h"

namespace trainyard::reports {

namespace {

namespace kinds = models::metric_kinds;
using models::CsvTable;
using Columns = std::vector<std::size_t>;

constexpr const char* one_row = "keep one row per run, for example its last epoch";

// Numbers of any unit, compared by differences.
constexpr MetricKind score{.name = "score",
                           .higher_is_better = true,
                           .margin = Margin::points,
                           .least = -std::numeric_limits<double>::infinity()};

struct FileKind {
  std::string_view name;
  MetricKind kind;
  std::string_view words;  // in the names of its metrics, each between spaces
};
constexpr std::array file_kinds{
    FileKind{"loss", kinds::loss, " loss nll mse rmse mae perplexity ppl error err wer cer "},
    FileKind{"accuracy", kinds::accuracy, " accuracy acc top1 top5 f1 auc auroc precision recall "},
    FileKind{"score", score, " score bleu reward return "},
    FileKind{"time", kinds::time,
             " time times s sec secs second seconds ms minutes hours duration runtime elapsed latency wall "
             "wallclock speed throughput fps "}};

// The kinds that the words of a name say. All characters but letters and digits are between words.
std::set<const FileKind*> kinds_in(std::string name) {
  for (char& character : name) {
    const auto byte = static_cast<unsigned char>(character);
    character = std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : ' ';
  }
  std::istringstream words(name);
  std::set<const FileKind*> found;
  for (std::string word; words >> word;)
    for (const FileKind& kind : file_kinds)
      if (kind.words.find(" " + word + " ") != std::string_view::npos) found.insert(&kind);
  return found;
}

CsvTable table_in(const std::filesystem::path& file) {
  constexpr const char* advice = "correct the file, and save it in UTF-8";
  if (file != "-") return models::parse_csv(file, models::read_text_file(file, advice), true);
  std::string text(models::most_text + 1, '\0');
  std::cin.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::cin.gcount()));
  if (text.size() > models::most_text || !is_utf8(text))
    throw UserError(fmt::format("standard input is not UTF-8, or has more than {} bytes", models::most_text),
                    advice);
  return models::parse_csv("standard input", text, true);
}

class RunsReader {
 public:
  explicit RunsReader(const RunsFile& options) : options_(options), table_(table_in(options.file)) {
    constexpr std::size_t most_runs = 20'000;  // the partner of a run is searched in a list
    if (table_.rows() > most_runs)
      refuse(0, fmt::format("the file has {} rows, and the limit is {}", table_.rows(), most_runs), one_row);
    take("--arm", {options.arm}, keys_);
    take("--pair", options.pair, keys_);
    take("--by", options.by, keys_);
    take("--metric", options.metrics, columns_);
    if (std::ranges::find(options.by, "seed") != options.by.end())
      refuse(0, "--by seed: seeds are repetitions and make no cells", "use --pair seed");
    for (const std::string& name : options.metrics) {
      metrics_.push_back(metric_named(name));
      most_.push_back(value_for(name, "--unit", options.units).empty() ? 1 : 100);
    }
    set_metrics(metrics_);
  }

  ReportData data() {
    db::PlanEntry& plan = data_.history.emplace_back();
    for (std::size_t row = 0; row < table_.rows(); ++row) plan.keys.push_back(add_run(row));
    check_arms();
    experiments::Compare& compare = plan.compare.emplace_back();
    compare.axis = options_.arm;
    compare.baseline = options_.baseline;
    compare.pair = options_.pair;
    data_.plan.compare = plan.compare;
    data_.plan.varied = options_.by;
    data_.experiment = table_.file.string();
    data_.of_file = true;
    return std::move(data_);
  }

 private:
  [[noreturn]] void refuse(std::int64_t line, const std::string& message, const std::string& advice) const {
    throw models::csv_error(table_.file, line, message, advice);
  }

  void take(const std::string& option, const std::vector<std::string>& names, Columns& columns) {
    for (const std::string& name : names) {
      columns.push_back(models::column_of(table_, name));
      if (!used_.insert(columns.back()).second)
        refuse(0, fmt::format("{} {}: the options name this column twice", option, name), "name it once");
    }
  }

  // The value of an option for a metric, or an empty text.
  std::string value_for(const std::string& metric, const std::string& option,
                        const std::vector<std::string>& texts) const {
    std::string for_all, own;
    for (const std::string& text : texts) {
      const std::size_t equals = text.rfind('=');
      const std::string name = text.substr(0, equals);
      if (equals == std::string::npos)
        for_all = text;
      else if (name == metric)
        own = text.substr(equals + 1);
      else if (std::ranges::find(options_.metrics, name) == options_.metrics.end())
        refuse(0, fmt::format("{} {}: there is no such --metric", option, text),
               name_advice(name, options_.metrics));
    }
    return own.empty() ? for_all : own;
  }

  Metric metric_named(const std::string& name) const {
    const std::string asked = value_for(name, "--kind", options_.kinds);
    const std::set<const FileKind*> guessed = kinds_in(name);
    if (asked.empty() && guessed.size() != 1)
      refuse(0, fmt::format("the name of metric \"{}\" does not say one kind", name),
             fmt::format("add --kind \"{}=KIND\" with loss, accuracy, score or time", name));
    const FileKind& row =
        asked.empty() ? **guessed.begin() : named_row(file_kinds, &FileKind::name, "--kind", asked);
    const std::string better = value_for(name, "--better", options_.better);
    if (!better.empty() && better != "lower" && better != "higher")
      refuse(0, "--better: \"" + better + "\" is not a direction", "choose lower or higher");
    const std::string unit = value_for(name, "--unit", options_.units);
    if (!unit.empty() && (unit != "%" || row.name != "accuracy"))
      refuse(0, fmt::format("--unit: {} \"{}\" is not in \"{}\"", row.name, name, unit),
             "only accuracies can be in %");
    const std::string margin = value_for(name, "--margin", options_.margins);
    Metric metric;
    metric.name = metric.title = metric.column = metric.epoch_column = name;
    metric.kind = &row.kind;
    metric.rarely_measured = true;  // only its numbers say which runs have it
    metric.own_place = metrics_.size();
    const bool higher = better.empty() ? row.kind.higher_is_better : better == "higher";
    metric.reversed = higher != row.kind.higher_is_better;
    metric.about = std::string(row.name) + (asked.empty() ? " by its name" : "");
    if (!row.kind.is_cost()) metric.about += higher ? ", higher is better" : ", lower is better";
    if (!margin.empty() || row.name == "score") metric.margin = parse_number<double>(margin).value_or(0);
    if (metric.margin && !(*metric.margin > 0 && std::isfinite(*metric.margin)))
      refuse(0, fmt::format("{} \"{}\" needs a margin above 0, not \"{}\"", row.name, name, margin),
             fmt::format("write --margin \"{}=NUMBER\" in the unit of the effect", name));
    return metric;
  }

  // Returns its key.
  std::string add_run(std::size_t row) {
    db::RunSummary& run = data_.runs.emplace_back();
    db::FinalMetrics& final = data_.finals.emplace_back();
    run.run_key = final.run_key = fmt::format("line {}", table_.lines[row]);
    run.status = "finished";
    std::vector<std::string> place;
    for (const std::size_t column : keys_) {
      place.emplace_back(models::cell_text(table_, row, column));
      run.axes[table_.names[column]] = place.back();
    }
    run.model_title = value_of(run, "model");
    const auto [first, added] = rows_.try_emplace(place, row);
    if (!added && !options_.pair.empty()) refuse_same(first->second, row);
    final.epochs = 3;  // of fewer, a note would say that times include the warm-up
    for (std::size_t i = 0; i < metrics_.size(); ++i) {
      const double number = final[final_column(metrics_[i])] = number_of(row, i);
      if (!std::isinf(number) || metrics_[i].kind->is_cost()) continue;
      if (metrics_[i].kind->name != kinds::loss.name)
        refuse(table_.lines[row], fmt::format("column \"{}\" has an infinite number", metrics_[i].name),
               "leave the cell empty; only an infinite loss has a meaning: the run has diverged");
      final["train_loss"] = number;
    }
    return run.run_key;
  }

  // NaN if the run has none.
  double number_of(std::size_t row, std::size_t metric) const {
    const std::string_view text = trimmed(table_.cell(row, columns_[metric]));
    const std::string& name = metrics_[metric].name;
    const auto number = text.empty() ? std::nan("") : parse_number<double>(text);
    if (!number)
      refuse(table_.lines[row],
             fmt::format("column \"{}\" has \"{}\", which is not a number", name, shortened(text, 40)),
             "write a number, or nothing if the run has none");
    const int most = most_.at(metric);
    if (metrics_[metric].kind->is_bounded() && (*number < 0 || *number > most))
      refuse(table_.lines[row],
             fmt::format("accuracy \"{}\" is {}, and not between 0 and {}", name, text, most),
             most == 100 ? "correct it" : "add --unit \"" + name + "=%\" if it is in percent");
    return *number / most;
  }

  [[noreturn]] void refuse_same(std::size_t first, std::size_t row) const {
    const std::string same = joined(keys_, [&](std::size_t column) { return table_.names[column]; });
    std::string advice = one_row;
    for (std::size_t column = table_.names.size(); column-- > 0;)
      if (!used_.contains(column) && !table_.names[column].empty() &&
          table_.cell(first, column) != table_.cell(row, column))
        advice = fmt::format("\"{0}\" differs: {1}, or add --by \"{0}\"", table_.names[column], one_row);
    refuse(table_.lines[row], fmt::format("the row has the same {} as line {}", same, table_.lines[first]),
           advice);
  }

  void check_arms() const {
    std::set<std::string> arms;
    for (const db::RunSummary& run : data_.runs) arms.insert(value_of(run, options_.arm));
    if (!arms.contains(options_.baseline))
      refuse(0, fmt::format("--baseline: no row has {} \"{}\"", options_.arm, options_.baseline),
             name_advice(options_.baseline, std::vector(arms.begin(), arms.end())));
    if (arms.size() == 1)
      refuse(0, fmt::format("all rows have {} \"{}\"", options_.arm, options_.baseline), "add another arm");
  }

  const RunsFile& options_;
  const CsvTable table_;
  std::set<std::size_t> used_;                            // columns that options name
  Columns keys_, columns_;                                // of arm, pair and cells; of the metrics
  std::map<std::vector<std::string>, std::size_t> rows_;  // by the cells of `keys_`
  std::vector<Metric> metrics_;
  std::vector<int> most_;  // the largest accuracy of each metric: 1, or 100 in percent
  ReportData data_;
};

}  // namespace

ReportData read_runs(const RunsFile& options) {
  return RunsReader(options).data();
}

}  // namespace trainyard::reports
