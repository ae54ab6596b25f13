// GPT: Radford et al., "Language models are unsupervised multitask learners", 2019: pre-norm blocks. First weights,
// tied head and dropout are those of nanoGPT (github.com/karpathy/nanoGPT, model.py).
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "models/chain.h"

namespace trainyard::models {

static void add_block(Chain& chain, const Hyperparameters& values) {
  const std::int64_t width = integer(values, "width");
  const double dropout = number(values, "dropout");
  const bool bias = truth(values, "bias");
  constexpr double deviation = 0.02;
  const double of_residual = deviation / std::sqrt(2 * static_cast<double>(integer(values, "layers")));
  const Chain::Skip input = chain.skip();
  chain.layer_norm(bias).linear(3 * width, bias).normal(deviation);
  chain.causal_attention(integer(values, "heads"), dropout);
  chain.linear(width, bias).normal(of_residual).dropout(dropout).add_skip(input);
  const Chain::Skip between = chain.skip();
  chain.layer_norm(bias).linear(4 * width, bias).normal(deviation).gelu();
  chain.linear(width, bias).normal(of_residual).dropout(dropout).add_skip(between);
}

static Graph gpt_graph(const Hyperparameters& values, const InputShape& input) {
  const std::int64_t width = integer(values, "width"), heads = integer(values, "heads");
  if (width % heads != 0)
    throw UserError(
        fmt::format("the width {} of model \"gpt\" is not a multiple of its {} heads", width, heads),
        "change width or heads");
  const bool tied = truth(values, "tied_head");
  Chain chain(input);
  chain.token_embedding(width, tied).normal(0.02).dropout(number(values, "dropout"));
  for (std::int64_t i = 0; i < integer(values, "layers"); ++i) add_block(chain, values);
  chain.layer_norm(truth(values, "bias"));
  return (tied ? chain.tied_linear() : chain.linear(input.vocabulary, /*bias=*/false).normal(0.02)).graph();
}

static Parameter limited(Parameter parameter, double most) {
  parameter.maximum = Bound{most};
  return parameter;
}

Model gpt() {
  return {
      .name = "gpt",
      .title = "GPT",
      .task = "language-model",
      .datasets = {"tiny-shakespeare", "text", "synthetic-prose"},
      .hyperparameters =
          {limited(size_parameter("layers", 4, "blocks of attention and a network with one hidden layer"),
                   96),
           limited(size_parameter("heads", 4, "heads of attention; width is a multiple"), 256),
           size_parameter("width", 128, "size of the vector of a token"),
           truth_parameter("tied_head", true, "the last layer has the weight of the token embedding"),
           truth_parameter("bias", false, "whether linear layers and normalisations have a bias"),
           dropout_parameter(0,
                             "probability; applied to embeddings, weights of attention, and each branch "
                             "before it is added")},
      .about = "predicts the next character from those before it in a window; window_length is the context",
      .graph = gpt_graph};
}

}  // namespace trainyard::models
