// All tokens of a text at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/samples/tokenizer.h"

namespace trainyard::tests {

inline std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  models::for_each_token(text, [&](std::string_view token) {
    tokens.emplace_back(token);
    return true;
  });
  return tokens;
}

}  // namespace trainyard::tests
