// A SQLite VFS that gives each page of a database a checksum, and verifies it when the page is read.
// - SQLite leaves the last eight bytes of each page free. They hold a mark and the CRC-32C of the page's offset
//   and content. So a flipped bit, a zeroed block and a misplaced page are noticed by every command.
// - A database that was made without it stays without: `has_page_checksums` tells.
// - A program without this VFS can read the database. If it writes, the pages no longer have their checksums.
// - The -wal file is not covered. SQLite verifies its own checksums there when it opens the file.
#pragma once

namespace SQLite {
class Database;
}

namespace trainyard::db {

// The name for SQLite::Database and ATTACH. `below`: the VFS that reads and writes; null for SQLite's default.
// Any thread may call this at any time.
const char* page_checksum_vfs(const char* below = nullptr);

// Call this before anything is written to a new, empty database.
void add_page_checksums(SQLite::Database& empty);

bool has_page_checksums(const SQLite::Database& connection);

}  // namespace trainyard::db
