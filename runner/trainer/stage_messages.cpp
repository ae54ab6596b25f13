#include "runner/trainer/stage_messages.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <string>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"

namespace trainyard::runner {

namespace {

using Integers = std::vector<std::int64_t>;

// A header contains the number of tensors, and for each tensor its type, flags, number of dimensions and
// sizes. Its last integer is the time of the send in nanoseconds.
constexpr std::int64_t header_integers = 128;

std::int64_t nanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

Integers encode(const Layout& layout) {
  Integers header{static_cast<std::int64_t>(layout.size())};
  for (const TensorLayout& tensor : layout) {
    header.push_back(static_cast<std::int64_t>(tensor.dtype));
    header.push_back((tensor.channels_last ? 1 : 0) + (tensor.requires_grad ? 2 : 0));
    header.push_back(static_cast<std::int64_t>(tensor.sizes.size()));
    header.insert(header.end(), tensor.sizes.begin(), tensor.sizes.end());
  }
  if (header.size() >= static_cast<std::size_t>(header_integers)) {
    throw InternalError("a stage sends " + std::to_string(layout.size()) +
                        " tensors, too many for the header of a message");
  }
  header.resize(static_cast<std::size_t>(header_integers));
  header.back() = nanoseconds();
  return header;
}

Layout decode(const at::Tensor& header) {
  const auto* next = header.const_data_ptr<std::int64_t>();
  Layout layout(static_cast<std::size_t>(*next++));
  for (TensorLayout& tensor : layout) {
    tensor.dtype = static_cast<at::ScalarType>(*next++);
    tensor.channels_last = (*next & 1) != 0;
    tensor.requires_grad = (*next++ & 2) != 0;
    const std::int64_t dimensions = *next++;
    tensor.sizes.assign(next, next + dimensions);
    next += dimensions;
  }
  return layout;
}

bool is_channels_last(const at::Tensor& tensor) {
  return tensor.dim() == 4 && !tensor.is_contiguous() && tensor.is_contiguous(at::MemoryFormat::ChannelsLast);
}

// The same values as a contiguous tensor, in the order in which they are sent.
at::Tensor in_transit(const at::Tensor& tensor) {
  return is_channels_last(tensor) ? tensor.permute({0, 2, 3, 1}) : tensor.contiguous();
}

// The tensor that was sent as `flat`.
at::Tensor arrived(const at::Tensor& flat, const TensorLayout& layout) {
  const auto& sizes = layout.sizes;
  at::Tensor tensor = layout.channels_last
                          ? flat.view({sizes[0], sizes[2], sizes[3], sizes[1]}).permute({0, 3, 1, 2})
                          : flat.view(sizes);
  return tensor.set_requires_grad(layout.requires_grad);
}

bool fits(const at::Tensor& flat, const TensorLayout& layout) {
  return flat.scalar_type() == layout.dtype && flat.numel() == layout.numel();
}

}  // namespace

std::int64_t TensorLayout::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

Layout layout_of(const networks::Activations& tensors) {
  Layout layout;
  for (const at::Tensor& tensor : tensors) {
    layout.push_back(
        {tensor.scalar_type(), is_channels_last(tensor), tensor.requires_grad(), tensor.sizes().vec()});
  }
  return layout;
}

std::optional<Layout> Descriptions::layout(const Shape& shape) const {
  const auto found = layouts_.find(shape);
  return found == layouts_.end() ? std::nullopt : std::optional(found->second);
}

IncomingMessage::IncomingMessage(Communicator& communicator, int from, int tag, bool described,
                                 std::optional<at::Device> device)
    : communicator_(&communicator), from_(from), tag_(tag), device_(device.value_or(communicator.device())) {
  if (!described) return;
  header_ = at::empty({header_integers}, at::kLong);
  header_work_ = communicator.receive(header_, from, tag);
}

void IncomingMessage::post_tensors(const Layout& expected) {
  if (std::exchange(posted_, true)) return;
  expected_ = expected;
  for (const TensorLayout& layout : expected) {
    flat_.push_back(at::empty({layout.numel()}, at::TensorOptions(layout.dtype).device(device_)));
    if (layout.numel() > 0) works_.push_back(communicator_->receive(flat_.back(), from_, tag_));
  }
}

double IncomingMessage::wait_for_sender() {
  const std::int64_t begin = nanoseconds();
  if (const auto work = std::exchange(header_work_, nullptr)) work->wait();
  if (!header_.defined() || !communicator_->capabilities().same_clock) return 0;
  const std::int64_t sent = header_.const_data_ptr<std::int64_t>()[header_integers - 1];
  return 1e-9 * static_cast<double>(nanoseconds() - std::max(sent, begin));
}

IncomingMessage::Content IncomingMessage::take() {
  wait_for_sender();
  if (!header_.defined() && !posted_)
    throw InternalError("a message has neither a header nor a known layout");
  Content content{header_.defined() ? decode(header_) : std::move(expected_), {}};
  post_tensors(content.layout);
  if (!std::equal(flat_.begin(), flat_.end(), content.layout.begin(), content.layout.end(), fits)) {
    throw InternalError("a stage has sent other tensors than its neighbour expects");
  }
  for (auto& work : works_) work->wait();
  for (std::size_t i = 0; i < flat_.size(); ++i)
    content.tensors.push_back(arrived(flat_[i], content.layout[i]));
  return content;
}

void OutgoingMessages::send(Communicator& communicator, int to, int tag, const networks::Activations& tensors,
                            bool described) {
  const at::NoGradGuard no_grad;
  if (described)
    works_.push_back(communicator.send(at::tensor(encode(layout_of(tensors)), at::kLong), to, tag));
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() == 0) continue;
    works_.push_back(communicator.send(in_transit(tensor.detach()), to, tag));
  }
}

void OutgoingMessages::finish() {
  for (auto& work : works_) work->wait();
  works_.clear();
}

}  // namespace trainyard::runner
