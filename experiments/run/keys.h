// Table of the keys of a run: those that `[defaults]`, `[model.*]`, `[strategy.*]` and `[matrix]` may set,
// except the model's hyper-parameters. The reader of the file, `run.json`, the run key, the fair-comparison
// contract, warnings about unused keys and `trainyard list keys` follow from the table.
//
// To add a key: a member of `Run` (or of a part of it), and a row. A few keys also have functions of their
// own, because they depend on other keys: dataset, batch, learning_rate_scaling and the keys of the mesh.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/parameter.h"
#include "experiments/run/run.h"
#include "experiments/run/strategies.h"

namespace trainyard::experiments {

enum class KeyPlace { anywhere, strategy };  // strategy: only in [strategy.*] and as a matrix axis

// The member that holds the value. It belongs to the run, or to a part that is an object in `run.json`.
using KeyMember =
    std::variant<std::monostate, bool Run::*, std::int64_t Run::*, std::uint64_t Run::*, double Run::*,
                 std::string Run::*, std::optional<std::int64_t> Run::*, bool Optimizer::*,
                 std::int64_t Optimizer::*, double Optimizer::*, std::string Optimizer::*,
                 std::int64_t Strategy::*, std::string Strategy::*, std::optional<std::int64_t> Strategy::*,
                 std::int64_t models::DataChoice::*, std::string models::DataChoice::*,
                 std::optional<std::int64_t> models::DataChoice::*,
                 std::array<double, 3> models::DataChoice::*>;

struct Key {
  Parameter parameter;  // without a default: a new `Run` has it
  KeyPlace place = KeyPlace::anywhere;
  // The dimension of a mesh that a strategy needs to use the key; null: every mesh uses it.
  StrategyKind::Range StrategyKind::*of = nullptr;
  std::string other_form = "";  // another form of value that is allowed; see key_lookup.h
  KeyMember member = {};        // none: the key has functions of its own
  std::string json = "";        // its name in `run.json` and in the work, if it differs
  // True for keys of the first release: they are in every `run.json`, and in the run key of each run that has
  // a value. A later key may be missing in `run.json`. Then the run used the value of a new `Run`.
  bool original = false;
  bool is_work = true;  // false: it only selects which files are kept, and is not in the run key
  bool (*has)(const Run&) = nullptr;     // if the run has such a value; null: every run
  bool (*in_key)(const Run&) = nullptr;  // if it is in the run key; null: if it differs from a new `Run`
  // Why the run does not use the value: the text after the key's name. Empty: it uses it. Null: all runs do.
  std::string (*unused)(const Run&) = nullptr;
  std::string term = "";     // title of its term in the fair-comparison contract, if it is one
  std::string part_of = "";  // the term that has it in its text: "optimizer" has momentum
};

std::span<const Key> keys();
const Key* key_or_null(std::string_view name);
std::string allowed_text(const Key& key);  // both forms

bool is_in_run_key(const Key& key, const Run& run);
bool is_mesh_number(const Key& key);  // how many replicas, stages, micro-batches: the kind has the default

// The value of the key's member. Empty if the key has no member, or if the member is empty.
std::optional<Value> value_of(const Key& key, const Run& run);
void set_value(const Key& key, Run& run, const Value& value);

template <typename Any, typename T, typename Part>
auto& held_by(Any& run, T Part::*member) {
  if constexpr (std::is_same_v<Part, Optimizer>)
    return run.optimizer.*member;
  else if constexpr (std::is_same_v<Part, Strategy>)
    return run.strategy.*member;
  else if constexpr (std::is_same_v<Part, models::DataChoice>)
    return run.data.*member;
  else
    return run.*member;
}

// Calls `use` with the key's member of a `Run` or `const Run`, if it has one.
template <typename Any, typename Use>
void with_member(const Key& key, Any& run, const Use& use) {
  const auto visit = [&](auto member) {
    if constexpr (!std::is_same_v<decltype(member), std::monostate>) use(held_by(run, member));
  };
  std::visit(visit, key.member);
}

// The object of `run.json` that has the member: "optimizer", "strategy", "data"; empty: the run itself.
std::string_view part_name(const Key& key);

}  // namespace trainyard::experiments
