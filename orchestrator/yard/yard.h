// The yard: the folder that holds everything trainyard writes.
//
// - It holds `results.db`, `journal.jsonl`, `trainyard.log`, `reports/<experiment>/`,
//   `runs/<key>/attempt-<n>/`, `decoded/`, and `probe/`, the yard of `explain --probe`.
// - A lock on the yard allows one writer at a time.
// - Nothing outside the yard is written or removed. `runs` may be a link to a spool. Other links are refused
//   or left alone. Names from the database or the journal cannot lead out of the yard.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/fd.h"

namespace trainyard::orchestrator {

class Yard {
 public:
  explicit Yard(const std::filesystem::path& root);  // becomes absolute; creates nothing
  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path database() const { return root_ / "results.db"; }
  std::filesystem::path journal() const { return root_ / "journal.jsonl"; }
  std::filesystem::path log() const { return root_ / "trainyard.log"; }  // of the lock holder: base/log.h
  std::filesystem::path decoded() const {
    return root_ / "decoded";
  }  // images: models/readers/decoded_images.h
  // UserError if it is a link, or if the folder of all reports is one.
  std::filesystem::path report(const std::string& experiment) const;
  // `runs/`, or the shared folder that it links to.
  const std::filesystem::path& runs() const { return runs_; }
  std::filesystem::path run(const std::string& key) const;
  // Whether the folder of the run is a link. Then nothing is written or removed there.
  bool leads_out(const std::string& key) const;
  std::filesystem::path attempt(const std::string& key, int attempt) const;
  bool exists() const { return std::filesystem::exists(database()); }  // it has a database

 private:
  std::filesystem::path root_, runs_;
};

// Throws UserError if a file directly in the yard is not a plain file, for example a link.
void refuse_links(const Yard& yard);

// Throws UserError if `file` exists and is not a plain file.
void require_plain(const std::filesystem::path& file);

// Whether there is a folder at `named`, and it is not the folder `here`. Then `here`, which names it, is a copy of it.
bool is_other_folder(const std::filesystem::path& named, const std::filesystem::path& here);

// Makes `runs/` a link to `spool`/runs and reserves that folder for this yard. Returns the changed yard.
// UserError if the yard already has runs elsewhere, or if the folder belongs to another yard.
Yard with_spool(const Yard& yard, const std::filesystem::path& spool);

// --yard, else TRAINYARD_HOME, else ./yard, else ./trainyard-runs of recorded scripts if that exists.
Yard yard_from(const std::optional<std::filesystem::path>& from_command_line);

// Exclusive lock on the yard while the object lives, on yard.lock, which names the holder.
// - Only a process that can write to the yard can hold it (`writer_lock.h`).
// - The kernel frees it when the process dies.
// - Refuses links.
// - UserError "… is in use by process 4711 (trainyard run …), since …". It names a process that lives, or says
//   that the holder is not known.
class YardLock {
 public:
  YardLock(const Yard& yard, const std::string& command);  // creates the yard's folder, for its owner only
  ~YardLock();
  YardLock(const YardLock&) = delete;
  YardLock& operator=(const YardLock&) = delete;

  // Whether the yard's path now leads to another folder, or to none: somebody renamed, moved or removed the yard.
  bool moved() const;

 private:
  std::filesystem::path root_;
  FileDescriptor fd_;
  FileDescriptor folder_;  // open, so that no other folder gets its inode
};

// Whether a process holds a YardLock: a sweep, or a command that changes the yard.
bool in_use(const Yard& yard);

// Whether this user may lock the yard and write to it.
bool may_write(const Yard& yard);
// Time of the last lock. `file_time_type::min()` if there was none.
std::filesystem::file_time_type last_locked(const Yard& yard);

// Attempts of a run are numbered by their folders, from 1. A number is never used again.

// 3 for "attempt-3". Empty for any other name.
std::optional<int> attempt_number(const std::string& folder_name);

// Largest attempt number in a run's folder. 0 if there is none.
int last_attempt(const std::filesystem::path& run_folder);

}  // namespace trainyard::orchestrator
