// What stages of a pipeline send one another: a list of tensors, of any kinds and sizes, that may look
// different in every message. A message is a header of fixed length, which says what the tensors look like,
// and then each tensor. The header leaves when its sender has computed, so waiting for it is waiting for the
// neighbour, and what is waited after that is the transfer. The header's receive can always be posted ahead,
// the tensors' as soon as somebody knows how many numbers they will hold.
//
// If messages match by order alone (`Capabilities::ordered_messages`), the host would have to read a header
// before it can post the next receive, and the GPU would stand still. There a message has a header only if
// its receiver cannot know its layout, and both sides must agree on that (`Descriptions`).
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
  bool channels_last = false;  // of four dimensions, in memory [0, 2, 3, 1]
  bool requires_grad = false;  // the receiver sends a gradient back
  std::vector<std::int64_t> sizes;
  std::int64_t numel() const;
};
using Layout = std::vector<TensorLayout>;

Layout layout_of(const networks::Activations& tensors);

// Which messages of activations have a header, and what those without one look like. Sender and receiver each
// have their own and ask it once a message, in the order of the messages, with the same numbers `shape`: all
// that the layout depends on. So they agree: the first of a shape has a header.
class Descriptions {
 public:
  using Shape = std::vector<std::int64_t>;
  explicit Descriptions(bool ordered_messages) : ordered_messages_(ordered_messages) {}
  bool next_is_described(const Shape& shape) { return !ordered_messages_ || met_.insert(shape).second; }
  void learn(const Shape& shape, Layout layout) { layouts_[shape] = std::move(layout); }
  std::optional<Layout> layout(const Shape& shape) const;  // where it was learnt

 private:
  bool ordered_messages_;
  std::set<Shape> met_;
  std::map<Shape, Layout> layouts_;
};

// One message that is to come.
class IncomingMessage {
 public:
  // Posts the header's receive, where it has one. The tensors arrive where the sender has them: on the
  // communicator's device, or on the one that is given.
  IncomingMessage(Communicator& communicator, int from, int tag, bool described = true,
                  std::optional<at::Device> device = {});
  // Posts the tensors' receives, whose types and numbers must be those of `expected`. No effect the second
  // time. In order, where messages meet so.
  void post_tensors(const Layout& expected);
  bool posted() const { return posted_; }
  // Until it has begun to send, where it has a header. Returns how long ago that was, as far as this rank
  // waited for it: what the message took, not its sender. 0 where the ranks have no clock in common.
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
  at::Device device_;
  at::Tensor header_;  // undefined: it has none
  std::unique_ptr<Communicator::Work> header_work_;
  bool posted_ = false;
  Layout expected_;             // once posted
  networks::Activations flat_;  // as they travel
  std::vector<std::unique_ptr<Communicator::Work>> works_;
};

// Messages under way: their tensors stay alive and must not change until `finish` has returned.
class OutgoingMessages {
 public:
  void send(Communicator& communicator, int to, int tag, const networks::Activations& tensors,
            bool described = true);
  void finish();

 private:
  std::vector<std::unique_ptr<Communicator::Work>> works_;
};

}  // namespace trainyard::runner
