#include "db/database/page_checksums.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include "experiments/protocol/crc32c.h"

namespace trainyard::db {

namespace {

constexpr std::string_view mark = "ckp1";  // then four bytes of CRC-32C
constexpr int check_bytes = 8;
constexpr int header_bytes = 100;  // of page 1, <https://sqlite.org/fileformat.html>
constexpr std::string_view magic{"SQLite format 3\0", 16};

// SQLite's memory for an open file: this, and behind it the file of the VFS below.
struct File {
  sqlite3_file base;
  int page_size;  // 0 until the header of a database with checksums was read or written
};

sqlite3_file* below(sqlite3_file* file) {
  return reinterpret_cast<sqlite3_file*>(reinterpret_cast<File*>(file) + 1);
}

const sqlite3_io_methods& methods_below(sqlite3_file* file) {
  return *below(file)->pMethods;
}

std::string_view text(const void* bytes, int count) {
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(count)};
}

void learn_page_size(File& file, const void* bytes, int count, sqlite3_int64 offset) {
  if (offset != 0 || count < header_bytes || !text(bytes, count).starts_with(magic)) return;
  const auto* header = static_cast<const unsigned char*>(bytes);
  const int size = (header[16] << 8) | header[17];
  file.page_size = header[20] != check_bytes ? 0 : size == 1 ? 65536 : size;
}

bool is_page(const File& file, int count, sqlite3_int64 offset) {
  return file.page_size > 0 && count == file.page_size && offset % count == 0;
}

// The header could be damaged, and say that there are no checksums. But then the first page has the mark.
bool is_marked_first_page(const void* bytes, int count, sqlite3_int64 offset) {
  return offset == 0 && count >= 512 && text(bytes, count).substr(count - check_bytes).starts_with(mark);
}

std::array<char, check_bytes> check_of(const void* page, int count, sqlite3_int64 offset) {
  const std::uint32_t place = experiments::crc32c(text(&offset, sizeof offset));
  const std::uint32_t crc = experiments::crc32c(text(page, count - check_bytes), place);
  std::array<char, check_bytes> check{};
  std::ranges::copy(mark, check.begin());
  std::memcpy(check.data() + mark.size(), &crc, sizeof crc);
  return check;
}

int read(sqlite3_file* file, void* bytes, int count, sqlite3_int64 offset) {
  if (const int code = methods_below(file).xRead(below(file), bytes, count, offset); code != SQLITE_OK)
    return code;
  auto& checked = *reinterpret_cast<File*>(file);
  learn_page_size(checked, bytes, count, offset);
  if (!is_page(checked, count, offset) && !is_marked_first_page(bytes, count, offset)) return SQLITE_OK;
  const auto check = check_of(bytes, count, offset);
  const auto* found = static_cast<const char*>(bytes) + count - check_bytes;
  return std::equal(check.begin(), check.end(), found) ? SQLITE_OK : SQLITE_CORRUPT;
}

// SQLite does not use the last bytes of the page, so they may change in its own memory.
int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  auto& checked = *reinterpret_cast<File*>(file);
  learn_page_size(checked, bytes, count, offset);
  if (is_page(checked, count, offset)) {
    const auto check = check_of(bytes, count, offset);
    std::ranges::copy(check, static_cast<char*>(const_cast<void*>(bytes)) + count - check_bytes);
  }
  return methods_below(file).xWrite(below(file), bytes, count, offset);
}

// Opcode of `file_control`: the page size of a file without a header. SQLite can write other pages before the first.
constexpr int set_page_size = 0x54595244;

int file_control(sqlite3_file* file, int operation, void* argument) {
  if (operation != set_page_size) return methods_below(file).xFileControl(below(file), operation, argument);
  reinterpret_cast<File*>(file)->page_size = *static_cast<int*>(argument);
  return SQLITE_OK;
}

// No part of a page may be read, and none without `read`.
int device_characteristics(sqlite3_file* file) {
  constexpr int subpage_reads = 0x00008000;  // SQLITE_IOCAP_SUBPAGE_READ since SQLite 3.48
  return methods_below(file).xDeviceCharacteristics(below(file)) & ~subpage_reads;
}

int fetch(sqlite3_file* /*file*/, sqlite3_int64 /*offset*/, int /*count*/, void** page) {
  *page = nullptr;
  return SQLITE_OK;
}

int unfetch(sqlite3_file* /*file*/, sqlite3_int64 /*offset*/, void* /*page*/) {
  return SQLITE_OK;
}

// Pass a call on to the file below.
template <auto Method, typename... Arguments>
auto pass(sqlite3_file* file, Arguments... arguments) {
  return (methods_below(file).*Method)(below(file), arguments...);
}

constexpr sqlite3_io_methods methods{
    .iVersion = 3,
    .xClose = pass<&sqlite3_io_methods::xClose>,
    .xRead = read,
    .xWrite = write,
    .xTruncate = pass<&sqlite3_io_methods::xTruncate>,
    .xSync = pass<&sqlite3_io_methods::xSync>,
    .xFileSize = pass<&sqlite3_io_methods::xFileSize>,
    .xLock = pass<&sqlite3_io_methods::xLock>,
    .xUnlock = pass<&sqlite3_io_methods::xUnlock>,
    .xCheckReservedLock = pass<&sqlite3_io_methods::xCheckReservedLock>,
    .xFileControl = file_control,
    .xSectorSize = pass<&sqlite3_io_methods::xSectorSize>,
    .xDeviceCharacteristics = device_characteristics,
    .xShmMap = pass<&sqlite3_io_methods::xShmMap>,
    .xShmLock = pass<&sqlite3_io_methods::xShmLock>,
    .xShmBarrier = pass<&sqlite3_io_methods::xShmBarrier>,
    .xShmUnmap = pass<&sqlite3_io_methods::xShmUnmap>,
    .xFetch = fetch,
    .xUnfetch = unfetch,
};

sqlite3_vfs* vfs_below(sqlite3_vfs* vfs) {
  return static_cast<sqlite3_vfs*>(vfs->pAppData);
}

int open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0)
    return vfs_below(vfs)->xOpen(vfs_below(vfs), name, file, flags, out_flags);
  auto* checked = new (file) File{};
  const int code = vfs_below(vfs)->xOpen(vfs_below(vfs), name, below(file), flags, out_flags);
  checked->base.pMethods = code == SQLITE_OK ? &methods : nullptr;
  return code;
}

template <auto Method, typename... Arguments>
auto pass_vfs(sqlite3_vfs* vfs, Arguments... arguments) {
  return (vfs_below(vfs)->*Method)(vfs_below(vfs), arguments...);
}

sqlite3_vfs over(sqlite3_vfs* below, const char* name) {
  sqlite3_vfs vfs = *below;
  vfs.szOsFile = below->szOsFile + static_cast<int>(sizeof(File));
  vfs.pNext = nullptr;
  vfs.zName = name;
  vfs.pAppData = below;
  vfs.xOpen = open;
  vfs.xDelete = pass_vfs<&sqlite3_vfs::xDelete>;
  vfs.xAccess = pass_vfs<&sqlite3_vfs::xAccess>;
  vfs.xFullPathname = pass_vfs<&sqlite3_vfs::xFullPathname>;
  vfs.xDlOpen = pass_vfs<&sqlite3_vfs::xDlOpen>;
  vfs.xDlError = pass_vfs<&sqlite3_vfs::xDlError>;
  vfs.xDlSym = pass_vfs<&sqlite3_vfs::xDlSym>;
  vfs.xDlClose = pass_vfs<&sqlite3_vfs::xDlClose>;
  vfs.xRandomness = pass_vfs<&sqlite3_vfs::xRandomness>;
  vfs.xSleep = pass_vfs<&sqlite3_vfs::xSleep>;
  vfs.xCurrentTime = pass_vfs<&sqlite3_vfs::xCurrentTime>;
  vfs.xGetLastError = pass_vfs<&sqlite3_vfs::xGetLastError>;
  vfs.xCurrentTimeInt64 = pass_vfs<&sqlite3_vfs::xCurrentTimeInt64>;
  vfs.xSetSystemCall = pass_vfs<&sqlite3_vfs::xSetSystemCall>;
  vfs.xGetSystemCall = pass_vfs<&sqlite3_vfs::xGetSystemCall>;
  vfs.xNextSystemCall = pass_vfs<&sqlite3_vfs::xNextSystemCall>;
  return vfs;
}

struct Registered {
  std::string name;
  sqlite3_vfs vfs;
};

}  // namespace

const char* page_checksum_vfs(const char* below) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Registered>> registered;  // SQLite keeps pointers to them
  const std::scoped_lock lock(mutex);
  sqlite3_vfs* const found = sqlite3_vfs_find(below);
  if (!found) throw SQLite::Exception("SQLite has no such VFS", SQLITE_ERROR);
  auto& entry = registered[found->zName];
  if (!entry) {
    entry = std::make_unique<Registered>();
    entry->name = std::string("checksums-") + found->zName;
    entry->vfs = over(found, entry->name.c_str());
    if (sqlite3_vfs_register(&entry->vfs, 0) != SQLITE_OK) {
      entry.reset();
      throw SQLite::Exception("SQLite cannot register a VFS", SQLITE_NOMEM);
    }
  }
  return entry->name.c_str();
}

void add_page_checksums(SQLite::Database& empty) {
  int bytes = check_bytes;
  if (sqlite3_file_control(empty.getHandle(), "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes) != SQLITE_OK)
    throw SQLite::Exception("cannot add checksums of pages", SQLITE_ERROR);
  int page_size = empty.execAndGet("PRAGMA page_size").getInt();
  const int code = sqlite3_file_control(empty.getHandle(), "main", set_page_size, &page_size);
  if (code != SQLITE_OK && code != SQLITE_NOTFOUND)  // a temporary database has no file yet, and no checksums
    throw SQLite::Exception("cannot add checksums of pages", code);
}

bool has_page_checksums(const SQLite::Database& connection) {
  int bytes = -1;  // only ask
  return sqlite3_file_control(connection.getHandle(), "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes) ==
             SQLITE_OK &&
         bytes == check_bytes;
}

}  // namespace trainyard::db
