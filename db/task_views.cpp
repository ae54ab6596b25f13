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

// BLEU of the corpus from the sums of all ranks: exp(min(0, 1 - r/c) + mean of ln p_n for n = 1 … 4), where
// p_n is matched / candidate n-grams, c the length of the candidates, r that of the references; 0 where a p_n
// is.
constexpr std::string_view with_bleu = R"sql(WITH parts AS (
  SELECT c.run_key, m.name, IIF(COUNT(m.sum) = COUNT(*), SUM(m.sum), NULL) AS sum, SUM(m.weight) AS weight
  FROM counted_attempt c JOIN metric m ON m.run_key = c.run_key AND m.attempt = c.attempt
  WHERE m.epoch = 0 AND m.phase = 'test' AND m.name IN ('bleu_1', 'bleu_2', 'bleu_3', 'bleu_4', 'bleu_length')
  GROUP BY c.run_key, m.name
), bleu AS (
  SELECT run_key,
    CASE WHEN COUNT(sum) < 5 THEN NULL WHEN MIN(sum) <= 0 THEN 0.0
      ELSE exp(SUM(IIF(name = 'bleu_length', MIN(0, 1 - weight / sum), ln(sum / weight) / 4))) END AS value
  FROM parts GROUP BY run_key
)
)sql";

std::string task_final_metrics() {
  return "CREATE VIEW task_final_metrics AS\n" + std::string(with_bleu) +
         select_with_derived("final_metrics", {"train", "validation", "test"}, ",\n  bleu.value AS test_bleu",
                             " LEFT JOIN bleu ON bleu.run_key = v.run_key");
}

}  // namespace

std::vector<std::string> task_views() {
  return {task_epoch_view("epoch_average"), task_epoch_view("epoch_replica"), task_final_metrics()};
}

}  // namespace trainyard::db
