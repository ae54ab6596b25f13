// Builder for the graph of a model whose layers follow each other. It tracks the shape between layers, and
// counts parameters and operations. `models/networks` implements each layer.
//
// Counts:
// - A multiply-add is 2 operations. Biases, normalisation, comparisons and copies are 0.
// - An embedding has no products: the bytes that it reads and writes are counted instead.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/catalogue.h"

namespace trainyard::models {

// A square convolution kernel.
struct Kernel {
  std::int64_t size = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  bool bias = true;
  std::int64_t groups = 1;  // an output channel reads the input channels of its group only
};

class Chain {
 public:
  explicit Chain(const InputShape& input) : input_(input), shape_(input.image) {}

  // [batch, channel, height, width] → [batch, channel · height · width]
  Chain& flatten();
  Chain& relu() { return add("relu", {}); }
  Chain& relu6() { return add("relu6", {}); }
  Chain& gelu() { return add("gelu", {}); }
  Chain& sigmoid() { return add("sigmoid", {}); }
  // In training, each value is set to 0 with `probability`, and the others are divided by 1 − probability.
  Chain& dropout(double probability);
  // Applied to the last dimension.
  Chain& linear(std::int64_t outputs, bool bias = true);
  // Draws the weight of the last layer from a normal distribution with mean 0. Its bias begins with 0.
  Chain& normal(double deviation);

  // A value that a later layer adds to its input: a residual connection.
  struct Skip {
    ValueId value = 0;
    std::size_t node = 0;  // the first that reads it
  };
  Skip skip() const { return {last_, graph_.nodes.size()}; }
  // Adds the value. A stage should not begin between `skip` and here, because then two values cross.
  Chain& add_skip(const Skip& from);

  Chain& convolution(std::int64_t outputs, const Kernel& kernel = {});
  // A transposed convolution whose output is `height` × `width`.
  Chain& transposed_convolution(std::int64_t outputs, const Kernel& kernel, std::int64_t height,
                                std::int64_t width);
  Chain& batch_normalisation();
  // 2×2 with stride 2. An odd last row or column is dropped. UserError if the output would be empty.
  Chain& max_pool();
  // [batch, channel, height, width] → [batch, channel], the mean of each channel
  Chain& image_mean();

  // {tokens [batch, length]} → {mean of the vectors of all tokens except padding [batch, outputs]}
  Chain& mean_embedding(std::int64_t outputs);

  // Layers of a language model, for windows of `length` tokens.
  //   token_embedding   tokens [batch, length] → [batch, length, outputs]: the vectors of token and position
  //   layer_norm        over the last dimension. `bias`: as in `linear`
  //   causal_attention  [batch, length, 3 · width] → [batch, length, width]: the parts are queries, keys and
  //                     values of `heads` heads. A position sees itself and those before it. In training, weights
  //                     are set to 0 with the probability `dropout`.
  //   tied_linear       logits by the weight of token_embedding, which was made with `tied`
  // The weight crosses the cuts between token_embedding and tied_linear, and so does its gradient.
  Chain& token_embedding(std::int64_t outputs, bool tied);
  Chain& layer_norm(bool bias);
  Chain& causal_attention(std::int64_t heads, double dropout);
  Chain& tied_linear();

  // Layers of a translation model. The graph has two inputs, source and target.
  //   source_embedding  source [batch, length]  → x [batch, length, outputs], lengths [batch]
  //   encoder_lstm      x, lengths              → y [batch, length, outputs], h, c
  //     the last one    x, lengths              → h, c
  //   target_embedding  target [batch, steps]   → x [batch, steps, outputs]
  //   decoder_lstm      x, h, c                 → y [batch, steps, outputs]
  // h and c [batch, outputs] are the state of an encoder layer after the last token of each source. The
  // decoder layer of the same depth starts with them.
  Chain& source_embedding(std::int64_t outputs);
  Chain& encoder_lstm(std::int64_t outputs, bool last);
  Chain& target_embedding(std::int64_t outputs);
  Chain& decoder_lstm(std::int64_t outputs);

  const ImageShape& shape() const { return shape_; }  // output of the last layer; features are channels
  // The output of the last layer is the output of the graph.
  Graph graph() const;

 private:
  // A layer that reads the output of the one before and makes one value.
  Chain& add(const std::string& kind, std::map<std::string, std::int64_t> sizes, std::int64_t parameters = 0,
             std::int64_t multiply_adds = 0);
  ValueId new_value();  // made by the last layer
  // `moved`: number of vectors that are read and written per sample.
  Chain& embedding(const std::string& kind, std::int64_t vocabulary, std::int64_t outputs,
                   std::int64_t moved);
  Chain& lstm(const std::string& kind, std::int64_t outputs, std::map<std::string, std::int64_t> sizes);

  InputShape input_;
  ImageShape shape_;
  std::int64_t tokens_ = 1;  // tokens of a sample that a layer processes at once
  Graph graph_;
  ValueId last_ = 0;     // output of the last layer
  ValueId lengths_ = 0;  // of the sources
  ValueId tied_ = 0;     // the weight of token_embedding
  struct State {
    ValueId h = 0, c = 0;
  };
  std::vector<State> states_;  // of the encoder layers
  std::size_t decoders_ = 0;
};

// The value of a hyper-parameter. InternalError if it is missing or has another type.
std::int64_t integer(const Hyperparameters& values, const std::string& name);
double number(const Hyperparameters& values, const std::string& name);
bool truth(const Hyperparameters& values, const std::string& name);
const std::string& text(const Hyperparameters& values, const std::string& name);
const std::vector<std::int64_t>& integers(const Hyperparameters& values, const std::string& name);

// Descriptions of hyper-parameters. A size is 1 … 65536.
Parameter size_parameter(const std::string& name, std::int64_t fallback, const std::string& meaning);
// A list of `at_least` to `at_most` sizes.
Parameter sizes_parameter(const std::string& name, std::vector<std::int64_t> fallback, std::size_t at_least,
                          std::size_t at_most, const std::string& meaning);
// The first choice is the default.
Parameter choice_parameter(const std::string& name, const std::vector<std::string>& choices,
                           const std::string& meaning);
Parameter truth_parameter(const std::string& name, bool fallback, const std::string& meaning);
// A probability below 1, named "dropout".
Parameter dropout_parameter(double fallback, const std::string& meaning);

}  // namespace trainyard::models
