#include "db/ingest/probe_rows.h"

#include <string>
#include <utility>
#include <vector>

#include "db/database/binding.h"

namespace trainyard::db {

using experiments::Record;
using nlohmann::json;

namespace {

struct Layer {
  std::string path;
  std::optional<double> gradient_norm;
  std::optional<double> difference;
  std::optional<std::string> parameter_hash;
};

std::vector<Layer> layers_of(Members& members) {
  const json entries = members.any("layers");
  if (!entries.is_null() && !entries.is_array()) throw Unreadable("member layers must be a list");
  std::vector<Layer> layers;
  json left = nullptr;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    Members entry(entries[i]);
    Layer layer;
    layer.path = entry.required_text("path");
    layer.gradient_norm = entry.number("gradient_norm");
    layer.difference = entry.number("difference");
    layer.parameter_hash = entry.text("parameter_hash");
    layers.push_back(std::move(layer));
    if (!entry.rest().is_null()) left[std::to_string(i)] = entry.rest();
  }
  members.keep("layers", left);
  return layers;
}

}  // namespace

ProbeRows::ProbeRows(SQLite::Database& connection)
    : clear_(connection, "DELETE FROM probe WHERE run_key = ? AND attempt = ? AND rank = ? AND step = ?"),
      put_step_(connection, R"sql(
        INSERT INTO probe (run_key, attempt, rank, step, loss, reference_loss, gradient_norm, extra)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?))sql"),
      put_layer_(connection, R"sql(
        INSERT INTO probe_layer (run_key, attempt, rank, step, position, path, gradient_norm, difference,
                                 parameter_hash)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?))sql") {}

void ProbeRows::take(const Record& record, Members& members) {
  const std::int64_t step = members.required_integer("step");
  const auto loss = members.number("loss");
  const auto reference_loss = members.number("reference_loss");
  const auto gradient_norm = members.number("gradient_norm");
  const std::vector<Layer> layers = layers_of(members);
  execute(clear_, record.run, record.attempt, *record.rank, step);
  execute(put_step_, record.run, record.attempt, *record.rank, step, loss, reference_loss, gradient_norm,
          members.rest());
  for (std::size_t i = 0; i < layers.size(); ++i)
    execute(put_layer_, record.run, record.attempt, *record.rank, step, i, layers[i].path,
            layers[i].gradient_norm, layers[i].difference, layers[i].parameter_hash);
}

}  // namespace trainyard::db
