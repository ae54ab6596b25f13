// The file systems a database must not lie on. SQLite's write-ahead log needs shared memory and locks of one
// host; on a network file system both can fail silently, and a database is damaged then.
#pragma once

#include <filesystem>
#include <string>

namespace trainyard::db {

// The name of a network file system by the magic number of statfs(2) ("NFS", "Lustre", …); empty where it is
// none that is known.
std::string network_file_system(unsigned long magic);

// UserError where `folder` lies on one. A folder that is not there counts as its nearest parent.
void refuse_network_file_system(const std::filesystem::path& folder);

}  // namespace trainyard::db
