// The yard: the folder that holds everything trainyard writes. `results.db`, `journal.jsonl`,
// `reports/<experiment>/`, `runs/<key>/attempt-<n>/`. One writer at a time, by a lock on the yard.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace trainyard::orchestrator {

class Yard {
 public:
  explicit Yard(const std::filesystem::path& root);  // absolute afterwards; creates nothing
  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path database() const { return root_ / "results.db"; }
  std::filesystem::path journal() const { return root_ / "journal.jsonl"; }
  std::filesystem::path report(const std::string& experiment) const { return root_ / "reports" / experiment; }
  // `runs/`, or the folder on a shared file system that it is a link to.
  const std::filesystem::path& runs() const { return runs_; }
  std::filesystem::path run(const std::string& key) const { return runs_ / key; }
  std::filesystem::path attempt(const std::string& key, int attempt) const;
  bool exists() const;  // has a database

 private:
  std::filesystem::path root_, runs_;
};

// Lets the yard's runs/ lie in `spool`/runs, and gives that folder to this yard alone. The yard as it is
// then; UserError where it has runs of its own already, or the folder is another yard's.
Yard with_spool(const Yard& yard, const std::filesystem::path& spool);

// --yard, else TRAINYARD_HOME, else ./yard.
Yard yard_from(const std::optional<std::filesystem::path>& from_command_line);

// Exclusive for as long as it lives (flock on yard.lock, which names the holder); the kernel frees it when
// the process dies, however it dies. UserError «… is in use by process 4711 (trainyard run …), since …».
class YardLock {
 public:
  YardLock(const Yard& yard, const std::string& command);  // creates the yard's folder
  ~YardLock();
  YardLock(const YardLock&) = delete;
  YardLock& operator=(const YardLock&) = delete;

 private:
  int fd_ = -1;
};

// Whether a YardLock lives in some process: a sweep runs, or a verb that changes the yard.
bool in_use(const Yard& yard);

}  // namespace trainyard::orchestrator
