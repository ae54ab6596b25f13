// Invented results for the tests of `reports`: what the database would answer after a sweep, without one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/results/report_data.h"

namespace trainyard::reports {

struct InventedOptions {
  std::vector<std::string> models{"mlp", "cnn"};
  std::vector<std::string> strategies{"single", "ddp"};
  int seeds = 5;
  int epochs = 6;
  bool energy = false;
};

// Smooth curves with a little noise that is a pure function of its arguments; ddp takes 0.55 of single's
// time, two stages 0.8. "seq2seq" has perplexities and BLEU, "conv-autoencoder" PSNR and no accuracy.
// With energy an epoch takes 500 J on one device and, on two, 1.1 times as much together.
ReportData invented(const InventedOptions& options = {});

// A further plan of these keys in the journal; it is the latest then.
void plan_again(ReportData& data, const std::vector<std::string>& keys);
std::vector<std::string> keys_of_seeds(const ReportData& data, int first, int last);

// The final numbers of one run, by model, strategy and seed.
db::FinalMetrics& final_of(ReportData& data, const std::string& model, const std::string& strategy, int seed);
db::RunSummary& run_of(ReportData& data, const std::string& model, const std::string& strategy, int seed);

// The run has not finished: no final numbers, this status.
void set_status(ReportData& data, const std::string& model, const std::string& strategy, int seed,
                const std::string& status);

// Sets one final number of all runs of an arm, by seed.
void set_final(ReportData& data, const std::string& model, const std::string& strategy,
               db::MetricColumn metric, const std::function<double(int)>& value);

}  // namespace trainyard::reports
