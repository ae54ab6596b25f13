// One part of a data set (training, validation or test) as tensors that stay in memory: batches are gathered
// by the numbers of their samples, without work for each sample. What a sample is (an image, a text, a pair
// of texts) and what it weighs is known here and nowhere above.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/datasets/datasets.h"
#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/data/task.h"

namespace trainyard::runner {

// What one step eats.

struct Batch {
  networks::Activations inputs;  // what the first layer takes; the first dimension of each is the batch
  at::Tensor targets;            // what the task holds the network's output against
  at::Tensor samples;            // int64 [batch]: the number of each sample in its part of the data set
  std::int64_t size() const { return samples.size(0); }
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;  // samples

  // Of the samples at `places`, int64 [batch]. A stage that needs only one of inputs and targets gathers
  // that.
  virtual networks::Activations inputs(const at::Tensor& places) const = 0;
  virtual at::Tensor targets(const at::Tensor& places) const = 0;
  virtual Batch gather(const at::Tensor& places) const;  // both

  // What the sizes of a model's activations follow from: two batches with equal shapes have equal sizes. The
  // number of samples; where batches are padded, the sizes of all inputs one behind the other.
  virtual std::vector<std::int64_t> shape(const at::Tensor& places) const;

  // The same samples, whose batches are all padded as the one at `places` is, rounded up to one of few
  // lengths (runner/data/text_dataset.h), so that shapes repeat. It shares what is in memory. Nothing
  // where all batches of a size have one shape.
  virtual std::shared_ptr<const Dataset> padded_like(const at::Tensor& places) const;

  // What the mean loss of the samples at `places` is a mean over: samples, non-padding target tokens or
  // pixels. Every rank can tell that of any samples.
  virtual std::int64_t weight(const at::Tensor& places) const = 0;

  // From now on batches lie on `device`, and so does what they are gathered from where `resident`; else that
  // is in pinned memory, and a batch is copied beside the step before it. Places stay on the CPU.
  virtual void serve(at::Device device, bool resident) = 0;
  virtual bool gathers_on_host() const { return false; }  // each batch of what is served off the CPU
  virtual std::int64_t nbytes() const = 0;                // of what batches are gathered from

  // Samples whose keys are near are of about one length: int64 [sample]; undefined where all are equally
  // long.
  virtual at::Tensor length_keys() const;

  // The same samples as `epoch` sees them, `kind` as in runner/data/image_dataset.h. Shares what is in
  // memory. UserError for other data than images, unless nothing is to be changed.
  virtual std::unique_ptr<Dataset> augmented(std::string_view kind, std::uint64_t seed,
                                             std::int64_t epoch) const = 0;
};

// All parts.
struct DataParts {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation;
  std::unique_ptr<Dataset> test;
};

// Has the parts serve `device`, the training part first where not all of them fit there; where a part does
// not fit beside the network of one of `replicas`, on none of them is it resident, because whether steps are
// replayed depends on it. No effect on the CPU. Collective.
void place(const DataParts& parts, at::Device device, Communicator& replicas);

// Whether `bytes` of data may lie on a GPU of which `free_bytes` are free: half of them are left to the
// network.
bool fits_beside_network(std::int64_t bytes, std::int64_t free_bytes);

// The parts of `splits` as `task` wants them; numbers are `dtype`, images lie in memory as [height, width,
// channel] where `channels_last` says so. UserError where the data is not of the task's kind.
DataParts make_parts(const models::Splits& splits, const Task& task, at::ScalarType dtype,
                     bool channels_last);

}  // namespace trainyard::runner
