// One split of a data set (training, validation or test) as tensors in memory. Batches are gathered by sample
// index, without work per sample. Only data sets depend on the kind of a sample and on its weight.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/catalogue.h"
#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/data/task.h"

namespace trainyard::runner {

// The samples of one step. `indices` below always means sample indices, int64 [batch] on the
// CPU.
struct Batch {
  networks::Activations inputs;  // inputs of the first layer; the first dimension of each is the batch
  at::Tensor targets;            // targets of the loss and the metrics
  at::Tensor samples;            // int64 [batch]: index of each sample in the split
  std::int64_t size() const { return samples.size(0); }
};

// How images are augmented: "none", "flip", "crop" or "flip-crop" (runner/data/image_dataset.h).
struct Augmentation {
  std::string_view name;
  bool flips;
  bool crops;
  bool any() const { return flips || crops; }
};
const Augmentation& find_augmentation(std::string_view name);  // UserError for an unknown name

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;  // samples

  // Inputs and targets of some samples. A stage that needs only one of them gathers only that one.
  virtual networks::Activations inputs(const at::Tensor& indices) const = 0;
  virtual at::Tensor targets(const at::Tensor& indices) const = 0;
  virtual Batch gather(const at::Tensor& indices) const {  // both
    return {inputs(indices), targets(indices), indices};
  }

  // For a network with its own loss, which reads the targets as its last input. A sample then weighs 1.
  void read_targets() { reads_targets_ = true; }
  // As the network reads them: with the targets behind the inputs, if it has its own loss.
  Batch for_network(const at::Tensor& indices, bool inputs = true, bool targets = true) const;

  // Everything that the sizes of a model's activations depend on. Two batches with equal shapes have equal
  // sizes. By default the number of samples. For padded batches, the sizes of all inputs, concatenated.
  virtual std::vector<std::int64_t> shape(const at::Tensor& indices) const { return {indices.size(0)}; }

  // The same samples with all batches padded like the batch at `indices`, rounded up so that shapes repeat
  // (`repeated_length` in runner/data/text_dataset.h). It shares the memory. Null if all batches of one size
  // have the same shape.
  virtual std::shared_ptr<const Dataset> padded_like(const at::Tensor& /*indices*/) const { return nullptr; }

  // The same samples with all batches padded like the batch of a whole step, whose samples are at `indices`. So
  // a network that reads padding computes the same for the batch and for its parts. It shares the memory. Null
  // if the network does not read padding.
  virtual std::shared_ptr<const Dataset> in_step(const at::Tensor& /*indices*/) const { return nullptr; }

  // The number of elements in the mean loss of some samples: samples, target tokens without padding, or
  // pixels. Every rank can compute it for any samples.
  std::int64_t weight(const at::Tensor& indices) const {
    return reads_targets_ ? indices.size(0) : weight_of(indices);
  }

  // The standard deviation by which targets that are numbers were divided. 0: they were not.
  virtual double target_deviation() const { return 0; }

  // From now on batches are on `device`. If `resident`, the data is there too. Otherwise the data is in
  // pinned memory, and a batch is copied during the previous step.
  virtual void serve(at::Device device, bool resident) = 0;
  virtual bool gathers_on_host() const { return false; }  // batches for a GPU are gathered by the host
  virtual std::int64_t nbytes() const = 0;                // size of the data that batches are gathered from

  // Sort keys, int64 [sample]: samples with similar keys have similar lengths. Undefined if all samples have
  // the same length.
  virtual at::Tensor length_keys() const { return {}; }

  // The same samples with the augmentation of `epoch`. It shares the memory. By default UserError: only images
  // are augmented.
  virtual std::unique_ptr<Dataset> augmented(const Augmentation& augmentation, std::uint64_t seed,
                                             std::int64_t epoch) const;

 private:
  virtual std::int64_t weight_of(const at::Tensor& indices) const = 0;

  bool reads_targets_ = false;
};

// All splits of a data set.
using DataParts = models::Parts<std::unique_ptr<Dataset>>;

// Lets the splits serve `device`, the training split first, and makes those resident that fit. A split is
// resident on all `replicas` or on none, because the replay of steps depends on it. No effect on the CPU.
// Collective.
void place(const DataParts& parts, at::Device device, Communicator& replicas);

// True if `bytes` of data may be on a GPU with `free_bytes`. Half of the free memory is left for the network.
bool fits_beside_network(std::int64_t bytes, std::int64_t free_bytes);

// The splits for `task`, with values of `dtype`. Images are [height, width, channel] in memory if
// `channels_last`. `form`: of an exported network. UserError if the data is not for this task.
DataParts make_parts(const models::Splits& splits, const Task& task, at::ScalarType dtype, bool channels_last,
                     const std::optional<models::TextForm>& form = {});

}  // namespace trainyard::runner
