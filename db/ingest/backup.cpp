// The copy of a database is written as FILE.unfinished, which gets its name when it is whole. It is locked
// for as long as it is written: two that copy to one FILE never write into each other's, and the kernel frees
// what a killed one leaves behind, so that the next one writes over it.
#include <cerrno>
#include <system_error>

#include <SQLiteCpp/Backup.h>
#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable_file.h"
#include "db/database/errors.h"
#include "db/ingest/maintenance.h"

namespace trainyard::db {

namespace fs = std::filesystem;

namespace {

void refuse_existing(const fs::path& file) {
  if (fs::exists(file))
    throw UserError("is there already", "name a file that is not", {.file = file.string()});
}

class Descriptor {
 public:
  explicit Descriptor(const fs::path& file)
      : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// FILE.unfinished: empty at first and nobody else's. What has not become FILE is removed at the end.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const fs::path& file)
      : file_(file), path_(file.string() + ".unfinished"), fd_(path_) {
    if (fd_.get() < 0) refuse("cannot be written", "is the folder there and writable?");
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno != EWOULDBLOCK)
      refuse("cannot be locked: " + std::generic_category().message(errno), "name a file on a local disk");
    if (!is_mine())
      refuse("is being written by another `trainyard db backup`", "wait for it to end, or name another file");
    if (::ftruncate(fd_.get(), 0) != 0) refuse("cannot be written", "is it a plain file?");
    for (const char* beside : {"-journal", "-wal", "-shm"}) ::unlink((path_.string() + beside).c_str());
  }
  ~UnfinishedFile() {
    if (!finished_) ::unlink(path_.c_str());
  }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  const fs::path& path() const { return path_; }

  void finish() {
    experiments::sync_file(path_);
    fs::rename(path_, file_);
    finished_ = true;
    experiments::sync_folder(fs::absolute(file_).parent_path());
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const char* advice) const {
    throw UserError(what, advice, {.file = file_.string()});
  }

  // Locked by this descriptor, and not become another's FILE between opening and locking.
  bool is_mine() const {
    struct stat opened {
    }, named{};
    return ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(fd_.get(), &opened) == 0 &&
           ::lstat(path_.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
  }

  const fs::path file_, path_;
  const Descriptor fd_;
  bool finished_ = false;
};

}  // namespace

void back_up(const Database& database, const fs::path& to) {
  refuse_existing(to);
  UnfinishedFile unfinished(to);  // by hand: SQLite's word for it would be held against what is copied
  refuse_existing(to);            // of one that ended just before this one began
  translated(database.connection(), [&] {
    // Without SQLite's own locks, which some file systems hold against ours.
    SQLite::Database copy(unfinished.path().string(), SQLite::OPEN_READWRITE, 0, "unix-none");
    copy.exec("PRAGMA journal_mode = OFF");  // it is of no use unless it is whole
    SQLite::Backup backup(copy, database.connection());
    if (backup.executeStep(-1) != SQLITE_DONE)  // what waits for a lock is no exception of SQLiteCpp's
      throw SQLite::Exception("cannot be read now", SQLITE_BUSY);
  });
  unfinished.finish();
}

}  // namespace trainyard::db
