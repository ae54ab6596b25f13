// trainyard resume: go on with an experiment of this yard as it was asked for, without its file.
#include <iostream>

#include <CLI/CLI.hpp>

#include "db/queries.h"
#include "orchestrator/whole_file.h"
#include "tools/trainyard/command.h"
#include "tools/trainyard/open_yard.h"
#include "tools/trainyard/run_experiment.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

struct ResumeOptions {
  std::string experiment;
  std::optional<fs::path> yard;
  SweepChoices choices;
};

std::vector<std::string> list_of(const nlohmann::json& asked, const char* name) {
  return asked.is_object() ? asked.value(name, std::vector<std::string>()) : std::vector<std::string>();
}

// Where the file lay: data sets and programs are looked for beside it.
fs::path file_of(const db::Plan& plan) {
  const fs::path named(plan.file);
  if (!plan.asked.is_object()) return named;
  return fs::path(plan.asked.value("folder", std::string())) / named.filename();
}

void note_change(const db::Plan& plan, const fs::path& file) {
  if (fs::exists(file) && orchestrator::whole_file(file) != plan.toml)
    std::cerr << "note: " << file.string() << " has changed since; this goes on with what was asked then, "
              << "`trainyard run` takes the new one\n";
}

int resume(const ResumeOptions& options) {
  db::Plan plan;
  {
    const auto database = open_yard(options.yard);
    plan = db::latest_plan(database, experiment_named(database, options.experiment));
  }
  const fs::path file = file_of(plan);
  note_change(plan, file);
  Asked asked;
  asked.selection = {list_of(plan.asked, "set"), list_of(plan.asked, "where"),
                     list_of(plan.asked, "exclude_where")};
  auto loaded = experiments::load_text(plan.toml, file, asked.selection);
  for (const auto& problem : loaded.problems) std::cerr << to_text(problem) << '\n';
  if (!loaded.experiment) return wrong_usage;
  asked.experiment = std::move(*loaded.experiment);
  if (plan.asked.is_object() && plan.asked.contains("data"))
    asked.data = plan.asked.at("data").get<std::string>();
  asked.yard = options.yard;
  asked.command = "trainyard resume " + plan.experiment;
  return run_experiment(std::move(asked), options.choices);
}

}  // namespace

void add_resume(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand(
      "resume", "go on with an experiment of this yard, as it was asked for: the same as `run` again");
  auto options = std::make_shared<ResumeOptions>();
  command->add_option("EXPERIMENT", options->experiment, "its name (default: the one run last)");
  add_sweep_options(*command, options->choices);
  add_yard_option(*command, options->yard);
  command->callback([options, &invocation] { invocation.action = [options] { return resume(*options); }; });
}

}  // namespace trainyard::tools
