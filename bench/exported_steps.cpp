// bench_exported_steps FILE.pt2 TASK CONFIGURATION FOLDER: train a network that PyTorch exported, on request.
// - CONFIGURATION is JSON: batch, optimizer, learning_rate, momentum, weight_decay, and the sizes of the
//   samples: image [channels, height, width] and classes, or length, vocabulary and classes.
// - It writes one batch to FOLDER: `inputs-0`, …, `targets`, as plain numbers in the order of the machine.
// - It then reads numbers of steps, one per line. After these steps it prints their wall-clock seconds, their
//   processor seconds and the summed loss of all of them. Each step trains on the same batch.
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <nlohmann/json.hpp>

#include "experiments/run/run_model.h"
#include "models/samples/samples.h"
#include "models/samples/tokenizer.h"
#include "runner/device/rank_process.h"
#include "runner/trainer/trainer.h"

namespace {

using namespace trainyard;
using nlohmann::json;

class RandomSamples {
 public:
  RandomSamples(const json& sizes, std::int64_t count) : sizes_(sizes), count_(count) {}

  models::Samples of(const std::string& task) {
    if (sizes_.contains("image")) return images();
    return task == "translation" ? models::Samples(pairs()) : models::Samples(texts());
  }

  models::InputShape input(const std::string& task) const {
    models::InputShape input;
    input.image = shape();
    input.classes = task == "classification" ? sizes_.at("classes").get<std::int64_t>() : 0;
    input.vocabulary = sizes_.value("vocabulary", std::int64_t{0});
    input.target_vocabulary = task == "translation" ? input.vocabulary : 0;
    input.source_length = input.target_length = sizes_.value("length", std::int64_t{0});
    return input;
  }

 private:
  models::ImageShape shape() const {
    if (!sizes_.contains("image")) return {0, 0, 0};
    const json& image = sizes_.at("image");
    return {image.at(0), image.at(1), image.at(2)};
  }

  std::int64_t below(std::int64_t end, std::int64_t first = 0) {
    return std::uniform_int_distribution<std::int64_t>(first, end - 1)(generator_);
  }

  std::vector<std::uint8_t> labels() {
    std::vector<std::uint8_t> labels;
    for (std::int64_t i = 0; i < count_; ++i)
      labels.push_back(static_cast<std::uint8_t>(below(sizes_.at("classes"))));
    return labels;
  }

  models::Images images() {
    models::Images images{shape(), {}, labels()};
    for (std::int64_t i = 0; i < count_ * images.shape.pixels(); ++i)
      images.pixels.push_back(static_cast<std::uint8_t>(below(256)));
    return images;
  }

  // Without padding, so that both programs compute all positions.
  models::Sequences sequences(std::int64_t length) {
    models::Sequences sequences;
    for (std::int64_t i = 0; i < count_; ++i) {
      std::vector<std::int32_t> tokens;
      for (std::int64_t k = 0; k < length; ++k)
        tokens.push_back(static_cast<std::int32_t>(below(sizes_.at("vocabulary"), models::pad_token + 1)));
      sequences.append(tokens);
    }
    return sequences;
  }

  models::Texts texts() { return {sequences(sizes_.at("length")), labels()}; }

  // The target has one token more than the network reads.
  models::TextPairs pairs() { return {sequences(1), sequences(sizes_.at("length").get<std::int64_t>() + 1)}; }

  const json& sizes_;
  std::int64_t count_;
  std::mt19937_64 generator_{7};
};

experiments::Run run_of(const std::string& file, const std::string& task, const json& settings) {
  experiments::Run run;
  run.model = "exported";
  run.declared.task = task;
  run.exported = {{file, experiments::exported_model({"exported", "exported", task, file}).sha256}};
  run.optimizer.kind = settings.at("optimizer");
  run.optimizer.learning_rate = settings.at("learning_rate");
  run.optimizer.momentum = settings.at("momentum");
  run.optimizer.weight_decay = settings.at("weight_decay");
  run.global_batch = run.batch_size = settings.at("batch");
  return run;
}

void write_numbers(const std::filesystem::path& file, const at::Tensor& tensor) {
  const at::Tensor plain = tensor.contiguous();
  std::ofstream out(file, std::ios::binary);
  out.write(static_cast<const char*>(plain.const_data_ptr()), static_cast<std::streamsize>(plain.nbytes()));
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void train_on_request(const experiments::Run& run, const json& settings,
                      const std::filesystem::path& folder) {
  const std::string& task = run.declared.task;
  RandomSamples random(settings, run.global_batch);
  const models::Samples samples = random.of(task);
  const runner::Connections ranks = runner::unconnected();
  runner::Trainer trainer(runner::resolve(run), random.input(task), ranks);
  trainer.set_learning_rate(run.optimizer.learning_rate);
  const runner::DataParts data = runner::make_parts({samples, samples, samples}, trainer.task(), at::kFloat,
                                                    trainer.network().channels_last);
  const at::Tensor indices = at::arange(run.global_batch);
  const runner::Batch batch = data.train->gather(indices);
  for (std::size_t i = 0; i < batch.inputs.size(); ++i)
    write_numbers(folder / ("inputs-" + std::to_string(i)), batch.inputs[i]);
  write_numbers(folder / "targets", batch.targets);
  std::printf("ready\n");
  std::fflush(stdout);
  for (std::int64_t steps = 0; std::cin >> steps;) {
    const double processor = processor_seconds();
    runner::Stopwatch watch;
    for (std::int64_t i = 0; i < steps; ++i) trainer.step(*data.train, indices, data.train->weight(indices));
    const double loss = trainer.take_metrics().loss();
    const double wall = watch.lap();
    std::printf("%.9f %.9f %.9g\n", wall, processor_seconds() - processor, loss);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 5) {
    std::cerr << "usage: bench_exported_steps FILE.pt2 TASK CONFIGURATION FOLDER\n";
    return 2;
  }
  runner::tune_allocator();
  runner::die_with_parent();
  at::set_num_threads(1);
  try {
    const json settings = json::parse(words[3]);
    train_on_request(run_of(words[1], words[2], settings), settings, words[4]);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
