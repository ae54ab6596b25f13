// What probes show: the parity gate keeps, after each of its steps, a rank's loss and, by layer path, the
// norm of its reduced gradient, how far that is from the reference's (‖Δ‖), and a hash of the parameters.
#include <algorithm>
#include <cmath>
#include <map>

#include "reports/verdicts/comparability.h"

namespace trainyard::reports {

namespace {

using nlohmann::json;

// What counts as the same: relative to the loss; to a reduced gradient's norm, with a part of the whole
// gradient's.
struct Tolerance {
  double loss;
  double gradient;
  double whole_gradient;
};
constexpr Tolerance of_float32{1e-5, 1e-4, 1e-6};  // as in the parity table
// Where float32 differs in its last bits some become another bfloat16, which is 2⁻⁸ away.
constexpr Tolerance of_bfloat16{4e-3, 2e-2, 1e-3};
// As wide as that in their steps of 2⁻¹¹.
constexpr Tolerance of_float16{5e-4, 2.5e-3, 1.25e-4};

// Statistics of batch normalisation that are summed over replicas are rounded otherwise than those of one
// process. That may put an activation on the other side of zero, and a gradient differs by a sample's part.
constexpr double synchronised_gradient = 0.1;

Tolerance of_precision(const std::string& precision) {
  if (precision == "bfloat16") return of_bfloat16;
  return precision == "float16" || precision == "tf32" ? of_float16 : of_float32;
}

Tolerance tolerance_of(const db::RunSummary& run) {
  Tolerance tolerance = of_precision(value_of(run, "precision"));
  if (run.replicas > 1 && value_of(run, "batch_norm") == "sync") tolerance.gradient = synchronised_gradient;
  return tolerance;
}

struct LayerProbe {
  std::string path;
  json values;
};

// In the order of the chain.
std::vector<LayerProbe> layers_of(const json& body) {
  std::vector<LayerProbe> layers;
  const auto found = body.find("layers");
  if (found == body.end()) return layers;
  for (const json& layer : *found) layers.push_back({layer.at("path").get<std::string>(), layer});
  return layers;
}

double number_member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? found->get<double>() : std::nan("");
}

std::string text_member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string after_step(const json& body) {
  const auto step = body.find("step");
  return step != body.end() && step->is_number_integer()
             ? " after step " + std::to_string(step->get<std::int64_t>())
             : "";
}

std::string other_gradient(const json& body, const Tolerance& tolerance) {
  const double whole = number_member(body, "gradient_norm");  // of all stages
  for (const LayerProbe& layer : layers_of(body)) {
    const double norm = number_member(layer.values, "gradient_norm");
    const double distance = number_member(layer.values, "difference");
    // a distance that is no number is found by the loss, or by a norm that is none
    if (distance > tolerance.gradient * norm + tolerance.whole_gradient * (std::isnan(whole) ? 0 : whole))
      return "the gradient of layer " + layer.path + " is not the reference's" + after_step(body);
  }
  return "";
}

std::string other_loss(const json& body, const Tolerance& tolerance) {
  const double loss = number_member(body, "loss");
  const double reference = number_member(body, "reference_loss");
  if (std::isnan(reference) || std::abs(loss - reference) <= tolerance.loss * std::abs(reference)) return "";
  return "the loss is not the reference's" + after_step(body);
}

// Ranks of one run that have a layer must have the same parameters in it after the same step.
class Replicas {
 public:
  std::string take(const db::Probe& probe) {
    for (const LayerProbe& layer : layers_of(probe.body)) {
      const std::string hash = text_member(layer.values, "parameter_hash");
      if (hash.empty()) continue;
      const std::string place = probe.run_key + after_step(probe.body) + "\n" + layer.path;
      const auto [first, added] = hashes_.try_emplace(place, hash);
      if (!added && first->second != hash)
        return "replicas have different parameters in layer " + layer.path + after_step(probe.body);
    }
    return "";
  }

 private:
  std::map<std::string, std::string> hashes_;
};

}  // namespace

std::string broken_by_probes(const ReportData& data, const Arm& arm) {
  Replicas replicas;
  for (const Observation& observation : arm.runs) {
    const auto found = data.probes.find(observation.run->run_key);
    if (found == data.probes.end()) continue;
    const Tolerance tolerance = tolerance_of(*observation.run);
    for (const db::Probe& probe : found->second) {
      if (!probe.body.is_object()) continue;
      for (const std::string& problem :
           {other_gradient(probe.body, tolerance), other_loss(probe.body, tolerance), replicas.take(probe)})
        if (!problem.empty()) return problem;
    }
  }
  return "";
}

std::vector<std::string> not_probed(const ReportData& data, const std::vector<Cell>& cells) {
  std::vector<std::string> names;
  // a foreign program's probes are its own word: trainyard compared nothing
  const auto probed = [&](const Observation& run) {
    return run.run->kind != "foreign" && data.probes.contains(run.run->run_key);
  };
  const auto look_at = [&](const Cell& cell, const Arm& arm) {
    if (!arm.runs.empty() && std::ranges::none_of(arm.runs, probed))
      names.push_back(cell.label + " " + arm.value);
  };
  for (const Cell& cell : cells) {
    look_at(cell, cell.baseline);
    for (const Arm& arm : cell.arms) look_at(cell, arm);
  }
  return names;
}

}  // namespace trainyard::reports
