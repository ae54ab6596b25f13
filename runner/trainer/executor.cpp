#include "runner/trainer/executor.h"

#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"

namespace trainyard::runner {

using Kind = Action::Kind;

namespace {

// Number of messages whose receives are posted while the stage computes, each with its own memory.
constexpr std::size_t posted_ahead = 2;

int tag_of(const Action& action) {
  const bool gradients = action.kind == Kind::receive_gradients || action.kind == Kind::send_gradients;
  return 2 * action.micro_batch + (gradients ? 1 : 0);
}

networks::Activations with_gradient(const networks::Activations& tensors) {
  networks::Activations some;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(some),
               [](const at::Tensor& tensor) { return tensor.requires_grad(); });
  return some;
}

// The gradient of a received tensor, in the memory format of that tensor.
at::Tensor gradient_of(const at::Tensor& input) {
  if (!input.grad().defined()) return at::zeros_like(input);  // the stage's output does not depend on it
  return input.grad().contiguous(input.suggest_memory_format());
}

}  // namespace

// One run of the actions.
class ExecutorRun {
  // Tensors that a stage keeps for a micro-batch in flight.
  struct Live {
    networks::Activations inputs;
    networks::Activations outputs;
    networks::Activations gradients;  // of the outputs that require a gradient
    at::Tensor loss;
  };

  struct Expected {
    Action action;
    bool described;
    IncomingMessage message;
  };

 public:
  ExecutorRun(Executor& executor, const StageWork& work, Reducer& reducer, StepTimes& times)
      : executor_(executor),
        stages_(executor.stages_),
        ordered_(stages_.capabilities().ordered_messages),
        work_(work),
        reducer_(reducer),
        live_(work.samples.size()),
        shapes_(work.samples.size()),
        watch_(times) {}

  bool run(const std::vector<Action>& all) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(actions_),
                 [&](const Action& action) { return is_work(action.micro_batch); });
    std::copy_if(actions_.begin(), actions_.end(), std::back_inserter(receives_), [](const Action& action) {
      return action.kind == Kind::receive_activations || action.kind == Kind::receive_gradients;
    });
    const auto backward = std::find_if(actions_.rbegin(), actions_.rend(),
                                       [](const Action& action) { return action.kind == Kind::backward; });
    const bool trains = backward != actions_.rend();
    const at::AutoGradMode gradients(work_.context.training);
    for (const Action& action : actions_) {
      post_receives();
      if (trains && &action == &*backward) reducer_.last_backward();
      take(action);
    }
    outgoing_.finish();
    watch_.lap(&TimeParts::transfer);
    return trains;
  }

 private:
  bool first() const { return stages_.rank() == 0; }
  bool last() const { return stages_.rank() == stages_.size() - 1; }
  const at::Tensor& samples(int micro_batch) const {
    return work_.samples.at(static_cast<std::size_t>(micro_batch));
  }
  Live& live(int micro_batch) { return live_.at(static_cast<std::size_t>(micro_batch)); }

  // With synchronised batch normalisation, a replica without samples takes part too.
  bool is_work(int micro_batch) const {
    return samples(micro_batch).size(0) > 0 || (work_.context.training && work_.context.sum_over_replicas);
  }

  void take(const Action& action) {
    switch (action.kind) {
      case Kind::receive_activations:
        live(action.micro_batch).inputs = receive_activations(action);
        break;
      case Kind::receive_gradients:
        live(action.micro_batch).gradients = receive(action).tensors;
        break;
      case Kind::forward:
        forward(action.micro_batch);
        break;
      case Kind::backward:
        backward(action.micro_batch);
        break;
      case Kind::send_activations:
        send_activations(action);
        break;
      case Kind::send_gradients:
        send_gradients(action);
        break;
    }
  }

  void forward(int micro_batch) {
    Live& live = this->live(micro_batch);
    Batch batch;
    if (first() || last()) batch = work_.gather(samples(micro_batch), first(), last());
    if (first()) live.inputs = std::move(batch.inputs);
    watch_.lap(&TimeParts::data, micro_batch);
    networks::ForwardContext context = work_.context;
    context.samples = samples(micro_batch);
    if (last() && work_.positions) {
      context.positions = work_.positions(batch.targets);
      batch.targets = batch.targets.flatten().index_select(0, context.positions);
    }
    live.outputs = forward_in(executor_.precision_, executor_.network_, live.inputs, context);
    if (last()) live.loss = work_.loss(samples(micro_batch), live.outputs, batch.targets);
    if (last() || !context.training) live.inputs = with_gradient(live.inputs);
    if (last()) live.outputs.clear();
    watch_.lap(&TimeParts::forward, micro_batch);
  }

  void backward(int micro_batch) {
    Live& live = this->live(micro_batch);
    if (last()) {
      if (live.loss.requires_grad()) live.loss.backward();
    } else {
      const networks::Activations outputs = with_gradient(live.outputs);
      if (!outputs.empty()) torch::autograd::backward(outputs, live.gradients);
    }
    live.loss.reset();
    live.outputs.clear();
    live.gradients.clear();
    if (first()) live.inputs.clear();
    watch_.lap(&TimeParts::backward, micro_batch);
  }

  void send_activations(const Action& action) {
    Live& live = this->live(action.micro_batch);
    outgoing_.send(stages_, stages_.rank() + 1, tag_of(action), live.outputs,
                   executor_.sent_.next_is_described(shape(action.micro_batch)));
    if (!work_.context.training) live.outputs.clear();
    watch_.lap(&TimeParts::transfer, action.micro_batch);
  }

  void send_gradients(const Action& action) {
    Live& live = this->live(action.micro_batch);
    networks::Activations gradients;
    for (const at::Tensor& input : with_gradient(live.inputs)) gradients.push_back(gradient_of(input));
    outgoing_.send(stages_, stages_.rank() - 1, tag_of(action), gradients, !ordered_);
    live.inputs.clear();
    watch_.lap(&TimeParts::transfer, action.micro_batch);
  }

  networks::Activations receive_activations(const Action& action) {
    IncomingMessage::Content content = receive(action);
    executor_.received_.learn(shape(action.micro_batch), std::move(content.layout));
    return std::move(content.tensors);
  }

  IncomingMessage::Content receive(const Action& action) {
    if (posted_.empty() || posted_.front().action != action)
      throw InternalError("a stage receives messages in the wrong order");
    watch_.lap(&TimeParts::transfer, action.micro_batch);
    const double under_way = posted_.front().message.wait_for_sender();
    watch_.lap(&TimeParts::bubble, action.micro_batch);
    watch_.move(under_way, &TimeParts::bubble, &TimeParts::transfer);
    const bool described = posted_.front().described;
    if (!described) post_tensors(posted_.front());
    IncomingMessage::Content content = posted_.front().message.take();
    posted_.pop_front();
    // Without a header, the wait for the neighbour cannot be separated from the transfer.
    watch_.lap(described ? &TimeParts::transfer : &TimeParts::bubble, action.micro_batch);
    return content;
  }

  // Posts the next receives.
  void post_receives() {
    while (posted_.size() < posted_ahead && next_receive_ < receives_.size()) {
      const Action& action = receives_[next_receive_++];
      const int from = stages_.rank() + (action.kind == Kind::receive_activations ? -1 : 1);
      const bool described = is_described(action);
      posted_.push_back({action, described, IncomingMessage(stages_, from, tag_of(action), described)});
    }
    std::set<Kind> blocked;  // if messages match by order, receives of one kind are posted in their order
    for (Expected& expected : posted_) {
      if (blocked.contains(expected.action.kind)) continue;
      post_tensors(expected);
      if (ordered_ && !expected.message.posted()) blocked.insert(expected.action.kind);
    }
  }

  // Posts the receives of a message's tensors if their layout is known.
  void post_tensors(Expected& expected) {
    if (expected.message.posted()) return;
    if (const auto layout = expected_layout(expected.action)) expected.message.post_tensors(*layout);
  }

  // True if the message has a header. If messages match by order, gradients have none, because their layout
  // is that of the outputs.
  bool is_described(const Action& action) {
    if (action.kind == Kind::receive_gradients) return !ordered_;
    return executor_.received_.next_is_described(shape(action.micro_batch));
  }

  // The layout of a message's tensors if it is known in advance: for activations of a known shape, and for
  // gradients once their outputs are computed.
  std::optional<Layout> expected_layout(const Action& action) {
    if (action.kind == Kind::receive_activations)
      return executor_.received_.layout(shape(action.micro_batch));
    const Live& live = this->live(action.micro_batch);
    if (live.outputs.empty()) return std::nullopt;
    Layout layout = layout_of(with_gradient(live.outputs));
    for (TensorLayout& gradient : layout) gradient.requires_grad = false;
    return layout;
  }

  // Everything that the layout of the activations depends on. In evaluation they do not require a gradient.
  const std::vector<std::int64_t>& shape(int micro_batch) {
    auto& known = shapes_[static_cast<std::size_t>(micro_batch)];
    if (!known) {
      known = work_.shape(samples(micro_batch));
      known->push_back(work_.context.training ? 1 : 0);
    }
    return *known;
  }

  Executor& executor_;
  Communicator& stages_;
  const bool ordered_;  // messages match by order, not by tag
  const StageWork& work_;
  Reducer& reducer_;
  std::vector<Live> live_;  // per micro-batch
  std::vector<std::optional<std::vector<std::int64_t>>> shapes_;
  std::vector<Action> actions_;
  std::vector<Action> receives_;
  std::size_t next_receive_ = 0;
  std::deque<Expected> posted_;
  OutgoingMessages outgoing_;
  PartWatch watch_;
};

bool Executor::run(const std::vector<Action>& actions, const StageWork& work, Reducer& reducer,
                   StepTimes& times) {
  return ExecutorRun(*this, work, reducer, times).run(actions);
}

}  // namespace trainyard::runner
