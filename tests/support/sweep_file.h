// The experiment of most end-to-end tests. One run takes a second or two.
#pragma once

#include <string>

namespace trainyard::e2e {

inline std::string sweep_file(int epochs, const std::string& strategies = R"("single", "ddp")",
                              int seeds = 2) {
  return R"(name = "small"
[matrix]
model = ["mlp"]
strategy = [)" +
         strategies + R"(]
seed = { count = )" +
         std::to_string(seeds) + R"( }
[defaults]
dataset = "synthetic-digits"
train_samples = 500
epochs = )" +
         std::to_string(epochs) + "\n";
}

}  // namespace trainyard::e2e
