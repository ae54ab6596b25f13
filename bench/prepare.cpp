// bench_prepare FOLDER …: writes one training for both sides of a benchmark, so that they do the same work:
// `run.json` for trainyard-runner, and `case.json` with the images and labels of each part as raw bytes for
// the PyTorch peer.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "experiments/launch.h"
#include "experiments/record.h"
#include "models/catalogue.h"
#include "models/datasets.h"

namespace {

using namespace trainyard;

struct Options {
  std::filesystem::path folder;
  std::string dataset = "synthetic-digits";
  std::filesystem::path data;  // folder of the data set; none for a generated one
  std::int64_t train_samples = 4000;
  experiments::Run run;
};

models::Splits prepare_run(Options& options) {
  experiments::Run& run = options.run;
  for (const models::Parameter& parameter : models::find_model(run.model).hyperparameters) {
    run.hyperparameters[parameter.name] = parameter.fallback.value();
  }
  run.strategy.name = run.strategy.kind = run.strategy.replicas == 1 ? "single" : "ddp";
  run.data.dataset = run.data.source = options.dataset;
  run.data.folder = options.data;
  run.data.train_samples = options.train_samples;
  run.threads = 1;
  return models::read(run.data);
}

void write_launch(const Options& options) {
  experiments::Launch launch;
  launch.run = options.run;
  launch.key = experiments::run_key(options.run);
  launch.records = std::filesystem::absolute(options.folder);
  launch.experiment = "bench";
  launch.created = experiments::utc_now();
  experiments::write_launch(launch);
}

void write_bytes(const std::filesystem::path& file, const std::vector<std::uint8_t>& bytes) {
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

nlohmann::json widths(const experiments::Run& run, const std::string& name) {
  const auto found = run.hyperparameters.find(name);
  return found == run.hyperparameters.end() ? nlohmann::json::array() : experiments::to_json(found->second);
}

void write_case(const Options& options, const models::Splits& splits) {
  const experiments::Run& run = options.run;
  const models::ImageShape& shape = std::get<models::Images>(splits.train).shape;
  std::ofstream(options.folder / "case.json")
      << nlohmann::json{{"model", run.model},
                        {"shape", {shape.channels, shape.height, shape.width}},
                        {"classes", models::find_dataset(options.dataset).classes},
                        {"hidden", widths(run, "hidden")},
                        {"channels", widths(run, "channels")},
                        {"optimizer",
                         {{"kind", run.optimizer.kind},
                          {"learning_rate", run.optimizer.learning_rate},
                          {"momentum", run.optimizer.momentum},
                          {"weight_decay", run.optimizer.weight_decay}}},
                        {"epochs", run.epochs},
                        {"batch", run.global_batch},
                        {"seed", run.seed},
                        {"replicas", run.strategy.replicas}};
  for (const auto& [name, samples] :
       {std::pair("train", &splits.train), std::pair("validation", &splits.validation),
        std::pair("test", &splits.test)}) {
    const auto& images = std::get<models::Images>(*samples);
    write_bytes(options.folder / (std::string(name) + ".images"), images.pixels);
    write_bytes(options.folder / (std::string(name) + ".labels"), images.labels);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  experiments::Run& run = options.run;
  run.optimizer.learning_rate = 0.002;  // cool enough that rounding does not grow within the benchmark
  CLI::App app("writes run.json and case.json for one training");
  app.add_option("folder", options.folder)->required();
  app.add_option("--model", run.model)->required();
  app.add_option("--replicas", run.strategy.replicas);
  app.add_option("--epochs", run.epochs);
  app.add_option("--batch", run.global_batch);
  app.add_option("--optimizer", run.optimizer.kind);
  app.add_option("--dataset", options.dataset);
  app.add_option("--data", options.data, "folder of the data set");
  app.add_option("--train-samples", options.train_samples);
  CLI11_PARSE(app, argc, argv);
  try {
    if (run.optimizer.kind == "adam") run.optimizer = {.kind = "adam", .learning_rate = 0.001, .momentum = 0};
    std::filesystem::create_directories(options.folder);
    const models::Splits splits = prepare_run(options);
    write_launch(options);
    write_case(options, splits);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
