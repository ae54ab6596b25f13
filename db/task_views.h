// Views of what is derived for single tasks: perplexity and BLEU of translations, PSNR of reconstructions.
// They hold all columns of the view they are named after. The only views that need SQLite's mathematical
// functions: the others stay readable with tools that are built without them. Used by `db/views.cpp`; the
// formulas and their sources stand in db/README.md.
#pragma once

#include <string_view>

namespace trainyard::db {

// The loss of a translation is nats per token, that of a reconstruction the mean squared error of a pixel
// with peak 1. A perplexity beyond what a double holds, and the PSNR of an error of 0, are NULL.
inline constexpr std::string_view task_epoch_average = R"sql(
CREATE VIEW task_epoch_average AS
SELECT e.*,
  CASE WHEN r.task = 'translation' AND e.train_loss < 709 THEN exp(e.train_loss) END AS train_perplexity,
  CASE WHEN r.task = 'translation' AND e.validation_loss < 709 THEN exp(e.validation_loss) END
    AS validation_perplexity,
  CASE WHEN r.task = 'reconstruction' THEN -10 * log10(e.train_loss) END AS train_psnr,
  CASE WHEN r.task = 'reconstruction' THEN -10 * log10(e.validation_loss) END AS validation_psnr
FROM epoch_average e JOIN run r ON r.run_key = e.run_key
)sql";

inline constexpr std::string_view task_epoch_replica = R"sql(
CREATE VIEW task_epoch_replica AS
SELECT e.*,
  CASE WHEN r.task = 'translation' AND e.train_loss < 709 THEN exp(e.train_loss) END AS train_perplexity,
  CASE WHEN r.task = 'translation' AND e.validation_loss < 709 THEN exp(e.validation_loss) END
    AS validation_perplexity,
  CASE WHEN r.task = 'reconstruction' THEN -10 * log10(e.train_loss) END AS train_psnr,
  CASE WHEN r.task = 'reconstruction' THEN -10 * log10(e.validation_loss) END AS validation_psnr
FROM epoch_replica e JOIN run r ON r.run_key = e.run_key
)sql";

// BLEU of the corpus from the sums of all ranks: exp(min(0, 1 - r/c) + mean of ln p_n for n = 1 … 4), where
// p_n is matched / candidate n-grams, c the length of the candidates, r that of the references; 0 where a p_n
// is.
inline constexpr std::string_view task_final_metrics = R"sql(
CREATE VIEW task_final_metrics AS
WITH parts AS (
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
SELECT f.*,
  CASE WHEN r.task = 'translation' AND f.train_loss < 709 THEN exp(f.train_loss) END AS train_perplexity,
  CASE WHEN r.task = 'translation' AND f.validation_loss < 709 THEN exp(f.validation_loss) END
    AS validation_perplexity,
  CASE WHEN r.task = 'translation' AND f.test_loss < 709 THEN exp(f.test_loss) END AS test_perplexity,
  CASE WHEN r.task = 'reconstruction' THEN -10 * log10(f.train_loss) END AS train_psnr,
  CASE WHEN r.task = 'reconstruction' THEN -10 * log10(f.validation_loss) END AS validation_psnr,
  CASE WHEN r.task = 'reconstruction' THEN -10 * log10(f.test_loss) END AS test_psnr,
  bleu.value AS test_bleu
FROM final_metrics f JOIN run r ON r.run_key = f.run_key LEFT JOIN bleu ON bleu.run_key = f.run_key
)sql";

}  // namespace trainyard::db
