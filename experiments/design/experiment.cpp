#include "experiments/design/experiment.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_members.h"
#include "base/parameter.h"
#include "base/sha256.h"

namespace trainyard::experiments {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LossMargin, absolute, ratio)

void to_json(nlohmann::json& json, const Margins& margins) {
  json = {{"accuracy_points", margins.accuracy_points}, {"loss", margins.loss}, {"time", margins.time}};
  if (!margins.own.empty()) json["own"] = margins.own;
}

void from_json(const nlohmann::json& json, Margins& margins) {
  json.at("accuracy_points").get_to(margins.accuracy_points);
  json.at("loss").get_to(margins.loss);
  json.at("time").get_to(margins.time);
  margins.own = json.value("own", margins.own);
}

nlohmann::json to_json(const Compare& compare) {
  nlohmann::json json{{"alpha", compare.alpha},       {"axis", compare.axis},
                      {"baseline", compare.baseline}, {"differs", compare.differs},
                      {"margins", compare.margins},   {"pair", compare.pair}};
  if (compare.families != "each") json["families"] = compare.families;
  if (compare.seeds) json["seeds"] = {{"max", compare.seeds->max}, {"min", compare.seeds->min}};
  return json;
}

Compare compare_from_json(const nlohmann::json& json) try {
  Compare compare;
  json.at("alpha").get_to(compare.alpha);
  json.at("axis").get_to(compare.axis);
  json.at("baseline").get_to(compare.baseline);
  json.at("differs").get_to(compare.differs);
  json.at("margins").get_to(compare.margins);
  json.at("pair").get_to(compare.pair);
  compare.families = json.value("families", compare.families);
  if (const auto seeds = json.find("seeds"); seeds != json.end())
    compare.seeds = SeedRange{seeds->at("min").get<int>(), seeds->at("max").get<int>()};
  return compare;
} catch (const nlohmann::json::exception& error) {
  throw InternalError(std::string("not the JSON of a comparison: ") + error.what());
}

using nlohmann::json;

namespace {

std::string number_text(double number) {
  std::string text = trainyard::to_text(number);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text;
}

}  // namespace

std::string metric_name(const Expectation& expectation) {
  return fmt::format("{}_{}", expectation.phase, expectation.metric);
}

std::string to_text(const Expectation& expectation) {
  std::string text = fmt::format("{}: {}", expectation.model, metric_name(expectation));
  if (expectation.at_least) text += " >= " + number_text(*expectation.at_least);
  if (expectation.at_least && expectation.at_most) text += " and";
  if (expectation.at_most) text += " <= " + number_text(*expectation.at_most);
  return text;
}

bool holds(const Expectation& expectation, double value) {
  if (expectation.at_least && !(value >= *expectation.at_least)) return false;
  return !expectation.at_most || value <= *expectation.at_most;
}

json to_json(const Expectation& expectation) {
  json object = {{"metric", expectation.metric}, {"model", expectation.model}, {"phase", expectation.phase}};
  if (expectation.at_least) object["at_least"] = *expectation.at_least;
  if (expectation.at_most) object["at_most"] = *expectation.at_most;
  return object;
}

Expectation expectation_from_json(const json& object) try {
  Expectation expectation;
  object.at("model").get_to(expectation.model);
  object.at("phase").get_to(expectation.phase);
  object.at("metric").get_to(expectation.metric);
  if (object.contains("at_least")) expectation.at_least = object.at("at_least").get<double>();
  if (object.contains("at_most")) expectation.at_most = object.at("at_most").get<double>();
  return expectation;
} catch (const json::exception& error) {
  throw InternalError(std::string("not the JSON of an expectation: ") + error.what());
}

std::string identity_of(const models::DataChoice& choice) {
  // unscaled images had the usual size when every run had one
  const std::int64_t size = choice.image_size > 0 ? choice.image_size : models::usual_image_size;
  const nlohmann::json parts{
      choice.source, choice.fingerprint, choice.split_seed, choice.split, choice.train_samples.value_or(-1),
      size};
  return sha256_hex(parts.dump()).substr(0, 12);
}

nlohmann::json to_json(const ProfiledData& data) {
  nlohmann::json channels = nlohmann::json::array();
  for (const models::ChannelCounts& channel : data.profile.channels)
    channels.push_back({{"counts", channel.counts}, {"name", channel.name}});
  nlohmann::json object = {{"channels", channels},
                           {"classes",
                            {{"train", data.profile.classes[0]},
                             {"validation", data.profile.classes[1]},
                             {"test", data.profile.classes[2]}}},
                           {"dataset", data.dataset},
                           {"identity", data.identity},
                           {"source", data.source}};
  if (!data.profile.class_names.empty()) object["class_names"] = data.profile.class_names;
  return object;
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
  if (object.contains("class_names")) read(object.at("class_names"), data.profile.class_names);
  for (const nlohmann::json& channel : object.at("channels"))
    data.profile.channels.push_back(
        {channel.at("name").get<std::string>(), read_as<std::vector<std::int64_t>>(channel.at("counts"))});
  return data;
} catch (const nlohmann::json::exception& error) {
  throw InternalError(std::string("not the JSON of a data profile: ") + error.what());
}

}  // namespace trainyard::experiments
