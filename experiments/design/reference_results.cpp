#include "experiments/design/reference_results.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace trainyard::experiments {

namespace {

nlohmann::json series_json(const PublishedSeries& series) {
  nlohmann::json points = nlohmann::json::array();
  for (const PublishedPoint& point : series.points) points.push_back({point.epoch, point.value});
  return {{"arm", series.arm}, {"metric", series.metric}, {"model", series.model}, {"points", points}};
}

PublishedSeries series_from(const nlohmann::json& from) {
  PublishedSeries series;
  from.at("arm").get_to(series.arm);
  from.at("metric").get_to(series.metric);
  from.at("model").get_to(series.model);
  for (const nlohmann::json& point : from.at("points"))
    series.points.push_back({point.at(0).get<double>(), point.at(1).get<double>()});
  return series;
}

nlohmann::json verdict_json(const PublishedVerdict& verdict) {
  return {
      {"arm", verdict.arm}, {"effect", verdict.effect}, {"metric", verdict.metric}, {"model", verdict.model}};
}

PublishedVerdict verdict_from(const nlohmann::json& from) {
  return {from.at("metric").get<std::string>(), from.at("effect").get<std::string>(),
          from.at("model").get<std::string>(), from.at("arm").get<std::string>()};
}

}  // namespace

nlohmann::json to_json(const Published& published) {
  nlohmann::json sources = nlohmann::json::array();
  for (const PublishedSource& source : published.sources) {
    nlohmann::json series = nlohmann::json::array();
    for (const PublishedSeries& one : source.series) series.push_back(series_json(one));
    nlohmann::json verdicts = nlohmann::json::array();
    for (const PublishedVerdict& one : source.verdicts) verdicts.push_back(verdict_json(one));
    sources.push_back(
        {{"hardware", source.hardware}, {"name", source.name}, {"series", series}, {"verdicts", verdicts}});
  }
  return {{"file", published.file}, {"sources", sources}, {"text", published.text}};
}

Published published_from_json(const nlohmann::json& object) try {
  Published published;
  object.at("file").get_to(published.file);
  object.at("text").get_to(published.text);
  for (const nlohmann::json& from : object.at("sources")) {
    PublishedSource source;
    from.at("name").get_to(source.name);
    from.at("hardware").get_to(source.hardware);
    for (const nlohmann::json& series : from.at("series")) source.series.push_back(series_from(series));
    for (const nlohmann::json& verdict : from.at("verdicts"))
      source.verdicts.push_back(verdict_from(verdict));
    published.sources.push_back(std::move(source));
  }
  return published;
} catch (const nlohmann::json::exception& error) {
  throw InternalError(std::string("not the JSON of published numbers: ") + error.what());
}

}  // namespace trainyard::experiments
