// What the data sets of an experiment look like, as the journal keeps it (`data_profiles` of a `run` entry)
// and `reports` reads it back from the database.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "models/datasets/datasets.h"
#include "models/samples/data_profile.h"

namespace trainyard::experiments {

struct ProfiledData {
  std::string dataset;   // asked for
  std::string source;    // read
  std::string identity;  // equal for equal samples in equal parts
  models::DataProfile profile;
};

// Content, split and cap: what decides which samples stand in which part.
std::string identity_of(const models::DataChoice& choice);

nlohmann::json to_json(const ProfiledData& data);
ProfiledData profiled_data_from_json(const nlohmann::json& json);  // InternalError where it is none

}  // namespace trainyard::experiments
