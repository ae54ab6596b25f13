#include "reports/answer/answer.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "reports/answer/verdict_text.h"
#include "reports/format/words.h"

namespace trainyard::reports {

namespace {

// "2 threads", "learning rate 0.1", "ddp": a value of the compared axis.
std::string value_text(const experiments::Compare& compare, const std::string& value) {
  static const std::set<std::string> counts{"threads",       "epochs",  "replicas", "stages",
                                            "micro_batches", "servers", "tensor"};
  const std::string& axis = compare.axis;
  if (axis == "strategy" || axis == "model" || axis == "group") return value;
  if (!counts.contains(axis)) return with_spaces(axis) + " " + value;
  std::string noun = with_spaces(axis);
  if (value == "1") noun = axis == "micro_batches" ? "micro-batch" : noun.substr(0, noun.size() - 1);
  return value + " " + noun;
}

bool has_verdict(const Cell& cell) {
  return !cell.verdicts.empty();
}

// Names of the cells in a sentence: "MLP, batch 64"; empty if models are compared and nothing else varies.
std::vector<std::string> cell_names(const Comparison& comparison) {
  constexpr std::string_view all_models = "all models";
  std::vector<std::string> names;
  for (const Cell& cell : comparison.cells) {
    std::string label = cell.label;
    if (cell.model.empty() && label.starts_with(all_models))
      label.erase(0, all_models.size() + (label.size() > all_models.size() ? 2 : 0));  // with ", "
    names.push_back(std::move(label));
  }
  return names;
}

// "3 seeds", "3 – 5 seeds"; without a noun "3 – 5"; empty without values.
std::string counted_range(const std::set<std::int64_t>& values, const std::string& noun) {
  if (values.empty()) return "";
  const std::string range = values.size() == 1 ? "" : std::to_string(*values.begin()) + " – ";
  return range + (noun.empty() ? std::to_string(*values.rbegin()) : counted(*values.rbegin(), noun));
}

}  // namespace

std::vector<std::string> arms_of(const Comparison& comparison) {
  std::vector<std::string> arms;
  for (const Cell& cell : comparison.cells)
    for (const Arm& arm : cell.arms) add_new(arms, arm.value);
  return arms;
}

std::string with_label(const std::string& label, const std::string& text) {
  return text.empty() ? "" : label + text;
}

std::string heading(const Comparison& comparison, const std::string& what) {
  std::string text = what + " against " + baseline_text(comparison.compare);
  if (comparison.experiment.empty()) return text;
  return comparison.experiment + ": " + lower_first(text);
}

std::string no_verdicts_text(const Comparison& comparison) {
  return fmt::format("{}: there is no arm of {}.", heading(comparison, "No verdicts"),
                     comparison.compare.axis);
}

std::string subtitle(const Comparison& comparison) {
  const experiments::Compare& compare = comparison.compare;
  const std::vector<std::string> arms = arms_of(comparison);
  std::vector<std::string> names = cell_names(comparison), judged;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (has_verdict(comparison.cells[i])) judged.push_back(names[i]);
  const std::string on = some_of(judged.empty() ? names : judged);
  const std::string what =
      arms.empty() ? "compared with " + compare.baseline : some_of(arms) + " against " + compare.baseline;
  const std::string axis = compare.axis == "group" ? "the choice of runs" : with_spaces(compare.axis);
  return fmt::format("Effect of {} ({}){}", axis, what, with_label(" on ", on));
}

namespace {

std::string value_in(const std::vector<std::pair<std::string, std::string>>& provenance, const char* name) {
  const auto found = std::ranges::find(provenance, name, &std::pair<std::string, std::string>::first);
  return found == provenance.end() ? "" : found->second;
}

std::string comma(std::vector<std::string> texts) {
  std::erase(texts, "");
  return joined(texts);
}

// "5 seeds per arm, 3 epochs".
std::string sizes_text(const Report& report) {
  std::map<std::string, std::int64_t> epochs_of_run;
  std::set<std::string> trained;
  for (const RunRow& run : report.runs) {
    epochs_of_run[run.key] = run.epochs;
    if (run.has_result) trained.insert(run.key);
  }
  std::set<std::int64_t> seeds;
  std::set<std::int64_t> epochs;
  bool paired = true;
  for (const Comparison& comparison : report.comparisons) {
    paired = paired && comparison.compare.pair == std::vector<std::string>{"seed"};
    const auto counts = [&](const ArmRun& run) {  // seeds of a range may not be needed
      return !comparison.compare.seeds || trained.contains(run.key);
    };
    for (const Cell& cell : comparison.cells)
      for (const Arm* arm : cell.compared()) {
        if (!arm->runs.empty()) seeds.insert(std::ranges::count_if(arm->runs, counts));
        for (const ArmRun& run : arm->runs) epochs.insert(epochs_of_run[run.key]);
      }
  }
  const std::string runs = counted_range(seeds, paired ? "seed" : "run");
  return comma({runs.empty() ? "no runs" : runs + " per arm", counted_range(epochs, "epoch")});
}

std::string device_text(const std::string& device) {
  return device == "cpu" ? "the CPU" : device == "cuda" ? "GPUs (CUDA)" : device;
}

// "Trained on the CPU", "Trained on GPUs (CUDA)", "single on the CPU, ddp on GPUs (CUDA)".
std::string trained_on(const Report& report) {
  if (report.devices.empty()) return report.has_records ? "CPU or GPU: not recorded" : "";
  if (report.devices.size() == 1) return "Trained on " + device_text(report.devices.front().device);
  return joined(report.devices, [](const DeviceUse& use) {
    return fmt::format("{} on {}", all_of(use.strategies), device_text(use.device));
  });
}

std::string sentences(std::vector<std::string> texts) {
  std::erase(texts, "");
  return joined(
      texts, [](const std::string& text) { return text + "."; }, " ");
}

constexpr std::size_t most_items = 6;  // of one list
constexpr std::size_t most_reasons = 3;

// The published metrics, costs first.
std::vector<const Metric*> answered() {
  const auto published = published_metrics();
  std::vector<const Metric*> ordered(published.begin(), published.end());
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const Metric* metric) { return metric->kind->is_cost(); });
  return ordered;
}

// "training time", "accuracy".
std::string name_of(const Metric& metric) {
  return (metric.kind->is_cost() ? "training " : "") + metric.quantity;
}

// One verdict with its cell and arm. The arm is empty if the comparison has one, and the cell if models are compared.
struct Item {
  std::string metric;  // "training time of ", or empty
  std::string cell;
  std::string arm;
  std::string effect;  // " (−22.9 %)", or empty
  const Verdict* verdict = nullptr;
};

// "VGG11 and CNN with ddp, all models with mp-ddp": equal metrics, models and arms once. `all_cells`: the number of
// items that are called "all models"; 0: each is named.
std::string grouped(const std::vector<Item>& items, std::size_t all_cells = 0) {
  std::vector<std::pair<std::pair<std::string, std::string>, std::vector<std::string>>> models_by_arm;
  for (const Item& item : items) {
    const bool named = !item.cell.empty();
    value_of_key(models_by_arm, std::pair(item.metric, item.arm))
        .push_back(named ? item.cell + item.effect : item.arm + item.effect);
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> arms_by_models;
  for (const auto& [key, models] : models_by_arm) {
    const bool all = all_cells > 2 && models.size() == all_cells;
    value_of_key(arms_by_models, key.first + (all ? "all models" : some_of(models, most_items)))
        .push_back(key.second);
  }
  const bool named =
      std::ranges::any_of(items, [](const Item& item) { return !item.cell.empty() && !item.arm.empty(); });
  std::vector<std::string> texts;
  std::ranges::transform(arms_by_models, std::back_inserter(texts), [&](const auto& one) {
    return one.first + (named ? " with " + some_of(one.second, most_items) : "");
  });
  return some_of(texts, most_items);
}

// If only one of several cells has verdicts, its name is only in the subtitle.
std::vector<Item> items_on(const Comparison& comparison, const std::string& metric) {
  const bool several = arms_of(comparison).size() > 1;
  std::vector<std::string> labels = cell_names(comparison);
  if (several && labels.size() > 1 && std::ranges::count_if(comparison.cells, has_verdict) == 1)
    labels.assign(labels.size(), "");
  std::vector<Item> items;
  for (std::size_t i = 0; i < comparison.cells.size(); ++i)
    for (const Verdict& verdict : comparison.cells[i].verdicts) {
      if (verdict.metric != metric) continue;
      const std::string arm = several || labels[i].empty() ? value_text(comparison.compare, verdict.arm) : "";
      items.push_back({"", labels[i], arm, "", &verdict});
    }
  return items;
}

// "MLP (−22.9 %) and CNN (−40.3 %)": the items with this kind of verdict.
std::string listed(std::vector<Item> items, VerdictKind kind) {
  std::erase_if(items, [&](const Item& item) { return item.verdict->kind != kind; });
  for (Item& item : items) {
    const bool diverged = item.verdict->reason.kind == ReasonKind::diverged;
    const std::string effect = diverged ? "diverged" : effect_text(*item.verdict);
    if (kind != VerdictKind::no_change) item.effect = " (" + effect + ")";
  }
  return grouped(items);
}

// "Training time improves for MLP (−22.9 %) and does not change for CNN."; empty without a decision.
std::string decided_sentence(const Comparison& comparison, const std::string& metric,
                             const std::string& name) {
  const std::vector<Item> items = items_on(comparison, metric);
  std::vector<std::string> clauses;
  for (const auto& [verdict, verb] :
       {std::pair(VerdictKind::improves, "improves"), std::pair(VerdictKind::no_change, "does not change"),
        std::pair(VerdictKind::deteriorates, "deteriorates")})
    if (const std::string names = listed(items, verdict); !names.empty())
      clauses.push_back(fmt::format("{} for {}", verb, names));
  return clauses.empty() ? "" : fmt::format("{} {}.", upper_first(name), all_of(clauses));
}

// Without a decided training time, the processor time, which other processes disturb less.
std::string time_sentence(const Comparison& comparison) {
  const Metric& metric = *answered().front();
  std::string time = decided_sentence(comparison, metric.name, name_of(metric));
  if (!time.empty()) return time;
  const std::string processor =
      decided_sentence(comparison, "train-processor-seconds", "processor time of the busiest rank");
  return processor.empty() ? "" : "No training time is decided. " + processor;
}

// "Other metrics that deteriorate: test accuracy of CNN (−3.00 pp)." Only their number, if it is large.
std::string worse_elsewhere(const Comparison& comparison) {
  std::vector<std::string> names;
  std::size_t worse = 0;
  for (const Metric& metric : metrics()) {
    if (metric.published) continue;
    const std::vector<Item> items = items_on(comparison, metric.name);
    const std::string texts = listed(items, VerdictKind::deteriorates);
    if (!texts.empty()) names.push_back(lower_first(metric.title) + " of " + texts);
    worse += static_cast<std::size_t>(std::ranges::count_if(
        items, [](const Item& item) { return item.verdict->kind == VerdictKind::deteriorates; }));
  }
  if (worse > most_items)
    return fmt::format("{} verdicts on other metrics deteriorate, see the table.", worse);
  return names.empty() ? "" : fmt::format("Other metrics that deteriorate: {}.", joined(names, {}, "; "));
}

// Verdicts of the table that are not decided for one kind of reason.
struct Undecided {
  std::set<std::string> texts;  // of the reasons
  std::vector<Item> items;
  std::set<int> seeds;           // that are needed, if this is known
  std::optional<Interval> load;  // of other processes
};

std::string why(ReasonKind kind, const Undecided& undecided) {
  if (kind == ReasonKind::few_seeds)
    return "more seeds are needed, about " +
           counted_range({undecided.seeds.begin(), undecided.seeds.end()}, "") + " per arm";
  if (kind == ReasonKind::narrow_margin) {
    const auto least = undecided.seeds.begin();  // the smallest
    return least_seeds(least == undecided.seeds.end() ? std::nullopt : std::optional(*least)) +
           " seeds are needed";
  }
  if (kind == ReasonKind::load && undecided.load)
    return load_text(undecided.load->low, undecided.load->high) +
           "; train again on an idle machine with run --retrain-times";
  if (kind == ReasonKind::planned_runs) return "planned runs are not finished";
  if (kind == ReasonKind::broken) return "the parity check found another training";
  const std::string texts = some_of({undecided.texts.begin(), undecided.texts.end()}, most_reasons);
  return texts.empty() ? "the test does not decide" : texts;
}

// "Not decided: loss of CNN (planned runs are not finished)", by reason, the one with the most verdicts first.
std::string undecided_sentence(const Comparison& comparison) {
  std::vector<std::pair<ReasonKind, Undecided>> all;
  for (const Metric* metric : answered())
    for (Item& item : items_on(comparison, metric->name)) {
      if (is_decided(item.verdict->kind)) continue;
      Undecided& same = value_of_key(all, item.verdict->reason.kind);
      same.texts.insert(item.verdict->reason.text);
      item.metric = name_of(*metric) + " of ";
      if (item.verdict->seeds_needed) same.seeds.insert(*item.verdict->seeds_needed);
      if (const auto& load = item.verdict->reason.load)
        same.load = {std::min(load->low, same.load.value_or(*load).low),
                     std::max(load->high, same.load.value_or(*load).high)};
      same.items.push_back(std::move(item));
    }
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const auto& one) { return one.second.items.size(); });
  const bool of_models = std::ranges::none_of(comparison.cells, &std::string::empty, &Cell::model);
  const auto text = [&](const auto& one) {
    return fmt::format("{} ({})", grouped(one.second.items, of_models ? comparison.cells.size() : 0),
                       why(one.first, one.second));
  };
  return all.empty() ? "" : "Not decided: " + joined(all, text, "; ") + ".";
}

// "Weakened: 3 verdicts REPLACED, 8 verdicts EXPLORATORY." over all metrics; empty without marks.
std::string weakened(const Comparison& comparison) {
  std::map<std::string, int> counts;
  for (const Cell& cell : comparison.cells)
    for (const Verdict& verdict : cell.verdicts)
      for (const std::string& mark : marks_of(verdict.caveats))
        if (mark != identical_mark) ++counts[mark];
  const auto text = [](const auto& one) { return counted(one.second, "verdict") + " " + one.first; };
  return counts.empty() ? "" : "Weakened: " + joined(counts, text) + ".";
}

// Up to four short paragraphs: which models get faster or slower, what happens to accuracy and loss, what is not
// decided and why, and marks. Long lists end with a count.
std::vector<std::string> answer_paragraphs(const Comparison& comparison) {
  if (!has_verdicts(comparison)) return {no_verdicts_text(comparison)};
  std::vector<std::string> quality;
  for (const Metric* metric : published_metrics())
    if (!metric->kind->is_cost())
      quality.push_back(decided_sentence(comparison, metric->name, name_of(*metric)));
  quality.push_back(worse_elsewhere(comparison));
  std::erase(quality, "");
  std::vector<std::string> paragraphs{time_sentence(comparison), joined(quality, {}, " "),
                                      undecided_sentence(comparison), weakened(comparison)};
  std::erase(paragraphs, "");
  if (paragraphs.empty()) paragraphs.emplace_back("No model has validation metrics or training times.");
  paragraphs.front().insert(0, comparison.experiment.empty() ? "" : comparison.experiment + ": ");
  return paragraphs;
}

}  // namespace

std::string setting_values(const std::vector<RunRow>& runs, const std::string& setting) {
  std::map<std::string, std::pair<std::set<std::string>, std::set<std::string>>> users;  // by value
  std::map<std::string, std::set<std::string>> values_of_model;
  for (const RunRow& run : runs) {
    const std::string value = setting_text(run, setting);
    if (value.empty()) continue;
    users[value].first.insert(run.title);
    users[value].second.insert(run.strategy);
    values_of_model[run.title].insert(value);
  }
  const bool by_model =
      std::ranges::all_of(values_of_model, [](const auto& one) { return one.second.size() == 1; });
  return joined(users, [&](const auto& one) {
    const auto& [models, strategies] = one.second;
    return users.size() == 1 ? one.first
                             : fmt::format("{} ({})", one.first, joined(by_model ? models : strategies));
  });
}

std::vector<std::string> answer_facts(const Answer& answer) {
  std::vector<std::string> facts;
  for (const std::string& published : answer.published) facts.push_back("Published study: " + published);
  if (!answer.machine.empty()) facts.push_back("Machine: " + answer.machine);
  return facts;
}

Answer make_answer(const Report& report) {
  Answer answer;
  for (const Comparison& comparison : report.comparisons)
    answer.paragraphs.push_back(answer_paragraphs(comparison));
  answer.published = published_answers(report);
  const auto known = [&](const char* name) { return value_in(report.provenance, name); };
  answer.compared =
      sentences({sizes_text(report), with_label("Data: ", known("Data")),
                 with_label("Strategies: ", known("Strategies")), with_label("Runs: ", known("Runs"))});
  answer.machine = sentences(
      {comma({known("Host"), known("Processor"), known("Cores and memory"), known("System")}),
       trained_on(report),
       comma({with_label("trainyard ", known("Release")), with_label("LibTorch ", known("LibTorch"))})});
  return answer;
}

}  // namespace trainyard::reports
