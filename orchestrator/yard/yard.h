// The yard: the folder that holds everything trainyard writes. `results.db`, `journal.jsonl`,
// `trainyard.log`, `reports/<experiment>/`, `runs/<key>/attempt-<n>/`. One writer at a time, by a lock on the
// yard.
//
// Nothing is written or removed outside it: but for `runs`, which may be a link to a spool, links in it are
// refused or left alone, and names that the database or the journal give lead nowhere else.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/fd.h"

namespace trainyard::orchestrator {

class Yard {
 public:
  explicit Yard(const std::filesystem::path& root);  // absolute afterwards; creates nothing
  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path database() const { return root_ / "results.db"; }
  std::filesystem::path journal() const { return root_ / "journal.jsonl"; }
  std::filesystem::path log() const { return root_ / "trainyard.log"; }  // of who holds the lock: base/log.h
  // UserError where it, or the folder of all reports, is a link.
  std::filesystem::path report(const std::string& experiment) const;
  // `runs/`, or the folder on a shared file system that it is a link to.
  const std::filesystem::path& runs() const { return runs_; }
  std::filesystem::path run(const std::string& key) const;
  // Whether the folder of the run's attempts is a link: nothing is written or removed there.
  bool leads_out(const std::string& key) const;
  std::filesystem::path attempt(const std::string& key, int attempt) const;
  bool exists() const;  // has a database

 private:
  std::filesystem::path root_, runs_;
};

// UserError where a file that is written in the yard itself is a link.
void refuse_links(const Yard& yard);

// A file that is no link and no pipe, or not there; else UserError.
void require_plain(const std::filesystem::path& file);

// Lets the yard's runs/ lie in `spool`/runs, and gives that folder to this yard alone. The yard as it is
// then; UserError where it has runs of its own already, or the folder is another yard's.
Yard with_spool(const Yard& yard, const std::filesystem::path& spool);

// --yard, else TRAINYARD_HOME, else ./yard.
Yard yard_from(const std::optional<std::filesystem::path>& from_command_line);

// Refuses links. Exclusive for as long as it lives (flock on yard.lock, which names the holder); the kernel
// frees it when the process dies, however it dies. UserError «… is in use by process 4711 (trainyard run …),
// since …».
class YardLock {
 public:
  YardLock(const Yard& yard, const std::string& command);  // creates the yard's folder

 private:
  FileDescriptor fd_;
};

// Whether a YardLock lives in some process: a sweep runs, or a verb that changes the yard.
bool in_use(const Yard& yard);

// Whether this user may lock the yard and write to it.
bool may_write(const Yard& yard);
// When somebody last locked it; the earliest time there is where nobody has.
std::filesystem::file_time_type last_locked(const Yard& yard);

// Attempts of a run are counted by their folders, from 1; a number is never used again.

// 3 of "attempt-3"; nothing of any other name.
std::optional<int> attempt_number(const std::string& folder_name);

// The largest number in a run's folder; 0 where there is none.
int last_attempt(const std::filesystem::path& run_folder);

}  // namespace trainyard::orchestrator
