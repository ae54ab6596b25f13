#include "runner/training/checkpoints.h"

#include <array>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/files.h"
#include "base/named_row.h"
#include "models/networks/safetensors.h"
#include "runner/device/step_times.h"
#include "runner/trainer/stage_messages.h"
#include "runner/trainer/whole_tensors.h"

namespace trainyard::runner {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

using Tensors = std::vector<networks::NamedParameter>;

constexpr std::array tensor_types{at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,
                                  at::kInt,   at::kShort,  at::kChar, at::kByte,     at::kBool};

at::ScalarType type_named(const std::string& name) {
  for (const at::ScalarType type : tensor_types)
    if (name == c10::toString(type)) return type;
  throw InternalError("a checkpoint contains a tensor of unknown type " + name);
}

// Contiguous copies on the CPU.
Tensors plain(Tensors tensors) {
  for (auto& tensor : tensors) tensor.value = tensor.value.detach().to(at::kCPU).contiguous();
  return tensors;
}

std::vector<std::string_view> bytes_of(const Tensors& tensors) {
  std::vector<std::string_view> bytes;
  for (const auto& tensor : tensors)
    bytes.emplace_back(static_cast<const char*>(tensor.value.const_data_ptr()), tensor.value.nbytes());
  return bytes;
}

json layout_of(const Tensors& tensors) {
  json layout = json::array();
  for (const auto& tensor : tensors)
    layout.push_back({{"name", tensor.name},
                      {"type", c10::toString(tensor.value.scalar_type())},
                      {"shape", tensor.value.sizes().vec()}});
  return layout;
}

Tensors tensors_of(const json& layout, std::string_view bytes) {
  Tensors tensors;
  for (const json& entry : layout) {
    const auto shape = entry.at("shape").get<std::vector<std::int64_t>>();
    const at::Tensor value = at::empty(shape, type_named(entry.at("type").get<std::string>()));
    if (value.nbytes() > bytes.size()) throw InternalError("a checkpoint ends before its last tensor");
    if (value.nbytes() > 0) std::memcpy(value.mutable_data_ptr(), bytes.data(), value.nbytes());
    bytes.remove_prefix(value.nbytes());
    tensors.push_back({entry.at("name").get<std::string>(), value});
  }
  return tensors;
}

// JSON has no infinity: null means that no loss was finite so far.
json to_json(const WeightSaver::Kept& kept) {
  const bool finite = kept.validation_loss < std::numeric_limits<double>::infinity();
  return {{"any", kept.any}, {"validation_loss", finite ? json(kept.validation_loss) : json(nullptr)}};
}

WeightSaver::Kept kept_from_json(const json& object) {
  WeightSaver::Kept kept{object.at("any").get<bool>()};
  if (const json& loss = object.at("validation_loss"); !loss.is_null()) loss.get_to(kept.validation_loss);
  return kept;
}

// Makes a hard link, so that later weights do not change the file. Copies if the file system has no hard
// links.
void link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code failed;
  fs::remove(to, failed);
  fs::create_hard_link(from, to, failed);
  if (failed) fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}

void check_is(const experiments::Checkpoint& found, const experiments::Launch& launch) {
  if (found.run == launch.key && found.attempt == launch.resumes->attempt) return;
  throw UserError("the checkpoint after epoch " + std::to_string(found.epoch) + " belongs to run " +
                      found.run + ", attempt " + std::to_string(found.attempt) + ", not to attempt " +
                      std::to_string(launch.resumes->attempt),
                  "remove this run's checkpoints to start again", {.file = launch.checkpoints.string()});
}

using SavePolicy = WeightSaver::SavePolicy;

struct NamedKeeps {
  const char* save;
  SavePolicy keeps;
};

constexpr std::array ways_to_save{NamedKeeps{"", SavePolicy::nothing}, NamedKeeps{"last", SavePolicy::last},
                                  NamedKeeps{"best", SavePolicy::best}};

// Names as a tensor of bytes, one name per line.
at::Tensor to_bytes(const Tensors& state) {
  std::string lines;
  for (const auto& tensor : state) lines += tensor.name + "\n";
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(lines.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), lines.data(), lines.size());
  return bytes;
}

std::vector<std::string> from_bytes(const at::Tensor& bytes) {
  std::istringstream lines(std::string(static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()));
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) names.push_back(line);
  return names;
}

// Sends a message with the names, then one message per tensor. All are in host memory, because there any two
// ranks can exchange messages, not only neighbours.
void send(const Tensors& state, Communicator& stages) {
  OutgoingMessages outgoing;
  outgoing.send(stages, 0, 0, {to_bytes(state)});
  for (const auto& tensor : state) outgoing.send(stages, 0, 0, {tensor.value.detach().cpu()});
  outgoing.finish();
}

Tensors receive(int stage, Communicator& stages) {
  const auto next = [&] {
    return IncomingMessage(stages, stage, 0, /*described=*/true, at::kCPU).take().tensors.front();
  };
  Tensors state;
  for (std::string& name : from_bytes(next())) state.push_back({std::move(name), next()});
  return state;
}

}  // namespace

bool Checkpoints::writes() const {
  return launch_.run.checkpoint == "epoch" && !launch_.checkpoints.empty() &&
         (ranks_.position.replica == 0 || own_checkpoint() >= ranks_.mesh.stages * ranks_.mesh.tensor);
}

// One per stage and part, then per server. Replicas with slices of the state have one each.
int Checkpoints::own_checkpoint() const {
  return ranks_.mesh.checkpoint_of(ranks_.position) +
         (launch_.run.strategy.sharding.empty() ? 0 : ranks_.position.replica);
}

std::int64_t Checkpoints::resume(Trainer& trainer, WeightSaver& weights) const {
  const std::int64_t done = launch_.resumes ? launch_.resumes->after_epoch : 0;
  if (done > 0) {
    const auto content = experiments::read_checkpoint(launch_.checkpoints, done, own_checkpoint());
    check_is(content.checkpoint, launch_);
    const json& state = content.checkpoint.state;
    trainer.restore(tensors_of(state.at("tensors"), content.values), state.at("steps").get<std::int64_t>());
    weights.resume(kept_from_json(state.at("kept_weights")));
    if (content.checkpoint.weights && ranks_.position.replica == 0)
      link_or_copy(experiments::kept_weights_file(launch_.checkpoints, done),
                   launch_.records / weights_file_name);
  }
  if (writes()) remove_all_but(1, done);  // later checkpoints were incomplete and will be written again
  return done;
}

void Checkpoints::epoch_done(std::int64_t epoch, const Trainer& trainer, const WeightSaver& weights,
                             RankRecords& records) const {
  if (!writes()) return;
  Stopwatch watch;
  experiments::Checkpoint checkpoint{launch_.key, launch_.attempt, epoch, own_checkpoint(), {}, {}};
  checkpoint.weights = keep_weights(epoch);
  const Tensors state = plain(trainer.state());
  checkpoint.state = {{"steps", trainer.steps_done()},
                      {"kept_weights", to_json(weights.kept())},
                      {"tensors", layout_of(state)}};
  experiments::write_checkpoint(launch_.checkpoints, checkpoint, bytes_of(state));
  remove_all_but(epoch - 1, epoch);
  records.checkpoint(epoch, watch.lap());
}

// Saves a copy of the weights, which is durable before the checkpoint that contains its hash.
std::optional<experiments::FileSum> Checkpoints::keep_weights(std::int64_t epoch) const {
  const fs::path weights = launch_.records / weights_file_name;
  if (own_checkpoint() != 0 || !fs::exists(weights)) return std::nullopt;
  const fs::path kept = experiments::kept_weights_file(launch_.checkpoints, epoch);
  link_or_copy(weights, kept);
  sync_file(kept);
  return experiments::sum_of_file(kept);
}

// Removes files of this stage or part. The saved weights belong to the first one.
void Checkpoints::remove_all_but(std::int64_t first, std::int64_t last) const {
  for (const auto& file : experiments::checkpoint_files(launch_.checkpoints)) {
    if (file.stage.value_or(0) != own_checkpoint()) continue;
    if (file.epoch < first || file.epoch > last) fs::remove(file.path);
  }
}

WeightSaver::WeightSaver(const std::string& save, std::filesystem::path file, const Connections& ranks)
    : keeps_(named_row(ways_to_save, &NamedKeeps::save, "way to save weights", save).keeps),
      file_(std::move(file)),
      ranks_(ranks) {}

void WeightSaver::epoch_done(const networks::Network& stage, const MetricSums& validation) {
  if (keeps_ == SavePolicy::nothing) return;
  if (keeps_ == SavePolicy::best && !is_best(validation)) return;
  if (ranks_.position.replica == 0) write(stage);
}

// The same result on every rank: only the last stages have sums, and all ranks reduce them.
bool WeightSaver::is_best(const MetricSums& validation) {
  const at::Tensor sums = at::tensor({validation.loss(), validation.loss_weight()}, at::kDouble);
  ranks_.replicas->all_reduce(sums)->wait();
  ranks_.stages->all_reduce(sums)->wait();
  const double loss = sums[0].item<double>() / sums[1].item<double>();
  if (std::exchange(kept_.any, true) && !(loss < kept_.validation_loss)) return false;
  if (loss < kept_.validation_loss)
    kept_.validation_loss = loss;  // the first epoch counts even if its loss is NaN
  return true;
}

void WeightSaver::write(const networks::Network& stage) const {
  Tensors state = whole_tensors(stage.state(), *ranks_.parts);
  if (ranks_.position.part > 0) return;
  if (ranks_.position.stage > 0) return send(state, *ranks_.stages);
  for (int other = 1; other < ranks_.mesh.stages; ++other) {
    const Tensors further = receive(other, *ranks_.stages);
    state.insert(state.end(), further.begin(), further.end());
  }
  networks::write_safetensors(file_, state);
}

}  // namespace trainyard::runner
