#include "db/ingest/sides.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include <SQLiteCpp/SQLiteCpp.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "experiments/protocol/record.h"
#include "experiments/run/run.h"

namespace trainyard::db {

namespace fs = std::filesystem;

namespace {

constexpr int no_attempt = 0;  // the run itself

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool is_of_journal(std::string_view table) {
  return is_one_of(table,
                   {"journal", "journal_key", "experiment", "experiment_run", "removed", "earlier_result"});
}

// Tables whose rows follow from those of other tables.
bool is_derived(std::string_view table) {
  return is_one_of(table,
                   {"spool", "run_state", "run_final", "attempt_chain", "attempt_epoch", "attempt_fault"});
}

std::vector<std::string> texts(SQLite::Database& connection, const std::string& sql) {
  SQLite::Statement statement(connection, sql);
  std::vector<std::string> found;
  while (statement.executeStep()) found.push_back(statement.getColumn(0).getString());
  return found;
}

std::set<std::string> text_set(SQLite::Database& connection, const std::string& sql) {
  const auto all = texts(connection, sql);
  return {all.begin(), all.end()};
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// How much of an attempt, or of a run itself, only one side has.
struct Difference {
  std::int64_t in_files = 0, in_database = 0;  // rows that are not derived
  bool launch_only = true;                     // only in the row of the attempt, which run.json has
};

struct SpoolEnd {
  std::int64_t records = 0;
  std::string last_time;
};

class Comparison {
 public:
  Comparison(SQLite::Database& rebuilt, const fs::path& yard, const Replay& replayed)
      : rebuilt_(rebuilt), yard_(yard), replayed_(replayed) {}

  Sides sides() && {
    for (const std::string& table : texts(rebuilt_,
                                          "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name "
                                          "NOT LIKE 'sqlite_%' ORDER BY name"))
      compare(table);
    if (journal_differs_) judge_journal();
    for (const auto& [name, difference] : differences_)
      if (name.second != no_attempt) judge_attempt(name, difference);
    for (const auto& [name, difference] : differences_)
      if (name.second == no_attempt) judge_run(name.first, difference);
    return std::move(sides_);
  }

 private:
  enum class Side { files, database, neither };

  void compare(const std::string& table) {
    const auto all = texts(rebuilt_, "SELECT name FROM pragma_table_info('" + table + "')");
    std::string columns;  // ids of the journal are not in the files and may differ
    for (const std::string& column : all)
      if (!(table == "journal" && column == "id") && !column.ends_with("journal_id"))
        columns += (columns.empty() ? "\"" : ", \"") + column + "\"";
    const auto only_in = [&](const char* left, const char* right) {
      return "(SELECT " + columns + " FROM " + left + ".\"" + table + "\" EXCEPT SELECT " + columns +
             " FROM " + right + ".\"" + table + "\")";
    };
    const std::string lacking = only_in("main", "held"), extra = only_in("held", "main");
    const auto count = [&](const std::string& rows) {
      return rebuilt_.execAndGet("SELECT COUNT(*) FROM " + rows).getInt64();
    };
    const std::int64_t in_files = count(lacking), in_database = count(extra);
    if (in_files + in_database == 0) return;
    sides_.differences.push_back(table + ": " + std::to_string(in_files) + " rows are in the files only, " +
                                 std::to_string(in_database) + " in the database only");
    if (is_of_journal(table)) {
      journal_differs_ = true;
      return;
    }
    const std::string attempt = has(all, "attempt") && !is_one_of(table, {"run_state", "attempt_chain"})
                                    ? "attempt"
                                    : std::to_string(no_attempt);
    add(table, attempt, lacking, &Difference::in_files);
    add(table, attempt, extra, &Difference::in_database);
  }

  void add(const std::string& table, const std::string& attempt, const std::string& rows,
           std::int64_t Difference::*side) {
    SQLite::Statement statement(rebuilt_,
                                "SELECT run_key, " + attempt + ", COUNT(*) FROM " + rows + " GROUP BY 1, 2");
    while (statement.executeStep()) {
      Difference& difference =
          differences_[{statement.getColumn(0).getString(), statement.getColumn(1).getInt()}];
      if (is_derived(table)) continue;
      difference.*side += statement.getColumn(2).getInt64();
      difference.launch_only = difference.launch_only && table == "attempt";
    }
  }

  void believe(Side side, const std::string& what, const std::string& why) {
    const char* which = side == Side::files      ? ": believe the files: "
                        : side == Side::database ? ": believe the database: "
                                                 : ": neither side is proven: ";
    sides_.beliefs.push_back(what + which + why);
    if (side == Side::files)
      sides_.rebuild_helps = true;
    else
      sides_.rebuild_loses = true;
  }

  // The database has the SHA-256 of each entry.
  void judge_journal() {
    const auto in_files =
        texts(rebuilt_, "SELECT sha256 FROM main.journal EXCEPT SELECT sha256 FROM held.journal");
    const auto in_database =
        texts(rebuilt_, "SELECT sha256 FROM held.journal EXCEPT SELECT sha256 FROM main.journal");
    journal_agrees_ = in_files.empty() && in_database.empty();
    const std::string what = (yard_ / "journal.jsonl").string();
    const auto entries = [](const auto& of) { return counted(of.size(), "line"); };
    if (journal_agrees_)
      believe(Side::files, what, "its entries are those that the database was made from");
    else if (in_database.empty())
      believe(Side::files, what, "the database lacks " + entries(in_files));
    else if (in_files.empty())
      believe(Side::database, what, "the file lacks " + entries(in_database) + ", or they are damaged");
    else
      believe(Side::neither, what,
              "the file lacks " + entries(in_database) + ", and the database lacks " + entries(in_files));
  }

  bool is_there(const char* side, const AttemptName& name) {
    SQLite::Statement statement(
        rebuilt_, std::string("SELECT 1 FROM ") + side +
                      (name.second == no_attempt ? ".run WHERE run_key = ?"
                                                 : ".attempt WHERE run_key = ? AND attempt = ?"));
    statement.bind(1, name.first);
    if (name.second != no_attempt) statement.bind(2, name.second);
    return statement.executeStep();
  }

  // By rank.
  std::map<int, SpoolEnd> spools(const char* side, const AttemptName& name) {
    SQLite::Statement statement(rebuilt_, std::string("SELECT rank, next_seq, last_time FROM ") + side +
                                              ".spool WHERE run_key = ? AND attempt = ?");
    statement.bind(1, name.first);
    statement.bind(2, name.second);
    std::map<int, SpoolEnd> found;
    while (statement.executeStep())
      found[statement.getColumn(0).getInt()] = {statement.getColumn(1).getInt64(),
                                                statement.getColumn(2).getString()};
    return found;
  }

  fs::path file_of(const AttemptName& name, int rank) const {
    return yard_ / "runs" / name.first / ("attempt-" + std::to_string(name.second)) /
           (rank < 0 ? std::string(experiments::orchestrator_records_name)
                     : experiments::rank_records_name(rank));
  }

  void lacks_records(const AttemptName& name, int rank, std::int64_t in_file, std::int64_t in_database) {
    const fs::path file = file_of(name, rank);
    const std::string records = counted(in_database, "record");
    sides_.incomplete_files.push_back(
        file.string() +
        (fs::exists(fs::symlink_status(file))
             ? ": has " + std::to_string(in_file) + " of the " + records + " that the database has"
             : ": is missing, and the database has its " + records));
  }

  void judge_attempt(const AttemptName& name, const Difference& difference) {
    const std::string what = "attempt " + std::to_string(name.second) + " of run " + name.first;
    const bool in_files = is_there("main", name), in_database = is_there("held", name);
    if (in_files != in_database && removal_differs(name.first)) return;
    if (!in_files) return believe(Side::database, what, "its files are missing or damaged");
    if (!in_database) return believe(Side::files, what, "the database lacks it");
    const auto mine = spools("main", name), held = spools("held", name);
    bool file_lacks = false, database_lacks = false, others = false;
    for (int rank = -1; rank <= std::max(last_rank(mine), last_rank(held)); ++rank) {
      const SpoolEnd file = end_of(mine, rank), database = end_of(held, rank);
      if (file.records < database.records && difference.in_database > 0) {
        file_lacks = true;
        lacks_records(name, rank, file.records, database.records);
      }
      database_lacks = database_lacks || (file.records > database.records && difference.in_files > 0);
      others = others || (file.records == database.records && file.last_time != database.last_time);
    }
    const bool same_rows = difference.in_files + difference.in_database == 0;
    if (file_lacks && database_lacks)
      return believe(Side::neither, what, "each side has records that the other lacks");
    if (file_lacks) return believe(Side::database, what, "its files lack records");
    if (database_lacks) return believe(Side::files, what, "the database lacks records");
    if (same_rows)
      return believe(Side::files, what, "the database has derived other values from the same records");
    if (others) return believe(Side::neither, what, "both sides have other records with the same numbers");
    if (difference.launch_only ? replayed_.unsealed_launches.contains(name)
                               : replayed_.unsealed_records.contains(name))
      return believe(Side::neither, what, "its files have no checksums");
    believe(Side::files, what, "their checksums are right");
  }

  static int last_rank(const std::map<int, SpoolEnd>& spools) {
    return spools.empty() ? -1 : spools.rbegin()->first;
  }
  static SpoolEnd end_of(const std::map<int, SpoolEnd>& spools, int rank) {
    const auto found = spools.find(rank);
    return found == spools.end() ? SpoolEnd{} : found->second;
  }

  // Whether the sides disagree about removals of the run by `rm`. Then the journal tells which side is right.
  bool removal_differs(const std::string& run_key) {
    const std::string files = "SELECT run_key, up_to_attempt FROM main.removed",
                      database = "SELECT run_key, up_to_attempt FROM held.removed";
    if (!removals_)
      removals_ =
          text_set(rebuilt_, "SELECT run_key FROM (" + files + " EXCEPT " + database +
                                 ") UNION SELECT run_key FROM (" + database + " EXCEPT " + files + ")");
    return removals_->contains(run_key);
  }

  void judge_run(const std::string& run_key, const Difference& difference) {
    const std::string what = "run " + run_key;
    const bool in_files = is_there("main", {run_key, no_attempt});
    const bool in_database = is_there("held", {run_key, no_attempt});
    if (in_files != in_database && removal_differs(run_key)) return;
    if (!in_files) return believe(Side::database, what, "its files are missing or damaged");
    if (!in_database) return believe(Side::files, what, "the database lacks it");
    if (difference.in_files + difference.in_database == 0) {  // only derived rows
      const auto after = differences_.upper_bound({run_key, no_attempt});
      if (after == differences_.end() || after->first.first != run_key)
        believe(Side::files, what, "the database has derived other values from the same records");
      return;
    }
    const auto origin = [&](const std::string& side) {
      SQLite::Statement statement(rebuilt_,
                                  "SELECT from_journal, resolved FROM " + side + ".run WHERE run_key = ?");
      statement.bind(1, run_key);
      statement.executeStep();
      return std::pair(statement.getColumn(0).getInt(), statement.getColumn(1).getString());
    };
    const auto [file_origin, file_work] = origin("main");
    const auto [database_origin, database_work] = origin("held");
    if (key_of(database_work) != run_key)
      return believe(Side::files, what, "its work in the database does not have this key");
    if (file_origin > database_origin) return believe(Side::files, what, "the database lacks its entry");
    if (file_origin < database_origin)
      return believe(Side::database, what, "its entry in the journal is missing or damaged");
    if (journal_agrees_) return believe(Side::files, what, "the database was made from the same entries");
    believe(Side::neither, what, "both sides have a work with this key");
  }

  static std::string key_of(const std::string& work) try {
    return experiments::run_key(experiments::run_from_json(nlohmann::json::parse(work)));
  } catch (const std::exception&) {
    return "";
  }

  SQLite::Database& rebuilt_;
  const fs::path& yard_;
  const Replay& replayed_;
  bool journal_differs_ = false, journal_agrees_ = true;
  std::map<AttemptName, Difference> differences_;
  std::optional<std::set<std::string>> removals_;
  Sides sides_;
};

}  // namespace

Sides compare_sides(SQLite::Database& rebuilt, const fs::path& yard, const Replay& replayed) {
  return Comparison(rebuilt, yard, replayed).sides();
}

}  // namespace trainyard::db
