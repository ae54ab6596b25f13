#include "tools/trainyard/commands/export_model.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <vector>

#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/files.h"
#include "models/exported/operators.h"
#include "models/tasks.h"
#include "tools/trainyard/cli/command.h"

namespace trainyard::tools {

namespace {

// The rows of models/tasks.h, as tasks.py of the export reads them.
nlohmann::json task_rows() {
  nlohmann::json rows = nlohmann::json::array();
  for (const models::Task& task : models::all_tasks) {
    const bool pairs = task.data == models::DataKind::text_pairs;
    const bool windows = task.data == models::DataKind::windows;
    rows.push_back({{"name", task.name},
                    {"target", target_name(task.target)},
                    {"inputs", pairs     ? 2
                               : windows ? 1
                                         : 0},
                    {"rows", task.data == models::DataKind::rows},
                    {"role", task.role},
                    {"output", output_sizes(task)},
                    {"reads", reads_text(task)},
                    {"gives", gives_text(task)}});
  }
  return rows;
}

// The sources in an anonymous file, at its beginning. Python inherits the descriptor.
FileDescriptor sources_for_python() {
  nlohmann::json sources;
  for (const auto& [name, text] : export_model_sources()) sources[name] = text;
  std::string operators;
  for (const models::Operator& row : models::operators()) operators.append(row.name).append("\n");
  sources["operators"] = operators;
  sources["tasks"] = task_rows();
  const std::string text = sources.dump();
  FileDescriptor file(::memfd_create("trainyard-export", 0));
  if (!file) throw_file_error("trainyard-export");
  if (const int error = write_all(file.get(), text); error != 0) throw_file_error("trainyard-export", error);
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::vector<std::string> command_of(const ModelExportOptions& options, const std::string& python,
                                    int sources) {
  std::vector<std::string> command{python, "-c", std::string(export_model_sources().at("start.py")),
                                   std::to_string(sources)};
  const auto add = [&](const std::string& name, const std::string& value) {
    command.push_back("--" + name + "=" + value);  // one word, so that a value may begin with "-"
  };
  add("out", options.out->string());
  if (options.batch > 0) add("batch", std::to_string(options.batch));
  if (!options.task.empty()) add("task", options.task);
  if (options.seeds > 0) add("seeds", std::to_string(options.seeds));
  if (options.in_double) command.emplace_back("--double");
  if (options.verbose) command.emplace_back("--verbose");
  command.emplace_back("--");
  command.push_back(options.function);
  return command;
}

// While Python runs, Ctrl-C ends only Python: trainyard waits for it. A handler, because Python would inherit SIG_IGN.
class InterruptIgnored {
 public:
  InterruptIgnored() : before_(std::signal(SIGINT, [](int) {})) {}
  ~InterruptIgnored() { std::signal(SIGINT, before_); }
  InterruptIgnored(const InterruptIgnored&) = delete;
  InterruptIgnored& operator=(const InterruptIgnored&) = delete;

 private:
  void (*before_)(int);
};

// Run a program that inherits the terminal and return its status, as waitpid gives it.
int status_of(std::vector<std::string> command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const InterruptIgnored ignored;
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, words[0], nullptr, nullptr, words.data(), environ);
  if (error != 0)
    throw UserError("cannot start " + command[0] + ": " + std::strerror(error),
                    "name a Python that has torch 2.11 to 2.15 with --python");
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) throw_file_error(command[0]);
  return status;
}

bool has_torch(const std::string& python) {
  constexpr const char* question =
      "import importlib.util, sys; sys.exit(not importlib.util.find_spec('torch'))";
  try {
    const int status = status_of({python, "-c", question});
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  } catch (const UserError&) {
    return false;  // it does not start
  }
}

// The Python that the user named, or that started this program (trainyard_command.py). Otherwise the one in PATH or, if
// only it has torch, that of the build.
std::string python_of(const ModelExportOptions& options) {
  if (!options.python.empty()) return options.python;
  if (const char* of_command = std::getenv("TRAINYARD_PYTHON")) return of_command;
  const std::string usual = "python3", of_build = TRAINYARD_TORCH_PYTHON;
  return !of_build.empty() && !has_torch(usual) && has_torch(of_build) ? of_build : usual;
}

}  // namespace

bool names_python_file(std::string_view argument) {
  return argument.ends_with(".py") || argument.find(".py:") != std::string_view::npos;
}

int export_network(const ModelExportOptions& options) {
  if (options.function.ends_with(".py") || options.function.ends_with(':'))
    throw UserError(options.function + " names no function",
                    "write FILE.py:FUNCTION; docs/exported-models.md shows such a function");
  if (!options.out) throw UserError("no file to write is named", "add -o FILE.pt2");
  const FileDescriptor sources = sources_for_python();
  const std::string python = python_of(options);
  const int status = status_of(command_of(options, python, sources.get()));
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (WTERMSIG(status) == SIGINT) return interrupted;
  throw UserError(python + " was ended by the signal " + std::to_string(WTERMSIG(status)) + " (" +
                      ::strsignal(WTERMSIG(status)) + ")",
                  "if it was killed, use a smaller --batch; nothing was written");
}

int export_model(const ModelExportOptions& options) {
  if (const int code = export_network(options); code != done) return code;
  ExportedExperiment experiment;
  experiment.network = *options.out;
  experiment.per_seed = options.seeds > 0;
  if (options.seeds > 0) experiment.seeds = options.seeds;
  std::cout << "An experiment file for it:\n\n" << text_of(experiment);
  return done;
}

}  // namespace trainyard::tools
