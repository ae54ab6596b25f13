#include "tools/trainyard/verdict_output.h"

#include <array>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "reports/number_text.h"
#include "reports/table_text.h"
#include "tools/trainyard/text_table.h"

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
                              "p", "n", "seeds needed"},
                  .rows = {},
                  .right = {false, false, false, false, true, true, true, true, true, true}};
  for (const auto& record : records)
    table.rows.push_back({record.label, record.arm, record.phase + " " + record.metric,
                          text_of(record.verdict), record.effect_text, record.ci95_text, record.ci90_text,
                          reports::p_text(record.p), std::to_string(record.n), seeds(record)});
  return table;
}

std::string remark_lines(const std::vector<VerdictRecord>& records) {
  std::string lines;
  for (const std::string& remark : reports::grouped_remarks(records)) lines += remark + "\n";
  return lines;
}

std::string as_table(const std::vector<VerdictRecord>& records) {
  const std::string remarks = remark_lines(records);
  return aligned(table_of(records)) + (remarks.empty() ? "" : "\n" + remarks);
}

std::string as_markdown(const std::vector<VerdictRecord>& records) {
  std::string text = markdown(table_of(records));
  for (const std::string& remark : reports::grouped_remarks(records))
    text += (text.ends_with("|\n") ? "\n- " : "- ") + reports::markdown_escaped(remark) + "\n";
  return text;
}

std::string as_latex(const std::vector<VerdictRecord>& records) {
  reports::Table table;
  table.columns = {"Metric", "Verdict", "Effect", "95 % interval", "90 % interval", "p", "n"};
  std::string heading;
  for (const auto& record : records) {
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

Json json_interval(const std::optional<reports::Interval>& ends) {
  return ends ? Json{rounded(ends->low), rounded(ends->high)} : Json(nullptr);
}

Json json_number(const std::optional<double>& value) {
  return value ? Json(rounded(*value)) : Json(nullptr);
}

Json json_record(const VerdictRecord& record) {
  Json object{{"model", record.model.empty() ? Json(nullptr) : Json(record.model)},
              {"metric", record.metric},
              {"phase", record.phase},
              {"baseline", record.baseline},
              {"arm", record.arm},
              {"verdict", text_of(record.verdict)},
              {"reason", record.reason},
              {"effect", json_number(record.effect)},
              {"unit", record.unit},
              {"ci95", json_interval(record.ci95)},
              {"ci90", json_interval(record.ci90)},
              {"p", json_number(record.p)},
              {"n", record.n},
              {"verified", record.verified}};
  if (record.further.empty()) return object;
  object["axes"] = Json::object();
  for (const auto& [name, value] : record.further) object["axes"][name] = value;
  return object;
}

std::string as_json(const std::vector<VerdictRecord>& records) {
  Json array = Json::array();
  for (const auto& record : records) array.push_back(json_record(record));
  return array.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

nlohmann::json cell(const std::optional<double>& value) {
  return value ? nlohmann::json(rounded(*value)) : nlohmann::json(nullptr);
}

std::string as_csv(const std::vector<VerdictRecord>& records) {
  db::ResultTable table;
  table.columns = {"model",     "metric", "phase", "baseline", "arm",       "verdict",
                   "reason",    "effect", "unit",  "ci95_low", "ci95_high", "ci90_low",
                   "ci90_high", "p",      "n",     "verified"};
  const auto end = [](const std::optional<reports::Interval>& ends, double reports::Interval::*which) {
    return ends ? cell((*ends).*which) : cell(std::nullopt);
  };
  using reports::Interval;
  for (const auto& record : records)
    table.rows.push_back({record.label, record.metric, record.phase, record.baseline, record.arm,
                          text_of(record.verdict), record.reason, cell(record.effect), record.unit,
                          end(record.ci95, &Interval::low), end(record.ci95, &Interval::high),
                          end(record.ci90, &Interval::low), end(record.ci90, &Interval::high), cell(record.p),
                          record.n, record.verified});
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
