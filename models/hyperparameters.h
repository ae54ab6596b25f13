// Hyper-parameters as the folders of models use them: their values by name, and the rows that say what is
// allowed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/catalogue.h"

namespace trainyard::models {

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
