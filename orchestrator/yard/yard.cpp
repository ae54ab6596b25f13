#include "orchestrator/yard/yard.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk_failure.h"
#include "base/error.h"
#include "base/files.h"
#include "base/number.h"
#include "base/plain_file.h"
#include "base/text.h"
#include "experiments/protocol/record.h"
#include "orchestrator/yard/lock_holder.h"
#include "orchestrator/yard/writer_lock.h"

namespace trainyard::orchestrator {

namespace fs = std::filesystem;

Yard::Yard(const fs::path& root) : root_(fs::absolute(root).lexically_normal()) {
  if (!root_.has_filename()) root_ = root_.parent_path();  // "yard/" is the same yard as "yard"
  runs_ = root_ / "runs";
  std::error_code none;
  if (const fs::path target = fs::read_symlink(runs_, none); !none)
    runs_ = (root_ / target).lexically_normal();
}

namespace {

// Create a folder that only its owner can enter, because arguments of commands are in its files. The owner can
// share it with chmod. Folders that exist keep their permissions. Returns why it cannot be created.
std::error_code make_private_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder.parent_path(), failed);
  if (!failed && ::mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    failed.assign(errno, std::generic_category());
  return failed;
}

// `folder`/`name`. UserError if `name` is not a single folder name.
fs::path below(const fs::path& folder, const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw UserError("\"" + printable_line(name) + "\" is not a valid folder name in " + folder.string(),
                    "restore the database or the journal, which somebody has edited");
  return folder / name;
}

}  // namespace

fs::path Yard::run(const std::string& key) const {
  return below(runs_, key);
}

fs::path Yard::report(const std::string& experiment) const {
  fs::path folder = below(root_ / "reports", experiment);
  for (const auto& place : {folder.parent_path(), folder})
    if (fs::is_symlink(fs::symlink_status(place)))
      throw UserError(place.string() + " is a link",
                      "remove the link, or write the report elsewhere with --out");
  return folder;
}

bool Yard::leads_out(const std::string& key) const {
  return fs::is_symlink(fs::symlink_status(run(key)));
}

void require_plain(const fs::path& file) {
  const auto status = fs::symlink_status(file);
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw UserError(file.string() + " is " + (fs::is_symlink(status) ? "a link" : "not a plain file"),
                    "replace it with the file itself, or move it away");
}

void refuse_links(const Yard& yard) {
  for (const char* name :
       {"results.db", "results.db-wal", "results.db-shm", "journal.jsonl", "trainyard.log", "yard.lock"})
    require_plain(yard.root() / name);
}

bool is_other_folder(const fs::path& named, const fs::path& here) {
  std::error_code failed;
  return fs::exists(named, failed) && !fs::equivalent(named, here, failed);
}

Yard with_spool(const Yard& yard, const fs::path& spool) {
  const fs::path link = yard.root() / "runs", runs = fs::absolute(spool).lexically_normal() / "runs";
  const fs::path owner = spool / "yard";
  const std::string known = whole_file(owner), own = yard.root().string() + "\n";
  const auto refuse = [&] {
    throw UserError("the spool " + spool.string() + " belongs to yard " + known.substr(0, known.find('\n')),
                    "give each yard its own `spool`");
  };
  if (yard.runs() == runs) {
    if (is_other_folder(known.substr(0, known.find('\n')), yard.root())) refuse();
    return yard;
  }
  if (yard.runs() != link || (fs::exists(link) && !fs::is_empty(link)))
    throw UserError("yard " + yard.root().string() + " has its runs in " + yard.runs().string() +
                        ", but `spool` in [machine] puts them in " + runs.string(),
                    "choose another yard with --yard, or restore the old value of `spool`");
  try {
    make_private_folder(runs);
    fs::create_directories(runs);  // for its error
  } catch (const fs::filesystem_error& error) {
    throw UserError("cannot create " + runs.string() + ": " + error.code().message(),
                    "check `spool` in [machine]");
  }
  if (!known.empty() && known != own) refuse();
  write_whole_file(owner, own);
  fs::remove(link);
  fs::create_directory_symlink(runs, link);
  return Yard(yard.root());
}

fs::path Yard::attempt(const std::string& key, int attempt) const {
  return run(key) / ("attempt-" + std::to_string(attempt));
}

Yard yard_from(const std::optional<fs::path>& from_command_line) {
  if (from_command_line) return Yard(*from_command_line);
  if (const char* home = std::getenv("TRAINYARD_HOME"); home != nullptr && *home != '\0') return Yard(home);
  return Yard(!fs::exists("yard") && fs::exists("trainyard-runs") ? "trainyard-runs" : "yard");
}

namespace {

// "process 4711 (trainyard run first.toml), since …", if the process that the file names lives.
std::string holder_text(int fd, const fs::path& file) {
  const auto holder = live_holder(fd);
  if (!holder || holder->about.size() != 2) return unknown_holder(file);
  return fmt::format("process {} ({}), since {}", holder->pid, holder->about[0], holder->about[1]);
}

fs::path lock_file(const Yard& yard) {
  return yard.root() / "yard.lock";
}

}  // namespace

YardLock::YardLock(const Yard& yard, const std::string& command) : root_(yard.root()) {
  const fs::path file = lock_file(yard);
  refuse_links(yard);
  const std::error_code failed = make_private_folder(yard.root());
  WriterLock lock = take_writer_lock(file);
  if (!lock.file && failed)
    throw_unwritten("cannot create the yard " + yard.root().string(), "choose another yard with --yard",
                    failed.value());
  if (!lock.file) throw_unwritten("cannot open " + file.string(), "choose another yard with --yard");
  if (!lock.taken)
    throw UserError("yard " + yard.root().string() + " is in use by " + holder_text(lock.file.get(), file),
                    "wait for it to end, or choose another yard with --yard");
  if (!write_holder(lock.file.get(), {command, experiments::utc_now()}))
    throw std::system_error(errno, std::generic_category(), "cannot write the yard's lock");
  fd_ = std::move(lock.file);
  folder_ = FileDescriptor::open(root_, O_PATH | O_DIRECTORY);
}

bool YardLock::moved() const {
  struct stat locked {
  }, there{};
  if (!folder_ || ::fstat(folder_.get(), &locked) != 0) return false;
  if (::stat(root_.c_str(), &there) != 0) return errno == ENOENT || errno == ENOTDIR;
  return locked.st_dev != there.st_dev || locked.st_ino != there.st_ino;
}

YardLock::~YardLock() {
  // Before the lock ends: the next holder may not have written its name when somebody asks for it.
  (void)!::ftruncate(fd_.get(), 0);
}

bool in_use(const Yard& yard) {
  const FileDescriptor fd = std::move(open_plain(lock_file(yard)).fd);
  return fd && has_writer(fd.get());
}

bool may_write(const Yard& yard) {
  const auto writable = [](const fs::path& place) {
    return ::faccessat(AT_FDCWD, place.c_str(), W_OK, AT_EACCESS) == 0;
  };
  return writable(yard.root()) && (!fs::exists(lock_file(yard)) || writable(lock_file(yard)));
}

fs::file_time_type last_locked(const Yard& yard) {
  std::error_code none;
  const auto time = fs::last_write_time(lock_file(yard), none);
  return none ? fs::file_time_type::min() : time;
}

std::optional<int> attempt_number(const std::string& folder_name) {
  constexpr std::string_view before = "attempt-";
  if (!folder_name.starts_with(before)) return std::nullopt;
  const auto number = parse_number<int>(folder_name.substr(before.size()));
  return number && *number >= 1 ? number : std::nullopt;
}

int last_attempt(const std::filesystem::path& run_folder) {
  int last = 0;
  std::error_code missing;
  for (const std::string& name : names_in(run_folder, missing))
    last = std::max(last, attempt_number(name).value_or(0));
  return last;
}

}  // namespace trainyard::orchestrator
