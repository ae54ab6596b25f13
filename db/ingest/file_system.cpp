#include "db/ingest/file_system.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include <sys/vfs.h>

#include "base/error.h"

namespace trainyard::db {

namespace fs = std::filesystem;

namespace {

struct NetworkFileSystem {
  unsigned long magic;
  std::string_view name;
};

// linux/magic.h and the sources of those outside of it. 9P is missing on purpose: sandboxes mount local disks
// by it.
constexpr std::array<NetworkFileSystem, 13> network_file_systems{{{0x6969, "NFS"},
                                                                  {0x517B, "SMB"},
                                                                  {0xFF534D42, "CIFS"},
                                                                  {0xFE534D42, "SMB2"},
                                                                  {0x0BD00BD0, "Lustre"},
                                                                  {0x47504653, "GPFS"},
                                                                  {0x19830326, "BeeGFS"},
                                                                  {0x00C36400, "Ceph"},
                                                                  {0x5346414F, "AFS"},
                                                                  {0x6B414653, "AFS"},
                                                                  {0x73757245, "Coda"},
                                                                  {0x7461636F, "OCFS2"},
                                                                  {0xAAD7AAEA, "PanFS"}}};

constexpr unsigned long fuse_magic = 0x65735546;

// The type in /proc/self/mounts of the mount that `folder` lies on: "fuse.sshfs".
std::string mount_type(const fs::path& folder) {
  std::ifstream mounts("/proc/self/mounts");
  std::string device, place, type, rest, found;
  std::size_t longest = 0;
  while (mounts >> device >> place >> type && std::getline(mounts, rest)) {
    const std::string text = folder.string() + "/";
    const bool below = place == "/" || text.starts_with(place + "/");
    if (below && place.size() >= longest) {
      longest = place.size();
      found = type;
    }
  }
  return found;
}

// FUSE carries local disks too; these it carries over a network.
std::string network_by_fuse(const std::string& type) {
  static constexpr std::array<std::string_view, 6> names{"sshfs",   "glusterfs", "s3fs",
                                                         "gcsfuse", "rclone",    "cephfs"};
  for (const std::string_view name : names)
    if (type.find(name) != std::string::npos) return std::string(name);
  return "";
}

fs::path nearest_there(fs::path folder) {
  std::error_code error;
  folder = fs::absolute(folder);
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::path real = fs::canonical(folder, error);
  return error ? folder : real;
}

}  // namespace

std::string network_file_system(unsigned long magic) {
  const auto* row = std::find_if(network_file_systems.begin(), network_file_systems.end(),
                                 [&](const NetworkFileSystem& each) { return each.magic == magic; });
  return row == network_file_systems.end() ? "" : std::string(row->name);
}

void refuse_network_file_system(const fs::path& folder) {
  const fs::path there = nearest_there(folder);
  struct statfs found {};
  if (::statfs(there.c_str(), &found) != 0) return;  // opening the database says more
  const auto magic = static_cast<unsigned long>(found.f_type) & 0xFFFFFFFFUL;
  const std::string name =
      magic == fuse_magic ? network_by_fuse(mount_type(there)) : network_file_system(magic);
  if (name.empty()) return;
  throw UserError("lies on " + name + ", a network file system, where a database can be damaged",
                  "put the yard on a local disk with --yard or TRAINYARD_HOME", {.file = folder.string()});
}

}  // namespace trainyard::db
