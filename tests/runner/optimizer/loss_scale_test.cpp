// Float16 training with a loss scale compared with PyTorch's GradScaler, if there is a Python with torch.
// Losses, scales and skipped steps are the same in each step, under every mesh.
#include "runner/optimizer/loss_scale.h"

#include <cstdlib>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "runner/device/precision.h"
#include "tests/runner/support/doctest_beside_torch.h"
#include "tests/runner/support/number_files.h"
#include "tests/runner/support/replicas.h"
#include "tests/support/scratch_folder.h"

namespace trainyard::runner::loss_scale_test {

using namespace testing;
using trainyard::tests::ScratchFolder;

constexpr std::int64_t batch = 12;
constexpr std::int64_t steps = 14;
// Samples with pixels so large that the first layer's gradient overflows. They are in three steps and, with
// two replicas, not all on the same replica.
constexpr std::int64_t bright_samples[] = {1, 6 * batch + 9, 7 * batch + 2};

struct Case {
  std::string name;
  experiments::Run run;
  std::optional<std::int64_t> growth_interval;
};

Case make_case(const std::string& name, const std::string& model, const experiments::Optimizer& optimizer,
               const Mesh& mesh, std::optional<std::int64_t> growth_interval) {
  experiments::Run run = run_of(model, mesh.replicas);
  run.hyperparameters["hidden"] = std::vector<std::int64_t>{13};
  if (model == "cnn") run.hyperparameters["channels"] = std::vector<std::int64_t>{4, 6};
  run.strategy.stages = mesh.stages;
  if (mesh.stages > 1) run.strategy.kind = mesh.replicas > 1 ? "mp-ddp" : "mp";
  if (mesh.stages == 2) run.strategy.boundaries = {3};
  run.optimizer = optimizer;
  run.seed = 3;
  run.precision = "float16";
  return {name, run, growth_interval};
}

std::vector<Case> cases() {
  const experiments::Optimizer sgd{
      .kind = "sgd", .learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.01};
  const experiments::Optimizer clipped{
      .kind = "sgd", .learning_rate = 0.05, .momentum = 0, .weight_decay = 0, .clip_norm = 0.5};
  const experiments::Optimizer adam{.kind = "adam", .learning_rate = 0.003, .momentum = 0, .weight_decay = 0};
  return {make_case("mlp-sgd", "mlp", sgd, {1, 1}, std::nullopt),
          make_case("mlp-adam", "mlp", adam, {1, 1}, 3),
          make_case("mlp-clipped", "mlp", clipped, {1, 1}, 3),
          make_case("cnn-sgd", "cnn", sgd, {1, 1}, 4),
          make_case("mlp-ddp", "mlp", sgd, {2, 1}, 3),
          make_case("mlp-adam-ddp", "mlp", adam, {2, 1}, 3),
          make_case("mlp-mp", "mlp", sgd, {1, 2}, 3),
          make_case("mlp-mp-ddp", "mlp", adam, {2, 2}, 3)};
}

models::InputShape input() {
  return {{1, 9, 8}, 10};
}

models::Images images() {
  models::Images images = random_images({1, 9, 8}, batch * steps);
  for (std::uint8_t& pixel : images.pixels) pixel = static_cast<std::uint8_t>(pixel % 3);
  const std::int64_t pixels = images.shape.pixels();
  for (const std::int64_t sample : bright_samples)
    std::fill_n(images.pixels.begin() + sample * pixels, pixels, std::uint8_t{255});
  return images;
}

ImageDataset split(at::ScalarType dtype, bool channels_last) {
  return {images(), {{1, 0.5}}, Target::label, dtype, channels_last};
}

nlohmann::json describe(const Case& c, const std::string& images_file) {
  const auto list = [&](const char* name) {
    const auto found = c.run.hyperparameters.find(name);
    return found == c.run.hyperparameters.end() ? std::vector<std::int64_t>{}
                                                : std::get<std::vector<std::int64_t>>(found->second);
  };
  const experiments::Optimizer& optimizer = c.run.optimizer;
  return {{"name", c.name},
          {"model", c.run.model},
          {"shape", {1, 9, 8}},
          {"classes", 10},
          {"hidden", list("hidden")},
          {"channels", list("channels")},
          {"seed", c.run.seed},
          {"optimizer",
           {{"kind", optimizer.kind},
            {"learning_rate", optimizer.learning_rate},
            {"momentum", optimizer.momentum},
            {"weight_decay", optimizer.weight_decay}}},
          {"clip_norm", optimizer.clip_norm},
          {"growth_interval", c.growth_interval ? nlohmann::json(*c.growth_interval) : nlohmann::json()},
          {"batch", batch},
          {"steps", steps},
          {"replicas", c.run.strategy.replicas},
          {"images", images_file},
          {"labels", images().labels}};
}

void write_images(const std::filesystem::path& file) {
  write_numbers(file, split(at::kDouble, false).gather(at::arange(batch * steps)).inputs[0]);
}

LossScaling settings_of(const Case& c) {
  LossScaling settings;
  if (c.growth_interval) settings.growth_interval = *c.growth_interval;
  return settings;
}

void make_step(Trainer& trainer, const Dataset& data, const Connections& ranks, std::int64_t k) {
  const Sampler sampler(data.size(), batch, ranks.position.replica, ranks.mesh.replicas);
  const Part part = sampler.part(k);
  trainer.step(data, at::arange(part.begin, part.end), batch);
}

// Trains a case. Returns numbers in the order of the reference. All ranks must have the same scale and skips.
std::vector<double> train_here(const Case& c) {
  const Mesh mesh{static_cast<int>(c.run.strategy.replicas), static_cast<int>(c.run.strategy.stages)};
  std::vector<double> losses(static_cast<std::size_t>(steps));
  std::vector<std::vector<ScaledSteps>> scaled(static_cast<std::size_t>(mesh.world_size()));
  std::vector<std::vector<double>> values(static_cast<std::size_t>(mesh.stages));
  std::mutex mutex;
  run_mesh(mesh, [&](const Connections& ranks) {
    Trainer trainer(resolve(c.run), input(), ranks);
    trainer.scale_loss(settings_of(c));
    const ImageDataset data = split(at::kFloat, trainer.network().channels_last);
    for (std::int64_t k = 0; k < steps; ++k) {
      make_step(trainer, data, ranks, k);
      const std::lock_guard lock(mutex);
      losses[static_cast<std::size_t>(k)] += trainer.take_metrics().loss() / static_cast<double>(batch);
      scaled[static_cast<std::size_t>(ranks.position.replica * mesh.stages + ranks.position.stage)].push_back(
          trainer.take_scaled_steps().value());
    }
    if (ranks.position.replica != 0) return;
    for (const at::Tensor& value : values_of(trainer)) {
      const at::Tensor flat = value.contiguous().flatten();
      auto& own = values[static_cast<std::size_t>(ranks.position.stage)];
      own.insert(own.end(), flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel());
    }
  });
  const LossScaling settings = settings_of(c);
  std::vector<double> all{settings.initial, settings.growth, settings.backoff,
                          static_cast<double>(settings.growth_interval)};
  double skipped = 0;
  for (std::size_t k = 0; k < losses.size(); ++k) {
    for (const auto& of_rank : scaled) {
      CHECK(of_rank[k].loss_scale == scaled[0][k].loss_scale);
      CHECK(of_rank[k].skipped_steps == scaled[0][k].skipped_steps);
    }
    skipped += static_cast<double>(scaled[0][k].skipped_steps);
    all.insert(all.end(), {losses[k], scaled[0][k].loss_scale, skipped});
  }
  for (const auto& of_stage : values) all.insert(all.end(), of_stage.begin(), of_stage.end());
  return all;
}

TEST_CASE("float16: losses, scales and skipped steps are those of PyTorch's GradScaler, under every mesh") {
  const std::string python = TRAINYARD_TORCH_PYTHON;
  if (python.empty()) {
    MESSAGE("skipped: no Python with torch was found when this was configured");
    return;
  }
  const ScratchFolder folder;
  write_images(folder.path() / "images");
  nlohmann::json descriptions = nlohmann::json::array();
  for (const Case& c : cases()) descriptions.push_back(describe(c, "images"));
  std::ofstream(folder.path() / "cases.json") << descriptions;
  const std::string command =
      python + " tests/runner/optimizer/loss_scale_reference.py " + folder.path().string();
  REQUIRE(std::system(command.c_str()) == 0);

  for (const Case& c : cases()) {
    CAPTURE(c.name);
    const std::vector<double> expected = read_numbers(folder.path() / (c.name + ".result"));
    const std::vector<double> found = train_here(c);
    REQUIRE(found.size() == expected.size());
    constexpr std::size_t head = 4, each = 3;
    for (std::size_t i = 0; i < head; ++i) CHECK(found[i] == expected[i]);  // the settings
    for (std::size_t k = 0; k < steps; ++k) {
      CAPTURE(k);
      CHECK(found[head + each * k] == doctest::Approx(expected[head + each * k]).epsilon(1e-3));
      CHECK(found[head + each * k + 1] == expected[head + each * k + 1]);
      CHECK(found[head + each * k + 2] == expected[head + each * k + 2]);
    }
    CHECK(expected[head + each * steps - 1] >= 3);  // there were skipped steps to compare
    const auto parameters = [](const std::vector<double>& of) {
      return std::vector(of.begin() + static_cast<std::ptrdiff_t>(head + each * steps), of.end());
    };
    // Images are in another order than in PyTorch, so sums of a convolution are rounded differently, by 2⁻¹¹.
    CHECK(largest_difference(parameters(found), parameters(expected)) < (c.run.model == "cnn" ? 5e-3 : 1e-5));
  }
}

TEST_CASE(
    "float16: a trainer that resumes from the state of another trains the same bits, including the scale") {
  Case c = cases().front();
  const Connections ranks = unconnected();
  const auto settings = LossScaling{.growth_interval = 3};
  const ImageDataset data = split(at::kFloat, false);
  Trainer whole(resolve(c.run), input(), ranks), resumed(resolve(c.run), input(), ranks);
  whole.scale_loss(settings);
  resumed.scale_loss(settings);
  constexpr std::int64_t cut = 9;  // the scale has changed by then, and one step has succeeded since
  for (std::int64_t k = 0; k < cut; ++k) make_step(whole, data, ranks, k);
  REQUIRE(whole.take_scaled_steps()->loss_scale != settings.initial);
  resumed.restore(whole.state(), cut);
  for (std::int64_t k = cut; k < steps; ++k) {
    make_step(whole, data, ranks, k);
    make_step(resumed, data, ranks, k);
    CHECK(resumed.take_scaled_steps()->loss_scale == whole.take_scaled_steps()->loss_scale);
  }
  const auto expected = whole.state(), found = resumed.state();
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(found[i].name);
    CHECK(at::equal(found[i].value, expected[i].value));
  }
}

TEST_CASE("tf32 is refused on a CPU, and only precisions with a small range scale the loss") {
  CHECK_THROWS_AS(use_precision(find_precision("tf32"), at::kCPU), UserError);
  for (const char* name : {"float32", "bfloat16", "float16"})
    CHECK_NOTHROW(use_precision(find_precision(name), at::kCPU));
  experiments::Run run = cases().front().run;
  run.precision = "bfloat16";
  CHECK_FALSE(Trainer(resolve(run), input(), unconnected()).take_scaled_steps());
}

}  // namespace trainyard::runner::loss_scale_test
