#include "runner/data/dataset.h"

#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "runner/data/image_dataset.h"
#include "runner/data/text_dataset.h"
#include "runner/device/device.h"

namespace trainyard::runner {

namespace {

// Makes the splits of one data set. The statistics come from the training split.
class PartMaker {
 public:
  PartMaker(const models::Samples& train, const Task& task, at::ScalarType dtype, bool channels_last)
      : task_(task), dtype_(dtype), channels_last_(channels_last) {
    const auto* images = std::get_if<models::Images>(&train);
    if (images && task.target == Target::input) statistics_ = unit_scale(images->shape.channels);
    if (images && task.target == Target::label) statistics_ = channel_statistics(*images);
  }

  std::unique_ptr<Dataset> operator()(const models::Samples& samples) const {
    const auto* images = std::get_if<models::Images>(&samples);
    const auto* texts = std::get_if<models::Texts>(&samples);
    const auto* pairs = std::get_if<models::TextPairs>(&samples);
    const auto* windows = std::get_if<models::Windows>(&samples);
    if (images && (task_.target == Target::label || task_.target == Target::input))
      return std::make_unique<ImageDataset>(*images, statistics_, task_.target, dtype_, channels_last_);
    if (texts && task_.target == Target::label) return std::make_unique<TextDataset>(*texts);
    if (pairs && task_.target == Target::translation) return std::make_unique<PairSplit>(*pairs);
    if (windows && task_.target == Target::next_token) return std::make_unique<WindowSplit>(*windows);
    throw UserError("the data set is not for the task " + std::string(task_.name),
                    "use a data set that `trainyard list models` lists for the model");
  }

 private:
  const Task& task_;
  at::ScalarType dtype_;
  bool channels_last_;
  std::vector<ChannelStatistics> statistics_;
};

}  // namespace

Batch Dataset::gather(const at::Tensor& indices) const {
  return {inputs(indices), targets(indices), indices};
}

std::vector<std::int64_t> Dataset::shape(const at::Tensor& indices) const {
  return {indices.size(0)};
}

std::shared_ptr<const Dataset> Dataset::padded_like(const at::Tensor&) const {
  return nullptr;
}

at::Tensor Dataset::length_keys() const {
  return {};
}

bool fits_beside_network(std::int64_t bytes, std::int64_t free_bytes) {
  return bytes <= free_bytes / 2;
}

void place(const DataParts& parts, at::Device device, Communicator& replicas) {
  if (device.is_cpu()) return;
  for (Dataset* part : {parts.train.get(), parts.validation.get(), parts.test.get()}) {
    const bool fits = fits_beside_network(part->nbytes(), free_device_bytes(device));
    part->serve(device, holds_on_all(replicas, fits));
  }
}

DataParts make_parts(const models::Splits& splits, const Task& task, at::ScalarType dtype,
                     bool channels_last) {
  const PartMaker part(splits.train, task, dtype, channels_last);
  DataParts parts;
  parts.train = part(splits.train);
  parts.validation = part(splits.validation);
  parts.test = part(splits.test);
  return parts;
}

}  // namespace trainyard::runner
