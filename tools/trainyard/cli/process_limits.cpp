#include "tools/trainyard/cli/process_limits.h"

#include <cerrno>
#include <csignal>

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/error.h"

namespace trainyard::tools {

namespace {

constexpr rlim_t fewest_files = 64;
constexpr rlim_t kibibyte = 1024;
constexpr rlim_t smallest_stack = 256 * kibibyte;

// The limit that applies. RLIM_INFINITY if there is none.
rlim_t limit_of(decltype(RLIMIT_NOFILE) resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void require_open_files() {
  const rlim_t files = limit_of(RLIMIT_NOFILE);
  if (files < fewest_files)
    throw UserError(
        fmt::format("this process may open only {} files, but trainyard needs {}", files, fewest_files),
        "raise the limit, for example with `ulimit -n 1024`");
}

std::string stack_problem() {
  const rlim_t stack = limit_of(RLIMIT_STACK);
  if (stack >= smallest_stack) return "";
  return fmt::format(
      "this process may use only {} KiB of stack (`ulimit -s`), but trainyard needs {}; raise the limit, for "
      "example with `ulimit -s 8192`",
      stack / kibibyte, smallest_stack / kibibyte);
}

void survive_file_size_limit() {
  std::signal(SIGXFSZ, [](int) {});  // a handler, because a program that is started would inherit SIG_IGN
}

std::string limit_text(int error) {
  const rlim_t files = limit_of(RLIMIT_NOFILE), bytes = limit_of(RLIMIT_FSIZE);
  if (error == EMFILE) return fmt::format("; this process may open {} files (`ulimit -n`)", files);
  if (error == EFBIG && bytes != RLIM_INFINITY)
    return fmt::format("; files may have at most {} bytes (`ulimit -f`)", bytes);
  return "";
}

}  // namespace trainyard::tools
