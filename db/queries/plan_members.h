// What a journal's `run` entry says of an experiment beside its runs: comparisons, expectations, published
// numbers … The queries read it from the columns of `journal`, for reports and `resume`; an entry of which
// they could not is refused when it comes in, as any other damaged line of the journal is.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "db/queries/queries.h"

namespace trainyard::db {

// Puts the member `name` of an entry where it belongs in `plan`; null is none. InternalError where it is not
// what a member of that name holds.
void read_plan_member(Plan& plan, std::string_view name, const nlohmann::json& value);

std::vector<experiments::Compare> comparisons_from_json(const nlohmann::json& value);

// InternalError where one of an entry's members is none.
void require_readable_plan(const nlohmann::json& entry);

}  // namespace trainyard::db
