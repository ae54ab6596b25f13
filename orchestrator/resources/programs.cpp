#include "orchestrator/resources/programs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "base/host.h"
#include "base/plain_file.h"
#include "base/sha256.h"
#include "base/text.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

namespace {

struct Output {
  std::string text;
  bool clean = false;
  int signal = 0;  // that killed the program; 0: none
};

// A shell that does not become its only command reports the signal of that command as an exit code.
int signal_of(int status) {
  constexpr int signals_begin = 128, last_signal = 64;
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  const int reported = WEXITSTATUS(status) - signals_begin;
  return reported > 0 && reported <= last_signal ? reported : 0;
}

Output output_of(const std::string& shell_command) {
  FILE* stream = ::popen(shell_command.c_str(), "re");
  Output output;
  if (stream == nullptr) return output;
  std::array<char, 4096> buffer{};
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), stream))
    output.text.append(buffer.data(), size);
  const int status = ::pclose(stream);
  output.clean = status == 0;
  output.signal = signal_of(status);
  return output;
}

nlohmann::json versions_of(const fs::path& runner) {
  const Output output = output_of(shell_quoted(runner.string()) + " --version --json");
  auto versions = nlohmann::json::parse(output.text, nullptr, false);
  if (output.clean && versions.is_object()) return versions;
  if (output.signal > 0)
    throw ProgramKilled(
        fmt::format("cannot read the version of {}: `{} --version --json` was killed by signal {}",
                    runner.string(), runner.string(), output.signal));
  throw UserError("cannot read the version of " + runner.string() + ": `" + runner.string() +
                      " --version --json` " + (output.clean ? "printed no JSON object" : "failed"),
                  "run that command to see why");
}

std::vector<Gpu> gpus_of(const nlohmann::json& versions) {
  std::vector<Gpu> gpus;
  for (const auto& gpu : versions.value("gpus", nlohmann::json::array()))
    gpus.push_back({gpu.at("index").get<int>(), gpu.value("name", std::string("GPU")),
                    gpu.value("memory_bytes", std::int64_t{0}), gpu.value("uuid", std::string())});
  return gpus;
}

// The GPUs that nvidia-smi lists and CUDA_VISIBLE_DEVICES allows. None without a driver.
std::vector<Gpu> gpus_of_driver() {
  const Output output = output_of(
      "nvidia-smi --query-gpu=index,uuid,memory.total,name --format=csv,noheader,nounits 2>/dev/null");
  std::vector<Gpu> gpus;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string allowed = visible == nullptr ? "" : fmt::format(",{},", visible);
  const auto is_allowed = [&](const std::string& name) {
    return allowed.find("," + name + ",") != std::string::npos;
  };
  static const std::regex form(R"((\d+), (\S+), (\d+), (.+))");
  std::smatch found;
  for (const std::string& line : nonempty_lines(output.text))
    if (std::regex_match(line, found, form) &&
        (visible == nullptr || is_allowed(found.str(1)) || is_allowed(found.str(2))))
      gpus.push_back({std::stoi(found.str(1)), found.str(4), std::stoll(found.str(3)) << 20, found.str(2)});
  return gpus;
}

// The variables that ranks inherit and that may change their speed.
std::map<std::string, std::string> speed_variables() {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = printable_line(*entry);
    const std::size_t end = std::min(text.find('='), text.size() - 1);
    if (std::string name = text.substr(0, end); experiments::may_change_speed(name))
      variables.emplace(std::move(name), text.substr(end + 1));
  }
  return variables;
}

std::string processor() {
  for (const std::string& line : nonempty_lines(whole_file("/proc/cpuinfo"))) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

constexpr std::uintmax_t part_bytes = std::uintmax_t{1} << 20;

bool is_of_the_system(const std::string& path) {
  return path.starts_with("/lib") || path.starts_with("/usr/lib");
}

// A line with the name, the size, and the hash of the first and last part of a file.
std::string short_description(const fs::path& file) {
  std::error_code unreadable;
  const std::uintmax_t size = fs::file_size(file, unreadable);
  PlainFileReader in(file);
  if (unreadable || !in) return file.filename().string() + "\n";
  std::string ends(static_cast<std::size_t>(std::min(size, part_bytes)), '\0');
  in.read(ends.data(), static_cast<std::streamsize>(ends.size()));
  in.seekg(static_cast<std::streamoff>(size - ends.size()));
  return fmt::format("{} {} {} {}\n", file.filename().string(), size, sha256_hex(ends), sha256_hex(in));
}

}  // namespace

std::string build_id(const fs::path& runner, const std::vector<std::string>& libraries) {
  std::vector<std::string> lines;
  for (const std::string& library : libraries)
    if (!is_of_the_system(library)) lines.push_back(short_description(library));
  std::ranges::sort(lines);
  PlainFileReader in(runner);
  std::string all = in ? sha256_hex(in) : "";
  for (const std::string& line : lines) all += "\n" + line;
  return sha256_hex(all).substr(0, 12);
}

Programs find_programs(bool needs_runner) {
  const fs::path here = fs::read_symlink("/proc/self/exe").parent_path();
  const std::array<fs::path, 2> folders{here, (here / "../libexec/trainyard").lexically_normal()};
  for (const auto& folder : folders) {
    Programs programs{folder / "trainyard-runner", folder / "trainyard-store", folder / "trainyard-rank"};
    if (!is_executable(programs.store) || (needs_runner && !is_executable(programs.runner))) continue;
    if (!is_executable(programs.runner)) programs.runner.clear();
    return programs;
  }
  throw UserError(
      fmt::format("cannot find {}trainyard-store in {} or {}", needs_runner ? "trainyard-runner and " : "",
                  folders[0].string(), folders[1].string()),
      needs_runner
          ? "build or install all programs together, or add trainyard-runner to the package by pip install "
            "trainyard-runner-torch213 (docs/package.md); without it, all strategies must be programs of "
            "your own "
            "(`command`)"
          : "build or install all programs together");
}

void check_commands(const experiments::Experiment& experiment) {
  const fs::path folder = fs::absolute(experiment.file).parent_path();  // where its ranks start
  for (std::size_t i = 0; i < experiment.runs.size(); ++i) {
    const auto& strategy = experiment.runs[i].strategy;
    if (!strategy.foreign() || program_path(strategy.command.front(), folder)) continue;
    throw UserError("strategy \"" + strategy.name + "\": cannot find the program " + strategy.command.front(),
                    "name a program in PATH, or a path relative to the folder of the experiment file",
                    experiment.strategy_locations.at(i));
  }
}

RunnerFacts facts_for_own_programs(const Programs& programs) {
  RunnerFacts facts;
  facts.circumstances.host = host_name();
  facts.circumstances.processor = processor();
  facts.circumstances.release = TRAINYARD_VERSION;
  facts.circumstances.environment = speed_variables();
  const nlohmann::json runner =
      programs.runner.empty() ? nlohmann::json::object() : versions_of(programs.runner);
  facts.gpus = runner.value("cuda", "").empty() ? gpus_of_driver() : gpus_of(runner);
  facts.cuda = "of your program";
  return facts;
}

RunnerFacts runner_facts(const Programs& programs) {
  const nlohmann::json versions = versions_of(programs.runner);
  const auto text = [&](const char* name) { return versions.value(name, std::string()); };
  RunnerFacts
      facts;  // one by one: GCC 12 destroys `circumstances` twice if a later member of the same braces throws
  facts.circumstances = {
      .host = host_name(),
      .processor = processor(),
      .threads_per_rank = 1,
      .ranks_per_device = 1,
      .release = text("trainyard") + " " + text("build_type"),
      .libtorch = text("libtorch"),
      .nccl = text("nccl"),
      .build = build_id(programs.runner, versions.value("libraries", std::vector<std::string>())),
      .environment = speed_variables()};
  facts.cuda = text("cuda");
  facts.gpus = gpus_of(versions);
  return facts;
}

NetworkCheck check_network(const Programs& programs, const fs::path& exported) {
  constexpr std::string_view sign = "error: ";
  const Output output = output_of(shell_quoted(programs.runner.string()) +
                                  " --check-network=" + shell_quoted(exported.string()) + " 2>&1");
  if (output.clean) return {true, first_line(output.text)};
  for (const std::string& line : nonempty_lines(output.text))
    if (line.starts_with(sign)) return {false, line.substr(sign.size())};
  return {false, exported.string() +
                     ": the program that computes its reference batch ended without a reason; "
                     "it needs as much memory as a training step"};
}

experiments::Circumstances elsewhere(experiments::Circumstances here, const experiments::Machine& machine) {
  here.host = machine.launcher;
  for (const std::string& part : {machine.partition, machine.hosts, machine.interface})
    if (!part.empty()) here.host += ":" + part;
  here.processor = machine.gpus_elsewhere() ? "GPUs as the launcher chose" : "as the launcher chose";
  if (!machine.gpus_elsewhere()) here.nccl = "";  // nothing on a CPU uses it
  here.threads_per_rank = machine.cpus_per_task;
  return here;
}

}  // namespace trainyard::orchestrator
