// Neural bag of words: Iyyer et al., "Deep unordered composition rivals syntactic methods for text
// classification", ACL 2015, section 2.1.
#include "models/chain.h"

namespace trainyard::models {

static Graph nbow_graph(const Hyperparameters& values, const InputShape& input) {
  return Chain(input)
      .mean_embedding(integer(values, "embedding"))
      .dropout(number(values, "dropout"))
      .linear(input.classes)
      .graph();
}

Model nbow() {
  return {.name = "nbow",
          .title = "NBoW",
          .task = "classification",
          .datasets = {"imdb", "synthetic-reviews", "text-folder"},
          .hyperparameters = {size_parameter("embedding", 300, "size of the embedding of a word"),
                              dropout_parameter(0, "probability; applied to the mean of the words")},
          .about = "the mean of the embeddings of a text's words, then one linear layer",
          .graph = nbow_graph};
}

}  // namespace trainyard::models
