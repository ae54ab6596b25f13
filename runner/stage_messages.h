// What stages of a pipeline send one another: a list of tensors, of any kinds and sizes, that may look
// different in every message. A message is a header of fixed length, which says what the tensors look like,
// and then each tensor. The header leaves when its sender has computed, so waiting for it is waiting for the
// neighbour, and what is waited after that is the transfer. The header's receive can always be posted ahead,
// the tensors' as soon as somebody knows how many numbers they will hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/networks/layers.h"
#include "runner/communicator.h"

namespace trainyard::runner {

struct TensorLayout {
  at::ScalarType dtype = at::kFloat;
  bool channels_last = false;  // of four dimensions, in memory [0, 2, 3, 1]
  bool requires_grad = false;  // the receiver sends a gradient back
  std::vector<std::int64_t> sizes;
  std::int64_t numel() const;
};
using Layout = std::vector<TensorLayout>;

Layout layout_of(const networks::Activations& tensors);

// One message that is to come.
class IncomingMessage {
 public:
  IncomingMessage(Communicator& communicator, int from, int tag);  // posts the header's receive
  // Posts the tensors' receives, whose types and numbers must be those of `expected`. No effect the second
  // time.
  void post_tensors(const Layout& expected);
  // Until it has begun to send. Returns how long ago that was, as far as this rank waited for it: what the
  // message took, not its sender. 0 where the ranks have no clock in common.
  double wait_for_sender();
  // Waits for the rest; then `tensors` have `requires_grad` as at the sender. InternalError where they are
  // not what was expected.
  struct Content {
    Layout layout;
    networks::Activations tensors;
  };
  Content take();

 private:
  Communicator* communicator_;
  int from_;
  int tag_;
  at::Tensor header_;
  std::unique_ptr<Communicator::Work> header_work_;
  bool posted_ = false;
  networks::Activations flat_;  // as they travel
  std::vector<std::unique_ptr<Communicator::Work>> works_;
};

// Messages under way: their tensors stay alive and must not change until `finish` has returned.
class OutgoingMessages {
 public:
  void send(Communicator& communicator, int to, int tag, const networks::Activations& tensors);
  void finish();

 private:
  std::vector<std::unique_ptr<Communicator::Work>> works_;
};

}  // namespace trainyard::runner
