// Text as tokens. A run of letters, marks and digits is one token, in lower case; every other visible
// character is a token of its own; white space and HTML's line break "<br />" only separate. What is a letter
// and what its lower case says Unicode (utf8proc), so «Größe, Übung» is "größe" "," "übung".
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard::models {

// Changes with every change of the tokens: it stands in the fingerprint of every text.
inline constexpr int tokens_version = 1;

// The first byte of `text` that is not UTF-8; nothing where all of it is.
std::optional<std::size_t> first_not_utf8(std::string_view text);

// Calls `use` with each token in order; the view lives until `use` returns. `use` says whether to go on.
// InternalError where `text` is not UTF-8: readers have checked it.
using UseToken = std::function<bool(std::string_view)>;
void for_each_token(std::string_view text, const UseToken& use);

std::vector<std::string> tokens_of(std::string_view text);

}  // namespace trainyard::models
