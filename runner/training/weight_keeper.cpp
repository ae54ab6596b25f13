#include "runner/training/weight_keeper.h"

#include <array>
#include <cstring>
#include <sstream>
#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "base/named_row.h"
#include "models/networks/safetensors.h"
#include "runner/trainer/stage_messages.h"

namespace trainyard::runner {

namespace {

using Keeps = WeightKeeper::Keeps;

struct NamedKeeps {
  const char* save;
  Keeps keeps;
};

constexpr std::array ways_to_save{NamedKeeps{"", Keeps::nothing}, NamedKeeps{"last", Keeps::last},
                                  NamedKeeps{"best", Keeps::best}};

using Tensors = std::vector<networks::NamedParameter>;

// Names as a tensor of bytes, a line each.
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

// A message with the names, then one a tensor; all in host memory, where any two ranks can talk, also those
// that are no neighbours.
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

WeightKeeper::WeightKeeper(const std::string& save, std::filesystem::path file, const Connections& ranks)
    : keeps_(models::named_row(ways_to_save, &NamedKeeps::save, "way to save weights", save).keeps),
      file_(std::move(file)),
      ranks_(ranks) {}

void WeightKeeper::epoch_done(const networks::Network& stage, const MetricSums& validation) {
  if (keeps_ == Keeps::nothing) return;
  if (keeps_ == Keeps::best && !is_best(validation)) return;
  if (ranks_.position.replica == 0) write(stage);
}

// The same answer on every rank: the last stages hold the sums, and all ranks add up what they hold.
bool WeightKeeper::is_best(const MetricSums& validation) {
  const at::Tensor sums =
      at::tensor({validation.loss(), static_cast<double>(validation.weight())}, at::kDouble);
  ranks_.replicas->all_reduce(sums)->wait();
  ranks_.stages->all_reduce(sums)->wait();
  const double loss = sums[0].item<double>() / sums[1].item<double>();
  if (std::exchange(kept_.any, true) && !(loss < kept_.validation_loss)) return false;
  if (loss < kept_.validation_loss)
    kept_.validation_loss = loss;  // the first epoch counts even where its loss is not a number
  return true;
}

void WeightKeeper::write(const networks::Network& stage) const {
  Tensors state = stage.state();
  if (ranks_.position.stage > 0) return send(state, *ranks_.stages);
  for (int other = 1; other < ranks_.mesh.stages; ++other) {
    const Tensors further = receive(other, *ranks_.stages);
    state.insert(state.end(), further.begin(), further.end());
  }
  networks::write_safetensors(file_, state);
}

}  // namespace trainyard::runner
