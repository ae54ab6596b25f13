// bench_verdicts [SWEEPS] [SEED]: simulate the error rates of verdicts, and print them as a Markdown table.
#include <cstdlib>
#include <iostream>

#include <fmt/format.h>

#include "bench/verdict_simulation.h"
#include "reports/format/number_text.h"

namespace {

using trainyard::reports::fixed;

std::string percent(double rate, std::int64_t trials) {
  return fixed(100 * rate, 2) + " ± " + fixed(100 * trainyard::bench::standard_error(rate, trials), 2);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t sweeps = argc > 1 ? std::atoll(argv[1]) : 100'000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  std::cout << "| effects | spread | pairs | wrong IMPROVES or DETERIORATES % | wrong NO CHANGE % | cells "
               "decided % "
               "| pairs used | 95 % interval covers % |\n"
               "|---|---:|---|---:|---:|---:|---:|---:|\n";
  for (const auto& sweep : trainyard::bench::usual_sweeps()) {
    const auto rates = trainyard::bench::simulate(sweep, sweeps, seed);
    const auto [first, last] = sweep.looks;
    std::cout << "| " << sweep.name << " | " << fixed(sweep.spread, 1) << " δ | "
              << (first == last ? fmt::format("{}", last) : fmt::format("{} … {}", first, last)) << " | "
              << percent(rates.wrong_shift, sweeps) << " | " << percent(rates.wrong_no_change, sweeps)
              << " | " << fixed(100 * rates.decided, 2) << " | " << fixed(rates.pairs, 2) << " | "
              << fixed(100 * rates.covered, 1) << " |\n"
              << std::flush;
  }
}
