#include "base/plain_file.h"

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::tests;

namespace {

namespace fs = std::filesystem;

void make_socket(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.string().size() < sizeof address.sun_path);
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  const FileDescriptor fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

// What the file is, and a place that is one.
std::vector<std::pair<std::string, fs::path>> files_of_other_kinds(const ScratchFolder& folder) {
  REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  make_socket(folder / "socket");
  fs::create_symlink(folder / "fifo", folder / "link");
  return {{"a FIFO", folder / "fifo"},
          {"a FIFO", folder / "link"},
          {"a socket", folder / "socket"},
          {"a folder", folder.path()},
          {"a device", "/dev/zero"}};
}

}  // namespace

TEST_CASE("only a plain file is opened, and anything else is refused at once with its kind") {
  const ScratchFolder folder;
  for (const auto& other : files_of_other_kinds(folder)) {
    const std::string& kind = other.first;
    const fs::path& place = other.second;
    for (const int flags : {O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC, O_RDWR | O_APPEND}) {
      const OpenedFile opened = open_plain(place, flags);
      CHECK_MESSAGE(!opened.fd, place.string());
      CHECK(opened.problem == "it is " + kind + ", not a plain file");
    }
    PlainFileReader reader(place);
    CHECK(!reader);
    CHECK(reader.problem() == "it is " + kind + ", not a plain file");
    PlainFileWriter writer(place);
    CHECK(!writer);
    CHECK(writer.problem() == reader.problem());
    CHECK(whole_file(place).empty());
    CHECK_THROWS_AS((void)open_plain(place).or_refuse(place), UserError);
  }
  CHECK(open_plain(folder / "missing").problem == "No such file or directory");
}

TEST_CASE("the content of a plain file is read up to a limit, also if the file does not state its size") {
  const ScratchFolder folder;
  constexpr std::size_t limit = 1 << 20;
  const std::string longest(limit, 'x');
  write_text(folder / "longest", longest);
  write_text(folder / "longer", longest + 'x');
  CHECK(plain_content(folder / "longest", limit).text == longest);
  const PlainContent longer = plain_content(folder / "longer", limit);
  CHECK(longer.text.empty());
  CHECK(longer.problem == "it is larger than 1 MiB");
  CHECK(longer.error == 0);

  const fs::path without_size = "/proc/self/status";
  CHECK(plain_content(without_size, limit).text.find("\nPid:") != std::string::npos);
  CHECK(plain_content(without_size, 10).problem == "it is larger than 0 MiB");
}

TEST_CASE("a plain file that cannot be read has no content, but a reason") {
  const ScratchFolder folder;
  CHECK(plain_content(folder / "missing", 10).error == ENOENT);
  const PlainContent memory = plain_content("/proc/self/mem", 10);  // nothing is at address 0
  CHECK(memory.text.empty());
  CHECK(memory.problem == "Input/output error");
  CHECK(memory.error == EIO);
}

TEST_CASE("a plain file is read and written as by other streams") {
  const ScratchFolder folder;
  const fs::path file = folder / "file";
  {
    PlainFileWriter writer(file);
    writer << "one\ntwo\n";
    writer.close();
    CHECK(writer);
    CHECK(writer.problem().empty());
  }
  PlainFileReader reader(file);
  std::string line;
  CHECK(std::getline(reader, line));
  CHECK(line == "one");
  CHECK(reader.seekg(0, std::ios::end).tellg() == 8);
  CHECK(reader.seekg(4));
  CHECK(std::getline(reader, line));
  CHECK(line == "two");
  CHECK_FALSE(std::getline(reader, line));
  CHECK(reader.eof());
  PlainFileWriter(file).close();
  CHECK(fs::is_empty(file));
}

TEST_CASE("a link is refused if the caller does not follow links") {
  const ScratchFolder folder;
  write_text(folder / "file", "text");
  fs::create_symlink(folder / "file", folder / "link");
  CHECK(open_plain(folder / "link").fd);
  CHECK(open_plain(folder / "link", O_RDONLY | O_NOFOLLOW).problem == "it is a link, not a plain file");
}

TEST_CASE("an opened plain file is not inherited, and a process that gets it can wait") {
  const ScratchFolder folder;
  const OpenedFile opened = open_plain(folder / "log", O_WRONLY | O_CREAT | O_APPEND);
  REQUIRE(opened.fd);
  CHECK((::fcntl(opened.fd.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK((::fcntl(opened.fd.get(), F_GETFL) & O_NONBLOCK) == 0);
  CHECK((::fcntl(opened.fd.get(), F_GETFL) & O_APPEND) != 0);
}

TEST_CASE("a stream whose bytes cannot be written has failed when it is closed") {
  const ScratchFolder folder;
  write_text(folder / "file", "text");
  PlainFileWriter writer(folder / "file");
  REQUIRE(writer);
  {
    const FileSizeLimit full(2);
    writer << "more than two bytes";
    writer.close();
  }
  CHECK(!writer);
}
