// The database of a yard for verbs that only read, and the runs that a user names in it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "db/database/database.h"

namespace trainyard::tools {

// Of an earlier release it is brought forward first. UserError that says how to make one where there is none.
db::Database open_yard(const std::optional<std::filesystem::path>& yard);

// The experiment that `name` says, or the one run last; UserError lists the known ones.
std::string experiment_named(const db::Database& database, const std::string& name);

// Waits while a sweep that has just begun has written nothing yet, and `stopped` is not true.
void wait_for_first_entry(const std::optional<std::filesystem::path>& yard,
                          const std::function<bool()>& stopped);

// Throws the UserError for a text that stands for no run: it lists runs with a similar key or name.
[[noreturn]] void refuse_unknown_run(const db::Database& database, const std::string& text);

// The one run that `text` stands for: "last" or a unique prefix of its key.
std::string run_named(const db::Database& database, const std::string& text);

}  // namespace trainyard::tools
