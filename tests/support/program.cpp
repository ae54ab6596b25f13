#include "tests/support/program.h"

#include <cstdlib>
#include <stdexcept>

#include <SQLiteCpp/Database.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/host.h"

namespace trainyard::e2e {
namespace fs = std::filesystem;
namespace {

void redirect(const fs::path& file, int target) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd >= 0) dup2(fd, target);
}

[[noreturn]] void become(const fs::path& folder, const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& environment, const std::string& program) {
  setpgid(0, 0);
  if (chdir(folder.c_str()) != 0) _exit(126);
  setenv("TRAINYARD_HOST_LOCK", folder.c_str(), 1);  // parallel tests do not wait for each other
  setenv("TRAINYARD_OTHERS_LIMIT", "1000", 1);       // their times count
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(127);
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Trainyard::Trainyard(const fs::path& folder, const std::vector<std::string>& arguments,
                     const std::map<std::string, std::string>& environment, const std::string& program)
    : out_(folder / "stdout.txt"), err_(folder / "stderr.txt") {
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("no further process");
  if (pid_ == 0) {
    redirect(out_, STDOUT_FILENO);
    redirect(err_, STDERR_FILENO);
    become(folder, arguments, environment, program);
  }
}

Trainyard::~Trainyard() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Trainyard::signal(int number) const {
  if (pid_ <= 0) throw std::logic_error("the process has ended");  // -1 would signal all processes
  kill(pid_, number);
}

Output Trainyard::wait() {
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("the process cannot be waited for");
  pid_ = -1;
  return {exit_code(status), tests::read_text(out_), tests::read_text(err_)};
}

Output run_trainyard(const fs::path& folder, const std::vector<std::string>& arguments,
                     const std::map<std::string, std::string>& environment, const std::string& program) {
  return Trainyard(folder, arguments, environment, program).wait();
}

void make_older(const fs::path& database, int schema) {
  SQLite::Database(database.string(), SQLite::OPEN_READWRITE)
      .exec("PRAGMA user_version = " + std::to_string(schema));
}

std::vector<pid_t> ranks_below(const fs::path& folder) {
  std::vector<pid_t> found;
  const std::string wanted = "TRAINYARD_RUN=" + folder.string();
  for (const int pid : all_processes())
    if (environment_of(pid).find(wanted) != std::string::npos) found.push_back(pid);
  return found;
}

std::string documented_example() {
  const std::string page = tests::read_text(fs::path(TRAINYARD_SOURCE) / "docs/record-protocol.md");
  const std::string fence = "```python\n";
  const auto begin = page.find(fence);
  if (begin == std::string::npos) throw std::runtime_error("docs/record-protocol.md has no example");
  return page.substr(begin + fence.size(), page.find("```", begin + fence.size()) - begin - fence.size());
}

std::string real_data() {
  const char* variable = std::getenv("TRAINYARD_DATA");
  const fs::path folder = variable != nullptr ? variable : "../shared/data";
  return fs::exists(folder / "mnist") ? fs::absolute(folder).string() : "";
}

}  // namespace trainyard::e2e
