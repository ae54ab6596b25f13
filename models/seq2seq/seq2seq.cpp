// Sequence to sequence: Sutskever, Vinyals, Le, "Sequence to sequence learning with neural networks", NIPS
// 2014. Dropout on embeddings and between layers: Zaremba, Sutskever, Vinyals, "Recurrent neural network
// regularization", 2014.
#include "models/chain.h"

namespace trainyard::models {

static Graph seq2seq_graph(const Hyperparameters& values, const InputShape& input) {
  const std::int64_t embedding = integer(values, "embedding"), hidden = integer(values, "hidden");
  const std::int64_t depth = integer(values, "layers");
  const double dropout = number(values, "dropout");
  Chain chain(input);
  chain.source_embedding(embedding);
  for (std::int64_t i = 0; i < depth; ++i) chain.dropout(dropout).encoder_lstm(hidden, i == depth - 1);
  chain.target_embedding(embedding);
  for (std::int64_t i = 0; i < depth; ++i) chain.dropout(dropout).decoder_lstm(hidden);
  return chain.linear(input.target_vocabulary).graph();
}

static Parameter depth_parameter() {
  Parameter parameter =
      size_parameter("layers", 2, "number of LSTM layers, each of the encoder and of the decoder");
  parameter.maximum = Bound{8};
  return parameter;
}

Model seq2seq() {
  return {.name = "seq2seq",
          .title = "Seq2Seq",
          .task = "translation",
          .datasets = {"multi30k", "synthetic-phrases", "text-pairs"},
          .hyperparameters = {size_parameter("embedding", 256, "size of the embedding of a token"),
                              size_parameter("hidden", 512, "outputs of each LSTM layer"), depth_parameter(),
                              dropout_parameter(
                                  0.5, "probability; applied to embeddings and between LSTM layers")},
          .about = "an LSTM encoder whose last states start an LSTM decoder; teacher forcing",
          .graph = seq2seq_graph};
}

}  // namespace trainyard::models
