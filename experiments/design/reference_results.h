// Published numbers that a report shows beside ours: facts read off a text, marked, never part of a verdict.
// An experiment file names them (`published = "results.toml"`); the journal keeps the file and what was read
// from it, `reports` reads them back from the database.
//
// The file has a table for each source, in it a table for each model (names that the experiment file knows;
// other tables are for people), and in that `epochs` and a table for each arm: { train_seconds = 22,
// train_accuracy = [0.3, 0.4], train_loss_last = 2.3 }. A list is the first and the last epoch; accuracies
// are fractions. A name that is nearly one of a model or strategy is an error; a source says with
// `models = [...]` and `arms = [...]` which such names only the text has.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trainyard::experiments {

struct PublishedPoint {
  double epoch = 0;  // 0: of all epochs
  double value = 0;
};

struct PublishedSeries {
  std::string model;
  std::string arm;     // "single", "ddp"
  std::string metric;  // "train_accuracy", "train_seconds", "total_validation_seconds"
  std::vector<PublishedPoint> points;
};

struct PublishedSource {
  std::string name;                             // "stifi-2025"
  std::map<std::string, std::string> hardware;  // by arm
  std::vector<PublishedSeries> series;
};

struct Published {
  std::string file;  // as the experiment file names it
  std::string text;  // verbatim
  std::vector<PublishedSource> sources;
};

nlohmann::json to_json(const Published& published);
Published published_from_json(const nlohmann::json& json);  // InternalError where it is none

}  // namespace trainyard::experiments
