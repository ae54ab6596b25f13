// trainyard sql: any question that only reads.
#include <iostream>

#include <CLI/CLI.hpp>

#include "tools/trainyard/command.h"
#include "tools/trainyard/open_yard.h"
#include "tools/trainyard/text_table.h"

namespace trainyard::tools {
namespace {

struct SqlOptions {
  std::string statement;
  std::string format = "table";
  std::optional<std::filesystem::path> yard;
};

int ask(const SqlOptions& options) {
  const auto database = open_yard(options.yard);
  const auto result = db::select(database, options.statement);
  if (options.format == "csv")
    std::cout << csv(result);
  else if (options.format == "json")
    std::cout << json(result);
  else
    std::cout << (options.format == "markdown" ? markdown : aligned)(text_table(result));
  return done;
}

}  // namespace

void add_sql(CLI::App& program, Invocation& invocation) {
  auto* command =
      program.add_subcommand("sql",
                             "ask the database; read-only (views: run_summary, epoch_average, "
                             "epoch_replica, epoch_rank, final_metrics, task_final_metrics, run_axis)");
  auto options = std::make_shared<SqlOptions>();
  command->add_option("STATEMENT", options->statement, "one SQL statement")->required();
  command->add_option("--format", options->format, "how to print it")
      ->check(CLI::IsMember({"table", "csv", "json", "markdown"}))
      ->capture_default_str();
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return ask(*options); }; });
}

}  // namespace trainyard::tools
