// bench_export RUN FOLDER: write the work and the data of a run as raw numbers, for programs that cannot read
// our data sets. RUN is a `run.json`. FOLDER gets `case.json` (task, hyper-parameters, input, optimizer,
// batch, fingerprint) and the samples of the training and the validation part.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "experiments/protocol/launch.h"
#include "experiments/run/run_model.h"
#include "models/datasets/datasets.h"

namespace {

using namespace trainyard;

template <class Number>
void write_numbers(const std::filesystem::path& file, const std::vector<Number>& numbers) {
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
  if (!out) throw std::runtime_error(file.string() + ": cannot be written");
}

// Writes the files of a part:
// - images: PART.images (uint8) and PART.labels (int32).
// - texts: PART.tokens (int32), PART.offsets (int64) and PART.labels (int32).
// - windows: PART.tokens and PART.offsets.
// - pairs: PART.source.tokens, PART.source.offsets, PART.target.tokens and PART.target.offsets.
class PartWriter {
 public:
  PartWriter(const std::filesystem::path& folder, const std::string& part)
      : file_((folder / part).string()) {}
  void operator()(const models::Images& images) const {
    write_numbers(file_ + ".images", images.pixels);
    write_numbers(file_ + ".labels", images.labels);
  }
  void operator()(const models::Texts& texts) const {
    write_sequences("", texts.tokens);
    write_numbers(file_ + ".labels", texts.labels);
  }
  void operator()(const models::TextPairs& pairs) const {
    write_sequences(".source", pairs.source);
    write_sequences(".target", pairs.target);
  }
  void operator()(const models::Windows& windows) const { write_sequences("", windows.tokens); }
  void operator()(const models::Rows& rows) const {
    write_numbers(file_ + ".values", rows.values);
    write_numbers(file_ + ".labels", rows.labels);
    write_numbers(file_ + ".numbers", rows.numbers);
  }

 private:
  void write_sequences(const std::string& side, const models::Sequences& sequences) const {
    write_numbers(file_ + side + ".tokens", sequences.tokens);
    write_numbers(file_ + side + ".offsets", sequences.offsets);
  }
  std::string file_;
};

nlohmann::json case_of(const experiments::Run& run) {
  const models::InputShape& input = run.data.input;
  nlohmann::json hyperparameters = nlohmann::json::object();
  for (const auto& [name, value] : run.hyperparameters) hyperparameters[name] = experiments::to_json(value);
  return {{"task", experiments::task_name(run)},
          {"hyperparameters", hyperparameters},
          {"input",
           {{"channels", input.image.channels},
            {"height", input.image.height},
            {"width", input.image.width},
            {"classes", input.classes},
            {"vocabulary", input.vocabulary},
            {"target_vocabulary", input.target_vocabulary}}},
          {"optimizer",
           {{"kind", run.optimizer.kind},
            {"learning_rate", run.optimizer.learning_rate},
            {"momentum", run.optimizer.momentum},
            {"weight_decay", run.optimizer.weight_decay}}},
          {"global_batch", run.global_batch},
          {"data_fingerprint", run.data.fingerprint}};
}

void export_run(const std::filesystem::path& file, const std::filesystem::path& folder) {
  const experiments::Run run = experiments::read_launch(file).run;
  const models::Splits splits = models::read(run.data);
  std::filesystem::create_directories(folder);
  std::visit(PartWriter(folder, "train"), splits.train);
  std::visit(PartWriter(folder, "validation"), splits.validation);
  std::ofstream(folder / "case.json") << case_of(run) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  std::filesystem::path file, folder;
  CLI::App app(
      "Write the work and the data of a run as raw numbers, for programs that cannot read our data sets.");
  app.add_option("RUN", file, "a run.json")->required();
  app.add_option("FOLDER", folder, "the folder to write to")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    export_run(file, folder);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
