// `main` of trainyard: finds the verb, runs it and turns exceptions into exit codes.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "base/disk_failure.h"
#include "base/error.h"
#include "base/named_row.h"
#include "orchestrator/resources/programs.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {
namespace {

constexpr const char* about = "trainyard trains models under parallel strategies and compares the results.";

constexpr const char* first_steps =
    "First steps:\n"
    "  trainyard new first.toml    # write a commented experiment file\n"
    "  trainyard run first.toml    # train it, and write ./yard/reports\n\n"
    "`trainyard COMMAND --help` prints the options of a command, and examples.";

// The error for an unknown verb, option or argument, with similar names. Empty if the error is another one.
// CLI's own message for a mistyped verb is "A subcommand is required".
std::string unknown_word(const CLI::App& program, const CLI::App* verb) {
  const std::vector<std::string> left_over = program.remaining(true);
  if (left_over.empty()) return "";
  const bool option = left_over.front().starts_with("-");
  const std::string word = left_over.front().substr(0, left_over.front().find('='));
  std::vector<std::string> known;
  for (const CLI::App* each : verb->get_subcommands([](const CLI::App*) { return true; }))
    if (!option) known.push_back(each->get_name());
  for (const CLI::Option* each : verb->get_options())
    if (option)
      for (const std::string& name : each->get_lnames()) known.push_back("--" + name);
  if (known.empty()) return "unexpected argument \"" + word + "\" for `" + verb->get_name() + "`";
  return "there is no " + std::string(option ? "option" : "command") + " \"" + word + "\"" +
         name_advice(word, known);
}

// If there is no verb, print the help and return 0, as cargo and docker do.
int wrong_command_line(const CLI::App& program, const CLI::ParseError& error) {
  const bool of_words = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError) ||
                        dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const CLI::App* verb = &program;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  const std::string unknown = of_words ? unknown_word(program, verb) : "";
  if (unknown.empty() && of_words && verb->get_require_subcommand_min() > 0) {  // `trainyard`, `trainyard db`
    std::cout << program.help();
    return done;
  }
  if (unknown.empty()) return program.exit(error) == 0 ? done : wrong_usage;
  std::cerr << "trainyard: " << unknown << "\nRun with --help for more information.\n";
  return wrong_usage;
}

int parse_and_run(int argc, char** argv) {
  CLI::App program{about, "trainyard"};
  program.set_version_flag("--version", "trainyard " TRAINYARD_VERSION);
  program.require_subcommand(1);
  Invocation invocation;
  for (const Verb& verb : verbs)
    if (verb.add != nullptr) verb.add(program, invocation);
  add_help_pages(program);
  program.footer(first_steps);  // last, because new verbs inherit the footer of the program
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return wrong_command_line(program, error);
  }
  return invocation();
}

constexpr rlim_t fewest_files = 64;
constexpr rlim_t kibibyte = 1024;
constexpr rlim_t smallest_stack = 256 * kibibyte;

// The limit that applies. RLIM_INFINITY if there is none.
rlim_t limit_of(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

// UserError if this process may open fewer than 64 files (`ulimit -n`). A run of two ranks needs about 20.
void require_open_files() {
  const rlim_t files = limit_of(RLIMIT_NOFILE);
  if (files < fewest_files)
    throw UserError(
        fmt::format("this process may open only {} files, but trainyard needs {}", files, fewest_files),
        "raise the limit, for example with `ulimit -n 1024`");
}

// Why this process has too little stack (`ulimit -s`): less than 256 KiB. Empty if it has enough. Without this check a
// command ends by a segmentation fault.
std::string stack_problem() {
  const rlim_t stack = limit_of(RLIMIT_STACK);
  if (stack >= smallest_stack) return "";
  return fmt::format(
      "this process may use only {} KiB of stack (`ulimit -s`), but trainyard needs {}; raise the limit, for "
      "example with `ulimit -s 8192`",
      stack / kibibyte, smallest_stack / kibibyte);
}

// "; files may have at most 1024 bytes (`ulimit -f`)" if a limit of this process explains the errno. Else empty.
std::string limit_text(int error) {
  const rlim_t files = limit_of(RLIMIT_NOFILE), bytes = limit_of(RLIMIT_FSIZE);
  if (error == EMFILE) return fmt::format("; this process may open {} files (`ulimit -n`)", files);
  if (error == EFBIG && bytes != RLIM_INFINITY)
    return fmt::format("; files may have at most {} bytes (`ulimit -f`)", bytes);
  return "";
}

// Whether the path is wrong, and not the disk: a cycle of links, a name that is too long, not a folder.
bool is_wrong_path(const std::error_code& error) {
  static constexpr std::array wrong{std::errc::too_many_symbolic_link_levels, std::errc::filename_too_long,
                                    std::errc::not_a_directory, std::errc::invalid_argument};
  return std::ranges::any_of(wrong, [&](std::errc each) { return error == each; });
}

int failed(const std::string& what) {
  std::cerr << "trainyard: " << what << "; recorded data is safe, the same command continues\n";
  return run_failed;
}

int failed(const std::system_error& error) {
  return failed(error.what() + limit_text(error.code().value()));
}

// The disk is full, or the command or a file is wrong.
int refused(const UserError& error) {
  const bool disk = dynamic_cast<const DiskFailure*>(&error) != nullptr;
  std::cerr << "trainyard: " << error.what() << (disk ? limit_text(EFBIG) : "") << '\n';
  return disk ? run_failed : wrong_usage;
}

// The exit code, with all exceptions caught.
int outcome(int argc, char** argv) {
  try {
    require_open_files();
    if (const std::string problem = stack_problem(); !problem.empty()) {
      std::cerr << "trainyard: " << problem << '\n';
      return run_failed;
    }
    return parse_and_run(argc, argv);
  } catch (const UserError& error) {
    return refused(error);
  } catch (const std::filesystem::filesystem_error& error) {
    if (!is_wrong_path(error.code())) return failed(error);
    std::cerr << "trainyard: " << error.path1().string() << ": " << error.code().message()
              << "; name another path\n";
    return wrong_usage;
  } catch (const std::system_error& error) {  // full disk, read-only folder
    return failed(error);
  } catch (const std::bad_alloc&) {
    return failed(no_memory_reason);
  } catch (const orchestrator::ProgramKilled& error) {
    return failed(error.what());
  } catch (const nlohmann::json::exception& error) {  // files are checked when read, but not the database
    return refused(UserError(std::string("the database has a damaged value: ") + error.what(),
                             "`trainyard db check` compares it with the files of the yard"));
  } catch (const std::exception& error) {
    return failed(std::string("internal error: ") + error.what());
  }
}

// `code`, or `run_failed` instead of success if output could not be written (full disk). A closed pipe
// (`| head`) is not an error.
int with_output(int code, const PrintableOutput& output) {
  std::cout.flush();
  if (output.error() == 0 || output.error() == EPIPE) return code;
  std::cerr << "trainyard: standard output: " << std::generic_category().message(output.error())
            << "; the output is incomplete\n";
  return code == done ? run_failed : code;
}

}  // namespace
}  // namespace trainyard::tools

int main(int argc, char** argv) {
  using namespace trainyard::tools;
  open_closed_streams();
  // A write that exceeds `ulimit -f` fails with EFBIG instead. A handler, because a program that is started would inherit
  // SIG_IGN.
  std::signal(SIGXFSZ, [](int) {});
  const PrintableOutput out(std::cout), err(std::cerr);
  return with_output(outcome(argc, argv), out);
}
