// Invented results for the tests of `reports`: what the database would return after a sweep.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reports/content/content.h"
#include "reports/results/report_data.h"

namespace trainyard::reports {

struct InventedOptions {
  std::vector<std::string> models{"mlp", "cnn"};
  std::vector<std::string> strategies{"single", "ddp"};
  int seeds = 5;
  int epochs = 6;
  bool energy = false;
};

// Smooth curves with a little noise that depends only on its arguments.
// - Time: ddp takes 0.55 of single's time, two stages 0.8.
// - Metrics: "seq2seq" has perplexity and BLEU, "conv-autoencoder" has PSNR and no accuracy.
// - Energy: an epoch takes 500 J on one device, and on two devices 1.1 times as much in total.
ReportData invented(const InventedOptions& options = {});

// Adds a plan with these keys to the journal. It becomes the latest plan.
void plan_again(ReportData& data, const std::vector<std::string>& keys);
std::vector<std::string> keys_of_seeds(const ReportData& data, int first, int last);

// The final numbers of one run, by model, strategy and seed.
db::FinalMetrics& final_of(ReportData& data, const std::string& model, const std::string& strategy, int seed);
db::RunSummary& run_of(ReportData& data, const std::string& model, const std::string& strategy, int seed);

// Gives an unfinished run this status and removes its final numbers.
void set_status(ReportData& data, const std::string& model, const std::string& strategy, int seed,
                const std::string& status);

// Adds the recorded step of a run with two stages, two milliseconds long. Stage 1 waits in its first half, and stage 0 in
// a quarter. All replicas do the same.
void add_step(ReportData& data, const db::RunSummary& run);

// Sets one final number of all runs of an arm, by seed.
void set_final(ReportData& data, const std::string& model, const std::string& strategy,
               db::MetricColumn metric, const std::function<double(int)>& value);

// An experiment of one model that varies these axes, without runs.
ReportData study_of(const std::vector<std::string>& axes, const std::string& baseline);

// Adds runs of "mlp" with these values of the axes, for three seeds. Their validation accuracies are `mean` − 0.01,
// `mean` and `mean` + 0.01.
void add_variant(ReportData& data, const std::map<std::string, Value>& values, double mean);

// The content of the report of `data`.
Content compose(const ReportData& data);

}  // namespace trainyard::reports
