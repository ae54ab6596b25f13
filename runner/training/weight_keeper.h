// Keeps the weights of a run as one safetensors file, whatever the mesh: parameters and running statistics of
// all stages, under the names that the network on one device gives them.
#pragma once

#include <filesystem>
#include <limits>
#include <string>

#include "models/networks/network.h"
#include "runner/data/metrics.h"
#include "runner/trainer/connections.h"

namespace trainyard::runner {

inline constexpr const char* weights_file_name = "weights.safetensors";

class WeightKeeper {
 public:
  enum class Keeps { nothing, last, best };

  // `save` is "" (nothing is kept), "last" or "best"; `file` is written by rank 0. UserError for another
  // word.
  WeightKeeper(const std::string& save, std::filesystem::path file, const Connections& ranks);

  // How good the kept weights are, for a run that is interrupted and goes on.
  struct Kept {
    bool any = false;
    double validation_loss = std::numeric_limits<double>::infinity();  // of the best epoch
  };
  const Kept& kept() const { return kept_; }
  void resume(const Kept& kept) { kept_ = kept; }

  // After an epoch: "last" keeps each, "best" that of the lowest mean validation loss so far; `validation`
  // holds this rank's part of it. Collective.
  void epoch_done(const networks::Network& stage, const MetricSums& validation);

 private:
  bool is_best(const MetricSums& validation);
  void write(const networks::Network& stage) const;

  Keeps keeps_;
  std::filesystem::path file_;
  const Connections& ranks_;
  Kept kept_;
};

}  // namespace trainyard::runner
