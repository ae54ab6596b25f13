// Verbs of the command line: one function and one row per verb. `add_…` adds the subcommand and its options
// to the program. If the user calls the verb, it sets the `Invocation`. `main` runs it and turns
// exceptions into exit codes.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "tools/trainyard/cli/command.h"

namespace trainyard::tools {

void add_new(CLI::App& program, Invocation& invocation);
void add_list(CLI::App& program, Invocation& invocation);
void add_data(CLI::App& program, Invocation& invocation);
void add_check(CLI::App& program, Invocation& invocation);
void add_plan(CLI::App& program, Invocation& invocation);
void add_run(CLI::App& program, Invocation& invocation);
void add_resume(CLI::App& program, Invocation& invocation);
void add_status(CLI::App& program, Invocation& invocation);
void add_show(CLI::App& program, Invocation& invocation);
void add_logs(CLI::App& program, Invocation& invocation);
void add_rm(CLI::App& program, Invocation& invocation);
void add_db(CLI::App& program, Invocation& invocation);
void add_report(CLI::App& program, Invocation& invocation);
void add_compare(CLI::App& program, Invocation& invocation);
void add_explain(CLI::App& program, Invocation& invocation);
void add_replay(CLI::App& program, Invocation& invocation);
void add_export(CLI::App& program, Invocation& invocation);
void add_sql(CLI::App& program, Invocation& invocation);
void add_completion(CLI::App& program, Invocation& invocation);

void list_schema();  // `trainyard list schema`

struct Verb {
  std::string_view name;                // "data get" is `get` of `data`
  void (*add)(CLI::App&, Invocation&);  // nullptr: its verb adds it
  const char* group;                    // in the list of the verbs
  const char* examples;                 // one command per line, with a comment
};

inline constexpr const char* write_group = "Write an experiment";
inline constexpr const char* train_group = "Train";
inline constexpr const char* watch_group = "Watch runs";
inline constexpr const char* results_group = "Read results";
inline constexpr const char* keep_group = "Manage results";
inline constexpr const char* shell_group = "Set up";
inline constexpr const char* part_group = "Commands";

// In the order in which a user needs them.
inline constexpr std::array verbs{
    Verb{"new", add_new, write_group, "trainyard new first.toml"},
    Verb{"list", add_list, write_group,
         "trainyard list models            # names, tasks and data sets\n"
         "trainyard list models seq2seq    # its hyper-parameters and layers\n"
         "trainyard list tasks             # data, output and metrics of each task\n"
         "trainyard list keys batch        # meaning, allowed values and default\n"
         "trainyard list schema            # JSON Schema of the file, for editors"},
    Verb{"data", add_data, write_group,
         "trainyard data get multi30k --data ~/data\n"
         "trainyard data verify --data ~/data"},
    Verb{"data list", nullptr, part_group, "trainyard data list --data ~/data"},
    Verb{"data get", nullptr, part_group,
         "trainyard data get mnist --data ~/data\n"
         "trainyard data get mnist --data ~/data --from https://mirror.example/mnist/"},
    Verb{"data verify", nullptr, part_group, "trainyard data verify mnist --data ~/data"},
    Verb{"check", add_check, write_group,
         "trainyard check first.toml\n"
         "trainyard check first.toml --set epochs=1 --where model=mlp"},
    Verb{"plan", add_plan, write_group,
         "trainyard plan first.toml\n"
         "trainyard plan first.toml --exclude-where model=cnn,seed=3"},
    Verb{"run", add_run, train_group,
         "trainyard run first.toml\n"
         "trainyard run first.toml --where model=mlp --max-retries 2\n"
         "trainyard run first              # by name: the file of its last run"},
    Verb{"resume", add_resume, train_group,
         "trainyard resume                 # the experiment that was run last\n"
         "trainyard resume first --failed  # only its failed runs"},
    Verb{"status", add_status, watch_group,
         "trainyard status                 # the experiment that was run last\n"
         "trainyard status first --all     # its finished runs too\n"
         "trainyard status --watch         # until the sweep ends, with the time left"},
    Verb{"show", add_show, watch_group,
         "trainyard show last\n"
         "trainyard show 3f9a              # the run whose key begins like that"},
    Verb{"logs", add_logs, watch_group,
         "trainyard logs --follow          # trainyard.log, until the sweep ends\n"
         "trainyard logs last --follow\n"
         "trainyard logs 3f9a --rank 1 --attempt 2"},
    Verb{"report", add_report, results_group,
         "trainyard report                 # the experiment that was run last\n"
         "trainyard report first --format html,latex,csv --out paper"},
    Verb{"compare", add_compare, results_group,
         "trainyard compare                # as the file of the last experiment says\n"
         "trainyard compare single ddp     # two values of the axis that it compares\n"
         "trainyard compare strategy=ddp,batch=64 strategy=ddp,batch=128\n"
         "trainyard compare 3f9a 77b2      # two runs by the beginnings of their keys\n"
         "trainyard compare --fail-on deteriorates   # for CI: exit code 3\n"
         "trainyard compare --from runs.csv --arm optimizer --baseline sgd --metric loss"},
    Verb{"explain", add_explain, results_group,
         "trainyard explain                # the experiment that was run last\n"
         "trainyard explain first --arm ddp\n"
         "trainyard explain first --probe  # gradients of the same samples"},
    Verb{"replay", add_replay, results_group, "trainyard replay last"},
    Verb{"export", add_export, results_group,
         "trainyard export final --out final.csv\n"
         "trainyard export epochs --experiment first --format jsonl\n"
         "trainyard export net.py:build -o net.pt2         # a network of PyTorch"},
    Verb{"sql", add_sql, results_group,
         "trainyard sql --schema           # the views, and the columns of each\n"
         "trainyard sql \"SELECT model, AVG(test_accuracy) FROM final_metrics GROUP BY 1\""},
    Verb{"rm", add_rm, keep_group,
         "trainyard rm last                # one run; its files stay\n"
         "trainyard rm first --where model=mlp,strategy=ddp\n"
         "trainyard rm 3f9a 77b2 --files"},
    Verb{"db", add_db, keep_group, "trainyard db check\ntrainyard db backup results-copy.db"},
    Verb{"db check", nullptr, part_group, "trainyard db check --yard results"},
    Verb{"db backup", nullptr, part_group, "trainyard db backup results-copy.db"},
    Verb{"db rebuild", nullptr, part_group, "trainyard db rebuild --yard results"},
    Verb{"completion", add_completion, shell_group,
         "eval \"$(trainyard completion bash)\"   # in ~/.bashrc; also for zsh\n"
         "trainyard completion fish | source    # in ~/.config/fish/config.fish"}};

// Write the help pages of the program and of all its verbs. Call it after the verbs are added.
void add_help_pages(CLI::App& program);

struct ExperimentOptions;
// Writes an experiment file that a command has made. UserError if the file exists and has another text.
void write_new_file(const std::filesystem::path& file, const std::string& text);

// File and options of the last `run` of an experiment. Data sets and programs are searched for in the folder of the
// file. Print a note if the file has changed since. `again`: the command that uses the new file.
ExperimentOptions journalled_experiment(const db::Database& database, const std::string& name,
                                        const char* again);

// `trainyard plan`, also reached as `trainyard run --dry-run`.
int plan_experiment(const ExperimentOptions& options);

}  // namespace trainyard::tools
