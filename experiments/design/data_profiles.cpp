#include "experiments/design/data_profiles.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_members.h"
#include "base/sha256.h"

namespace trainyard::experiments {

std::string identity_of(const models::DataChoice& choice) {
  const nlohmann::json parts{choice.source,
                             choice.fingerprint,
                             choice.split_seed,
                             choice.split,
                             choice.train_samples.value_or(-1),
                             choice.image_size};
  return models::sha256_hex(parts.dump()).substr(0, 12);
}

nlohmann::json to_json(const ProfiledData& data) {
  nlohmann::json channels = nlohmann::json::array();
  for (const models::ChannelCounts& channel : data.profile.channels)
    channels.push_back({{"counts", channel.counts}, {"name", channel.name}});
  return {{"channels", channels},
          {"classes",
           {{"train", data.profile.classes[0]},
            {"validation", data.profile.classes[1]},
            {"test", data.profile.classes[2]}}},
          {"dataset", data.dataset},
          {"identity", data.identity},
          {"source", data.source}};
}

ProfiledData profiled_data_from_json(const nlohmann::json& object) try {
  ProfiledData data;
  read(object.at("dataset"), data.dataset);
  read(object.at("source"), data.source);
  read(object.at("identity"), data.identity);
  const nlohmann::json& classes = object.at("classes");
  read(classes.at("train"), data.profile.classes[0]);
  read(classes.at("validation"), data.profile.classes[1]);
  read(classes.at("test"), data.profile.classes[2]);
  for (const nlohmann::json& channel : object.at("channels"))
    data.profile.channels.push_back(
        {channel.at("name").get<std::string>(), read_as<std::vector<std::int64_t>>(channel.at("counts"))});
  return data;
} catch (const nlohmann::json::exception& error) {
  throw InternalError(std::string("not the JSON of a data profile: ") + error.what());
}

}  // namespace trainyard::experiments
