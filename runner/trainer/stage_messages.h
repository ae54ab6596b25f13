// Messages between pipeline stages: lists of tensors with a layout that may differ in every message.
// - A message is a header of fixed length with the layout of the tensors, followed by each tensor.
// - The header is sent when its sender has computed. So the wait for the header is the wait for the
//   neighbour, and the time after that is the transfer.
// - The receive of the header can always be posted ahead. Those of the tensors can be posted once their sizes
//   are known.
// - If messages match by order (`Capabilities::ordered_messages`), the host would have to read a header
//   before it posts the next receive, and the GPU would idle. Then a message has a header only if its
//   receiver cannot know its layout. Both sides must agree on that (`Descriptions`).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/networks/network.h"
#include "runner/communicator/communicator.h"

namespace trainyard::runner {

struct TensorLayout {
  at::ScalarType dtype = at::kFloat;
  bool channels_last = false;  // four dimensions, memory order [0, 2, 3, 1]
  bool requires_grad = false;  // the receiver sends a gradient back
  std::vector<std::int64_t> sizes;
  std::int64_t numel() const;
};
using Layout = std::vector<TensorLayout>;

Layout layout_of(const networks::Activations& tensors);

// Decides which messages of activations have a header, and stores the layouts of the others. The first
// message of a shape has a header. Sender and receiver each have their own object and call it once per
// message, in the order of the messages. They pass the same `shape`, which contains everything that the
// layout depends on.
class Descriptions {
 public:
  using Shape = std::vector<std::int64_t>;
  explicit Descriptions(bool ordered_messages) : ordered_messages_(ordered_messages) {}
  bool next_is_described(const Shape& shape) { return !ordered_messages_ || met_.insert(shape).second; }
  void learn(const Shape& shape, Layout layout) { layouts_[shape] = std::move(layout); }
  std::optional<Layout> layout(const Shape& shape) const;  // empty if it is not known yet

 private:
  bool ordered_messages_;
  std::set<Shape> met_;
  std::map<Shape, Layout> layouts_;
};

// A pending receive of one message.
class IncomingMessage {
 public:
  // Posts the receive of the header if there is one. The tensors arrive on `device`, by default the
  // communicator's device. It is the device of the sender's tensors.
  IncomingMessage(Communicator& communicator, int from, int tag, bool described = true,
                  std::optional<at::Device> device = {});
  // Posts the receives of the tensors with the types and sizes of `expected`. A second call has no effect. If
  // messages match by order, call it in that order.
  void post_tensors(const Layout& expected);
  bool posted() const { return posted_; }
  // Waits for the header, if there is one. Returns the seconds of this wait after the sender has begun to
  // send: the transfer time. 0 if the ranks do not have the same clock.
  double wait_for_sender();
  // Waits for the tensors. They have `requires_grad` as at the sender. InternalError if their layout is not
  // the expected one.
  struct Content {
    Layout layout;
    networks::Activations tensors;
  };
  Content take();

 private:
  Communicator* communicator_;
  int from_;
  int tag_;
  at::Device device_;
  at::Tensor header_;  // undefined if the message has none
  std::unique_ptr<Communicator::Work> header_work_;
  bool posted_ = false;
  Layout expected_;             // after `post_tensors`
  networks::Activations flat_;  // one flat tensor per tensor
  std::vector<std::unique_ptr<Communicator::Work>> works_;
};

// Messages in flight. Their tensors are kept alive and must not change until `finish` has returned.
class OutgoingMessages {
 public:
  void send(Communicator& communicator, int to, int tag, const networks::Activations& tensors,
            bool described = true);
  void finish();

 private:
  std::vector<std::unique_ptr<Communicator::Work>> works_;
};

}  // namespace trainyard::runner
