#include "models/chain.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace trainyard::models {

namespace {

std::int64_t convolved(std::int64_t length, const Kernel& kernel) {
  return (length + 2 * kernel.padding - kernel.size) / kernel.stride + 1;
}

// The padding at the far edge with which a transposed convolution turns `length` into `wanted`.
std::int64_t output_padding(std::int64_t length, std::int64_t wanted, const Kernel& kernel) {
  const std::int64_t rest = wanted - ((length - 1) * kernel.stride - 2 * kernel.padding + kernel.size);
  if (rest < 0 || rest >= kernel.stride)
    throw InternalError("no transposed convolution has this output size");
  return rest;
}

constexpr double largest_size = 65536;

template <class T>
const T& value(const Hyperparameters& values, const std::string& name, const char* type) {
  const auto found = values.find(name);
  if (found == values.end() || !std::holds_alternative<T>(found->second)) {
    throw InternalError(fmt::format("hyper-parameter {} is not {}", name, type));
  }
  return std::get<T>(found->second);
}

}  // namespace

Chain& Chain::add(const std::string& kind, std::map<std::string, std::int64_t> sizes, std::int64_t parameters,
                  std::int64_t multiply_adds) {
  graph_.nodes.push_back({.path = std::to_string(graph_.nodes.size()),
                          .kind = kind,
                          .sizes = std::move(sizes),
                          .reads = {last_},
                          .parameters = parameters,
                          .forward_flops = 2.0 * static_cast<double>(multiply_adds),
                          .numbers = shape_.pixels() * tokens_});
  last_ = new_value();
  return *this;
}

ValueId Chain::new_value() {
  graph_.nodes.back().makes.push_back(graph_.values);
  return graph_.values++;
}

Graph Chain::graph() const {
  Graph graph = graph_;
  graph.outputs = {last_};
  return graph;
}

Chain& Chain::flatten() {
  shape_ = {.channels = shape_.pixels(), .height = 1, .width = 1};
  return add("flatten", {});
}

Chain& Chain::dropout(double probability) {
  add("dropout", {});
  graph_.nodes.back().dropout = probability;
  return *this;
}

Chain& Chain::linear(std::int64_t outputs, bool bias) {
  const std::int64_t inputs = std::exchange(shape_.channels, outputs);
  return add("linear", {{"inputs", inputs}, {"outputs", outputs}, {"bias", bias}},
             (inputs + (bias ? 1 : 0)) * outputs, inputs * outputs * tokens_);
}

Chain& Chain::normal(double deviation) {
  graph_.nodes.back().initial = InitialRule{.kind = InitialRule::Kind::normal, .value = deviation};
  return *this;
}

Chain& Chain::add_skip(const Skip& from) {
  add("add", {});
  graph_.nodes.back().reads.push_back(from.value);
  for (std::size_t i = from.node + 1; i < graph_.nodes.size(); ++i) graph_.nodes[i].begins_block = false;
  return *this;
}

Chain& Chain::convolution(std::int64_t outputs, const Kernel& kernel) {
  const std::int64_t inputs = std::exchange(shape_.channels, outputs);
  shape_.height = convolved(shape_.height, kernel);
  shape_.width = convolved(shape_.width, kernel);
  const std::int64_t weights = inputs / kernel.groups * outputs * kernel.size * kernel.size;
  return add("conv2d",
             {{"inputs", inputs},
              {"outputs", outputs},
              {"kernel", kernel.size},
              {"stride", kernel.stride},
              {"padding", kernel.padding},
              {"bias", kernel.bias},
              {"groups", kernel.groups}},
             weights + (kernel.bias ? outputs : 0), weights * shape_.height * shape_.width);
}

Chain& Chain::transposed_convolution(std::int64_t outputs, const Kernel& kernel, std::int64_t height,
                                     std::int64_t width) {
  const ImageShape from = std::exchange(shape_, {.channels = outputs, .height = height, .width = width});
  const std::int64_t weights = from.channels * outputs * kernel.size * kernel.size;
  return add("conv_transpose2d",
             {{"inputs", from.channels},
              {"outputs", outputs},
              {"kernel", kernel.size},
              {"stride", kernel.stride},
              {"padding", kernel.padding},
              {"output_padding_height", output_padding(from.height, height, kernel)},
              {"output_padding_width", output_padding(from.width, width, kernel)},
              {"bias", kernel.bias}},
             weights + (kernel.bias ? outputs : 0), weights * from.height * from.width);
}

Chain& Chain::batch_normalisation() {
  return add("batch_norm2d", {{"channels", shape_.channels}}, 2 * shape_.channels);
}

Chain& Chain::max_pool() {
  if (shape_.height < 2 || shape_.width < 2) {
    throw UserError(fmt::format("images of {}×{} are too small for the 2×2 pooling layers of the model",
                                input_.image.height, input_.image.width),
                    "use larger images or another model");
  }
  shape_.height /= 2;
  shape_.width /= 2;
  return add("max_pool2d", {});
}

Chain& Chain::image_mean() {
  shape_.height = shape_.width = 1;
  return add("image_mean", {});
}

Chain& Chain::embedding(const std::string& kind, std::int64_t vocabulary, std::int64_t outputs,
                        std::int64_t moved) {
  if (vocabulary < 1) throw InternalError("a model of texts needs data with a vocabulary");
  shape_ = {.channels = outputs, .height = 1, .width = 1};
  add(kind, {{"vocabulary", vocabulary}, {"outputs", outputs}}, vocabulary * outputs);
  graph_.nodes.back().forward_bytes = static_cast<double>(moved * outputs) * sizeof(float);
  return *this;
}

Chain& Chain::mean_embedding(std::int64_t outputs) {
  return embedding("mean_embedding", input_.vocabulary, outputs, input_.source_length + 1);
}

Chain& Chain::token_embedding(std::int64_t outputs, bool tied) {
  tokens_ = input_.source_length;
  embedding("token_embedding", input_.vocabulary, outputs, 3 * tokens_);  // token, position and their sum
  graph_.nodes.back().sizes.insert({{"positions", tokens_}});
  graph_.nodes.back().parameters += tokens_ * outputs;
  if (tied) tied_ = new_value();
  return *this;
}

Chain& Chain::layer_norm(bool bias) {
  const std::int64_t channels = shape_.channels;
  return add("layer_norm", {{"channels", channels}, {"bias", bias}}, (bias ? 2 : 1) * channels);
}

Chain& Chain::causal_attention(std::int64_t heads, double dropout) {
  shape_.channels /= 3;
  add("causal_attention", {{"heads", heads}}, 0, 2 * tokens_ * tokens_ * shape_.channels);
  graph_.nodes.back().dropout = dropout;
  return *this;
}

Chain& Chain::tied_linear() {
  const std::int64_t inputs = std::exchange(shape_.channels, input_.vocabulary);
  add("tied_linear", {{"outputs", input_.vocabulary}}, 0, inputs * input_.vocabulary * tokens_);
  graph_.nodes.back().reads.push_back(tied_);
  return *this;
}

Chain& Chain::source_embedding(std::int64_t outputs) {
  if (!graph_.nodes.empty()) throw InternalError("source_embedding is not the first layer");
  graph_.inputs = graph_.values = 2;
  tokens_ = input_.source_length;
  embedding("source_embedding", input_.vocabulary, outputs, 2 * tokens_);
  lengths_ = new_value();
  return *this;
}

Chain& Chain::target_embedding(std::int64_t outputs) {
  tokens_ = input_.target_length;
  last_ = 1;  // the target
  return embedding("target_embedding", input_.target_vocabulary, outputs, 2 * tokens_);
}

Chain& Chain::lstm(const std::string& kind, std::int64_t outputs, std::map<std::string, std::int64_t> sizes) {
  const std::int64_t inputs = std::exchange(shape_.channels, outputs);
  const std::int64_t weights = 4 * outputs * (inputs + outputs);
  sizes.insert({{"inputs", inputs}, {"outputs", outputs}});
  return add(kind, std::move(sizes), weights + 8 * outputs, weights * tokens_);
}

Chain& Chain::encoder_lstm(std::int64_t outputs, bool last) {
  lstm("encoder_lstm", outputs, {{"last", last}});
  graph_.nodes.back().reads.push_back(lengths_);
  const ValueId h = last ? last_ : new_value();
  states_.push_back({h, new_value()});
  return *this;
}

Chain& Chain::decoder_lstm(std::int64_t outputs) {
  const auto [h, c] = states_.at(decoders_++);
  lstm("decoder_lstm", outputs, {});
  graph_.nodes.back().reads.insert(graph_.nodes.back().reads.end(), {h, c});
  return *this;
}

std::int64_t integer(const Hyperparameters& values, const std::string& name) {
  return value<std::int64_t>(values, name, "an integer");
}

double number(const Hyperparameters& values, const std::string& name) {
  return value<double>(values, name, "a number");
}

bool truth(const Hyperparameters& values, const std::string& name) {
  return value<bool>(values, name, "true or false");
}

const std::string& text(const Hyperparameters& values, const std::string& name) {
  return value<std::string>(values, name, "a text");
}

const std::vector<std::int64_t>& integers(const Hyperparameters& values, const std::string& name) {
  return value<std::vector<std::int64_t>>(values, name, "a list of integers");
}

Parameter size_parameter(const std::string& name, std::int64_t fallback, const std::string& meaning) {
  return {.name = name,
          .type = ValueType::integer,
          .fallback = fallback,
          .minimum = Bound{1},
          .maximum = Bound{largest_size},
          .meaning = meaning};
}

Parameter sizes_parameter(const std::string& name, std::vector<std::int64_t> fallback, std::size_t at_least,
                          std::size_t at_most, const std::string& meaning) {
  return {.name = name,
          .type = ValueType::integers,
          .fallback = std::move(fallback),
          .minimum = Bound{1},
          .maximum = Bound{largest_size},
          .minimum_length = at_least,
          .maximum_length = at_most,
          .meaning = meaning};
}

Parameter choice_parameter(const std::string& name, const std::vector<std::string>& choices,
                           const std::string& meaning) {
  return {.name = name,
          .type = ValueType::text,
          .fallback = choices.front(),
          .choices = choices,
          .meaning = meaning};
}

Parameter truth_parameter(const std::string& name, bool fallback, const std::string& meaning) {
  return {.name = name, .type = ValueType::boolean, .fallback = fallback, .meaning = meaning};
}

Parameter dropout_parameter(double fallback, const std::string& meaning) {
  return {.name = "dropout",
          .type = ValueType::number,
          .fallback = fallback,
          .minimum = Bound{0},
          .maximum = Bound{1, false},
          .meaning = meaning};
}

}  // namespace trainyard::models
