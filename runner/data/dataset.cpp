#include "runner/data/dataset.h"

#include <string>
#include <variant>

#include "base/error.h"
#include "runner/data/image_dataset.h"
#include "runner/data/row_dataset.h"
#include "runner/data/text_dataset.h"
#include "runner/device/device.h"

namespace trainyard::runner {

Batch Dataset::for_network(const at::Tensor& indices, bool inputs, bool targets) const {
  Batch batch = inputs && targets ? gather(indices)
                                  : Batch{inputs ? this->inputs(indices) : networks::Activations(),
                                          targets ? this->targets(indices) : at::Tensor(), indices};
  if (inputs && reads_targets_) batch.inputs.push_back(targets ? batch.targets : this->targets(indices));
  return batch;
}

std::unique_ptr<Dataset> Dataset::augmented(const Augmentation& augmentation, std::uint64_t,
                                            std::int64_t) const {
  throw UserError(
      "augmentation \"" + std::string(augmentation.name) + "\" is for images, but this data set has none",
      "remove augmentation, or use a data set of images");
}

bool fits_beside_network(std::int64_t bytes, std::int64_t free_bytes) {
  return bytes <= free_bytes / 2;
}

void place(const DataParts& parts, at::Device device, Communicator& replicas) {
  if (device.is_cpu()) return;
  for (const auto* part : parts.all()) {
    const bool fits = fits_beside_network((*part)->nbytes(), device_memory(device).free_bytes);
    (*part)->serve(device, holds_on_all(replicas, fits));
  }
}

DataParts make_parts(const models::Splits& splits, const Task& task, at::ScalarType dtype, bool channels_last,
                     const std::optional<models::TextForm>& form) {
  std::vector<ChannelStatistics> statistics;  // of the training split
  const auto* train = std::get_if<models::Images>(&splits.train);
  if (train && task.target() == Target::input) statistics = unit_scale(train->shape.channels);
  if (train && task.target() == Target::label) statistics = channel_statistics(*train);
  const auto part = [&](const models::Samples& samples) -> std::unique_ptr<Dataset> {
    const auto* images = std::get_if<models::Images>(&samples);
    const auto* texts = std::get_if<models::Texts>(&samples);
    const auto* pairs = std::get_if<models::TextPairs>(&samples);
    const auto* windows = std::get_if<models::Windows>(&samples);
    if (images && (task.target() == Target::label || task.target() == Target::input))
      return std::make_unique<ImageDataset>(*images, statistics, task.target(), dtype, channels_last);
    if (texts && task.target() == Target::label) return std::make_unique<TextDataset>(*texts, form);
    if (pairs && task.target() == Target::translation)
      return std::make_unique<PairSplit>(*pairs, form.has_value());
    const auto* rows = std::get_if<models::Rows>(&samples);
    if (rows && task.target() == Target::label) return std::make_unique<RowDataset>(*rows, dtype);
    if (windows && task.target() == Target::next_token) return std::make_unique<WindowSplit>(*windows);
    throw UserError("the data set is not for the task " + std::string(task.name),
                    "use a data set that `trainyard list models` lists for the model");
  };
  DataParts parts{part(splits.train), part(splits.validation), part(splits.test)};
  if (task.own_loss)
    for (auto* each : parts.all()) (*each)->read_targets();
  return parts;
}

}  // namespace trainyard::runner
