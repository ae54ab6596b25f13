// SQL of the attempts that make up a run: one, the one it resumes, and so on back to where it began.
#pragma once

#include <string>

namespace trainyard::db {

// A recursive common table `chain (attempt, after_epoch, up_to_epoch)`, to stand behind WITH RECURSIVE:
// attempt ?2 of run ?1 and what it resumes, each with the epochs after_epoch + 1 … up_to_epoch that it
// contributes. An attempt can only resume an earlier one: the recursion ends.
inline std::string attempt_chain_from_last() {
  return R"sql(chain (attempt, after_epoch, up_to_epoch, resumes) AS (
  SELECT a.attempt, IIF(a.resumes_attempt < a.attempt, COALESCE(a.resumes_after_epoch, 0), 0),
         9223372036854775807, IIF(a.resumes_attempt < a.attempt, a.resumes_attempt, NULL)
  FROM attempt a WHERE a.run_key = ?1 AND a.attempt = ?2
  UNION ALL
  SELECT a.attempt, IIF(a.resumes_attempt < a.attempt, COALESCE(a.resumes_after_epoch, 0), 0),
         MIN(c.up_to_epoch, c.after_epoch), IIF(a.resumes_attempt < a.attempt, a.resumes_attempt, NULL)
  FROM chain c JOIN attempt a ON a.run_key = ?1 AND a.attempt = c.resumes
))sql";
}

}  // namespace trainyard::db
