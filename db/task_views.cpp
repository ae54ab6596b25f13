#include "db/task_views.h"

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

// All columns of the view `base`, then what is derived of each phase's loss.
std::string select_with_derived(const std::string& base, Phases phases, const std::string& more_columns = "",
                                const std::string& more_joins = "") {
  return "SELECT v.*" + columns(perplexity, phases) + columns(psnr, phases) + more_columns + "\nFROM " +
         base + " v JOIN run r ON r.run_key = v.run_key" + more_joins + "\n";
}

std::string task_epoch_view(const std::string& base) {
  return "CREATE VIEW task_" + base + " AS\n" + select_with_derived(base, {"train", "validation"});
}

std::string task_final_metrics() {
  return "CREATE VIEW task_final_metrics AS\n" +
         select_with_derived("final_metrics", {"train", "validation", "test"}, ",\n  f.test_bleu",
                             " JOIN run_final f ON f.run_key = v.run_key");
}

}  // namespace

std::vector<std::string> task_views() {
  return {task_epoch_view("epoch_average"), task_epoch_view("epoch_replica"), task_final_metrics()};
}

}  // namespace trainyard::db
