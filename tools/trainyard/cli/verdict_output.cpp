#include "tools/trainyard/cli/verdict_output.h"

#include <array>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "reports/format/aligned_text.h"
#include "reports/format/number_text.h"
#include "reports/format/table_text.h"
#include "reports/verdicts/verdict_text.h"
#include "tools/trainyard/cli/text_table.h"

namespace trainyard::tools {
namespace {

using reports::VerdictRecord;
using Json = nlohmann::ordered_json;

// Six significant digits: the same bytes on any machine.
double rounded(double value) {
  return std::strtod(reports::plain_number(value).c_str(), nullptr);
}

std::string seeds(const VerdictRecord& record) {
  if (record.cannot_be_resolved) return "> 100";
  return record.seeds_needed ? "≈ " + std::to_string(*record.seeds_needed) : "–";
}

TextTable table_of(const std::vector<VerdictRecord>& records) {
  TextTable table{.columns = {"model", "arm", "metric", "verdict", "effect", "95 % interval", "90 % interval",
                              "p", "hypothesis", "n", "seeds needed"},
                  .rows = {},
                  .right = {false, false, false, false, true, true, true, true, false, true, true}};
  for (const auto& record : records)
    table.rows.push_back({record.label, record.arm, record.phase + " " + record.metric,
                          text_of(record.verdict), record.effect_text, record.ci95_text, record.ci90_text,
                          reports::p_text(record.p), record.hypothesis, std::to_string(record.n),
                          seeds(record)});
  return table;
}

std::string remark_lines(const std::vector<VerdictRecord>& records, std::size_t width) {
  std::string lines;
  for (const std::string& remark : reports::grouped_remarks(records))
    lines += reports::paragraph(remark, width);
  return lines;
}

std::string as_table(const Compared& compared) {
  const std::string remarks = remark_lines(compared.records, compared.width);
  return aligned(table_of(compared.records), compared.width) + (remarks.empty() ? "" : "\n" + remarks);
}

std::string as_markdown(const Compared& compared) {
  std::string text = markdown(table_of(compared.records));
  for (const std::string& remark : reports::grouped_remarks(compared.records))
    text += (text.ends_with("|\n") ? "\n- " : "- ") + reports::markdown_escaped(remark) + "\n";
  return text;
}

std::string as_latex(const Compared& compared) {
  reports::Table table;
  table.columns = {"Metric", "Verdict", "Effect", "95 % interval", "90 % interval", "p", "n"};
  std::string heading;
  for (const auto& record : compared.records) {
    const std::string arm = record.label + ": " + record.arm + " against " + record.baseline +
                            (record.not_verified.empty() ? "" : ". " + record.not_verified + ".");
    if (arm != heading) table.rows.push_back({heading = arm});
    table.rows.push_back({record.phase + " " + record.metric, reports::word_with_reason(record),
                          record.effect_text, record.ci95_text, record.ci90_text,
                          reports::p_with_hypothesis(record.p, record.hypothesis), std::int64_t{record.n}});
  }
  return reports::latex_table(table, {.columns = reports::effects_columns(),
                                      .caption = "Effects with 95 % and 90 % intervals; p after Holm's "
                                                 "correction, with its hypothesis; n: pairs.",
                                      .label = "tab:compare",
                                      .long_table = true});
}

constexpr int schema_version = 1;  // of the JSON: docs/comparing.md

// In the shortest form that reads back as the same double.
Json json_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json json_interval(const std::optional<reports::Interval>& ends) {
  return ends ? Json{json_number(ends->low), json_number(ends->high)} : Json(nullptr);
}

Json json_look(const VerdictRecord& record) {
  return {{"number", record.look},
          {"of", record.looks},
          {"alpha", record.alpha},
          {"level", json_number(record.level)}};
}

Json json_record(const VerdictRecord& record) {
  Json object{
      {"model", record.model.empty() ? Json(nullptr) : Json(record.model)},
      {"cell", record.label},
      {"axes", Json::object()},
      {"metric", record.metric},
      {"phase", record.phase},
      {"baseline", record.baseline},
      {"arm", record.arm},
      {"verdict", text_of(record.verdict)},
      {"verified", record.verified},
      {"reason", record.reason},
      {"effect", json_number(record.effect)},
      {"unit", record.unit},
      {"margin", json_interval(record.margin)},
      {"ci95", json_interval(record.ci95)},
      {"ci90", json_interval(record.ci90)},
      {"p", json_number(record.p)},
      {"hypothesis", record.hypothesis},
      {"look", json_look(record)},
      {"n", record.n},
      {"means", {{"baseline", json_number(record.baseline_mean)}, {"arm", json_number(record.arm_mean)}}},
      {"runs", {{"baseline", record.baseline_runs}, {"arm", record.arm_runs}}},
      {"left_out", record.left_out},
      {"seeds_needed", record.seeds_needed ? Json(*record.seeds_needed) : Json(nullptr)}};
  for (const auto& [name, value] : record.further) object["axes"][name] = value;
  return object;
}

Json json_procedure(const experiments::Compare& compare) {
  return {{"test", compare.pair.empty() ? "three-sided Welch t test against the margin"
                                        : "three-sided paired t test against the margin"},
          {"alpha", compare.alpha},
          {"correction", "Holm over the cells of one metric and one arm"},
          {"looks", compare.final_look ? "one look, which has all of alpha"
                                       : "the first look has 0.8 alpha, later looks share the rest"}};
}

Json json_margins(const experiments::Margins& margins) {
  return {{"time_ratio", margins.time},
          {"loss_ratio", margins.loss.ratio},
          {"loss_absolute", margins.loss.absolute},
          {"accuracy_points", margins.accuracy_points}};
}

Json json_comparison(const reports::Comparison& comparison, bool planned) {
  const experiments::Compare& compare = comparison.compare;
  Json verdicts = Json::array();
  for (const VerdictRecord& record : reports::verdict_records(comparison))
    verdicts.push_back(json_record(record));
  return {{"axis", compare.axis},
          {"baseline", compare.baseline},
          {"pair", compare.pair},
          {"differs", compare.differs},
          {"planned", planned},
          {"procedure", json_procedure(compare)},
          {"margins", json_margins(compare.margins)},
          {"verdicts", std::move(verdicts)}};
}

std::string as_json(const Compared& compared) {
  Json object{{"schema_version", schema_version}, {"experiment", compared.experiment}};
  object["comparisons"] = Json::array();
  for (const reports::Comparison& comparison : compared.comparisons)
    object["comparisons"].push_back(json_comparison(comparison, compared.planned));
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

nlohmann::json cell(const std::optional<double>& value) {
  return value ? nlohmann::json(rounded(*value)) : nlohmann::json(nullptr);
}

std::string as_csv(const Compared& compared) {
  db::ResultTable table;
  table.columns = {"model",     "metric", "phase", "baseline", "arm",       "verdict",
                   "reason",    "effect", "unit",  "ci95_low", "ci95_high", "ci90_low",
                   "ci90_high", "p",      "n",     "verified"};
  const auto end = [](const std::optional<reports::Interval>& ends, double reports::Interval::*which) {
    return ends ? cell((*ends).*which) : cell(std::nullopt);
  };
  using reports::Interval;
  for (const auto& record : compared.records)
    table.rows.push_back({record.label, record.metric, record.phase, record.baseline, record.arm,
                          text_of(record.verdict), record.reason, cell(record.effect), record.unit,
                          end(record.ci95, &Interval::low), end(record.ci95, &Interval::high),
                          end(record.ci90, &Interval::low), end(record.ci90, &Interval::high),
                          record.p ? nlohmann::json(*record.p) : nlohmann::json(nullptr), record.n,
                          record.verified});
  return csv(table);
}

const std::array<VerdictFormat, 5> formats{{{"table", as_table},
                                            {"json", as_json},
                                            {"markdown", as_markdown},
                                            {"latex", as_latex},
                                            {"csv", as_csv}}};

}  // namespace

std::span<const VerdictFormat> verdict_formats() {
  return formats;
}

}  // namespace trainyard::tools
