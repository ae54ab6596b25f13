// The chain of a model's layers as data: a row of the catalogue builds it, keeping track of the shape between
// layers, of parameters and of work. `models/networks` makes each layer from what stands here.
//
// Only products count as operations: a multiply-add is 2; biases, normalisation, comparisons and copies are
// 0. An embedding has no products: of it the bytes count that it reads and writes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/catalogue.h"

namespace trainyard::models {

// A square kernel over images.
struct Kernel {
  std::int64_t size = 3;
  std::int64_t stride = 1;
  std::int64_t padding = 1;
  bool bias = true;
};

class Chain {
 public:
  explicit Chain(const InputShape& input) : input_(input), shape_(input.image) {}

  // [batch, channel, height, width] → [batch, channel · height · width]
  Chain& flatten();
  Chain& relu() { return add("relu", {}); }
  Chain& sigmoid() { return add("sigmoid", {}); }
  // A sample's numbers are zeroed with `probability`, the others divided by 1 − probability; in training.
  Chain& dropout(double probability);
  // Over the last dimension.
  Chain& linear(std::int64_t outputs);

  Chain& convolution(std::int64_t outputs, const Kernel& kernel = {});
  // A convolution's transpose that gives images of `height` × `width`.
  Chain& transposed_convolution(std::int64_t outputs, const Kernel& kernel, std::int64_t height,
                                std::int64_t width);
  Chain& batch_normalisation();
  // 2×2, stride 2: an odd last row or column is dropped. UserError where nothing would be left.
  Chain& max_pool();

  // {tokens [batch, length]} → {mean of the vectors of tokens other than padding [batch, outputs]}
  Chain& mean_embedding(std::int64_t outputs);

  // The six kinds of a translating network pass on what later layers need:
  //   source_embedding  {source [batch, length], target} → {x [batch, length, outputs], lengths, target}
  //   encoder_lstm      {x, lengths, target, states …}   → {y, lengths, target, states …, h, c}
  //   the last of them                                   → {target, states …, h, c}
  //   target_embedding  {target, states …}               → {x, states …}
  //   decoder_lstm      {x, h, c, states …}              → {y, states …}
  // h and c [batch, outputs] are an encoder's state after each source's last token; the decoder's layer of
  // the same depth starts from them.
  Chain& source_embedding(std::int64_t outputs);
  Chain& encoder_lstm(std::int64_t outputs, bool last);
  Chain& target_embedding(std::int64_t outputs);
  Chain& decoder_lstm(std::int64_t outputs);

  const ImageShape& shape() const { return shape_; }  // of what the last layer gives; features are channels
  std::vector<Layer> layers() const { return layers_; }

 private:
  Chain& add(const std::string& kind, std::map<std::string, std::int64_t> sizes, std::int64_t parameters = 0,
             std::int64_t multiply_adds = 0);
  // `moved`: vectors that are read and written for a sample.
  Chain& embedding(const std::string& kind, std::int64_t vocabulary, std::int64_t outputs,
                   std::int64_t moved);
  Chain& lstm(const std::string& kind, std::int64_t outputs, std::map<std::string, std::int64_t> sizes);

  InputShape input_;
  ImageShape shape_;
  std::int64_t tokens_ = 1;  // of a sample that one application of a layer sees
  std::vector<Layer> layers_;
};

// Hyper-parameters as the folders of models use them: their values by name, and the rows that say what is
// allowed.

// The value; InternalError where it is missing or of another type.
std::int64_t integer(const Hyperparameters& values, const std::string& name);
double number(const Hyperparameters& values, const std::string& name);
const std::string& text(const Hyperparameters& values, const std::string& name);
const std::vector<std::int64_t>& integers(const Hyperparameters& values, const std::string& name);

// 1 … 65536
Parameter size_parameter(const std::string& name, std::int64_t fallback, const std::string& meaning);
// A list of them with `at_least` to `at_most` elements.
Parameter sizes_parameter(const std::string& name, std::vector<std::int64_t> fallback, std::size_t at_least,
                          std::size_t at_most, const std::string& meaning);
// The first choice is the default.
Parameter choice_parameter(const std::string& name, const std::vector<std::string>& choices,
                           const std::string& meaning);
// A probability below 1, named "dropout".
Parameter dropout_parameter(double fallback, const std::string& meaning);

}  // namespace trainyard::models
