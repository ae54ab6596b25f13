// Published numbers that a report plots next to our own. They are labelled and never part of a verdict.
// An experiment file names them (`published = "results.toml"`). The journal stores the file and its numbers,
// and `reports` reads them from the database.
//
// - The file has one table per source. This has one table per model; other tables are ignored.
// - The table of a model has `epochs` and one table per arm: { train_seconds = 22,
//   train_accuracy = [0.3, 0.4], train_loss_last = 2.3 }. A list gives the first and the last epoch.
// - Accuracies are fractions.
// - The tables `hardware` (by arm) and `sizes` (by name) of a source are shown beside its verdicts.
// - The table `verdict` of a source has one table per metric: { improves = ["vgg11", "mlp (mp-ddp)"] }. Its
//   entries are models, each with an arm in brackets if the publication names it.
// - The table `tables` of a source has tables of numbers that a report prints beside ours. With `axis` and `values`
//   they are percentages of the first value: { axis = "threads", values = [1, 2], total_train_seconds = [100, 110.3] }.
//   Without, they are the numbers of the runs `at` some settings: one per epoch, or one per repeat (`repeats = true`).
// - A name that is close to a known model or strategy is an error, unless the source lists it in
//   `models = [...]` or `arms = [...]`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trainyard::experiments {

struct PublishedPoint {
  double epoch = 0;  // 0: all epochs together
  double value = 0;
};

struct PublishedSeries {
  std::string model;
  std::string arm;     // "single", "ddp"
  std::string metric;  // "train_accuracy", "train_seconds", "total_validation_seconds"
  std::vector<PublishedPoint> points;
};

// What a publication found: the effect of an arm on one metric of one model.
struct PublishedVerdict {
  std::string metric;  // "accuracy", "loss", "time"
  std::string effect;  // "improves", "no-change", "deteriorates"
  std::string model;
  std::string arm;  // empty: each arm of this model that the source has numbers of
  bool operator==(const PublishedVerdict&) const = default;
};

// Numbers for a table, without a place in the figures.
struct PublishedTable {
  std::string title;                                   // "cores"
  std::string axis;                                    // of percentages: "threads"; else empty
  std::vector<std::string> values;                     // of the axis; the first is the benchmark
  std::map<std::string, std::string> at;               // other settings of the runs: "epochs" → "1"
  std::map<std::string, std::vector<double>> numbers;  // by metric: "total_train_seconds"
  bool repeats = false;                                // several numbers are of repeated runs, not of epochs
  std::string note;                                    // shown with each number
};

struct PublishedSource {
  std::string name;                             // "stifi-2025"
  std::map<std::string, std::string> hardware;  // by arm
  std::vector<PublishedSeries> series;
  std::vector<PublishedVerdict> verdicts = {};
  std::map<std::string, std::string> sizes = {};  // "train_samples" → "50000", "width" → "64"
  std::string dataset = {};                       // "fashion-mnist"; empty: not stated
  std::vector<PublishedTable> tables = {};
};

struct Published {
  std::string file;  // the name in the experiment file
  std::string text;  // verbatim
  std::vector<PublishedSource> sources;
};

nlohmann::json to_json(const Published& published);
Published published_from_json(const nlohmann::json& json);  // InternalError if members are wrong

}  // namespace trainyard::experiments
