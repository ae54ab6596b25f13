#include "db/database/task_views.h"

#include <initializer_list>
#include <string_view>

namespace trainyard::db {

namespace {

using Phases = std::initializer_list<std::string_view>;

// Of a phase, for which @ stands. The loss of a translation is nats per token; a perplexity beyond what a
// double holds is NULL.
constexpr std::string_view perplexity =
    "CASE WHEN r.task = 'translation' AND v.@_loss < 709 THEN exp(v.@_loss) END AS @_perplexity";

// The loss of a reconstruction is the mean squared error of a pixel with peak 1; the PSNR of an error of 0 is
// NULL.
constexpr std::string_view psnr =
    "CASE WHEN r.task = 'reconstruction' THEN -10 * log10(v.@_loss) END AS @_psnr";

// One a phase, each behind a comma.
std::string columns(std::string_view formula, Phases phases) {
  std::string text;
  for (const std::string_view phase : phases) {
    text += ",\n  ";
    for (const char letter : formula) letter == '@' ? text += phase : text += letter;
  }
  return text;
}

// `first` columns of the view `base`, what is derived of each phase's loss, and what views had later: a
// column has the place that it was given first.
std::string select_with_derived(const std::string& base, const std::string& first, Phases phases,
                                const std::string& more_columns = "", const std::string& more_joins = "") {
  return "SELECT " + first + columns(perplexity, phases) + columns(psnr, phases) + more_columns + "\nFROM " +
         base + " v JOIN run r ON r.run_key = v.run_key" + more_joins;
}

std::string task_epoch_average() {
  return "CREATE VIEW task_epoch_average AS\n" +
         select_with_derived(
             "epoch_average",
             "v.run_key, v.experiment, v.model, v.strategy, v.seed, v.epoch, v.train_loss, v.train_accuracy, "
             "v.validation_loss, v.validation_accuracy, v.train_seconds, v.validation_seconds",
             {"train", "validation"}, ",\n  v.energy_joules, v.peak_device_bytes");
}

std::string task_epoch_replica() {
  return "CREATE VIEW task_epoch_replica AS\n" +
         select_with_derived("epoch_replica", "v.*", {"train", "validation"});
}

}  // namespace

std::string task_final_metrics(const std::string& more_columns) {
  return "CREATE VIEW task_final_metrics AS\n" +
         select_with_derived(
             "final_metrics",
             "v.run_key, v.experiment, v.model, v.strategy, v.seed, v.train_loss, v.train_accuracy, "
             "v.validation_loss, v.validation_accuracy, v.test_loss, v.test_accuracy, v.epoch_train_seconds, "
             "v.total_validation_seconds",
             {"train", "validation", "test"},
             ",\n  f.test_bleu, v.epoch_energy_joules, v.peak_device_bytes" + more_columns,
             " JOIN run_final f ON f.run_key = v.run_key");
}

std::vector<std::string> task_views() {
  return {task_epoch_average(), task_epoch_replica()};
}

}  // namespace trainyard::db
