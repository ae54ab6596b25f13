#include "tools/trainyard/commands/data.h"

#include <fstream>
#include <sstream>

#include <doctest/doctest.h>

#include "base/sha256.h"
#include "tests/support/contains.h"
#include "tests/support/data_folder.h"
#include "tests/support/scratch_folder.h"
#include "tests/tools/trainyard/commands/file_server.h"

using namespace trainyard;
using namespace trainyard::tests;

namespace fs = std::filesystem;

namespace {

// The names of files below `folder`, sorted and joined.
std::string names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) names.push_back(fs::relative(entry.path(), folder).string());
  std::sort(names.begin(), names.end());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

const std::string content(200'000, 'd');

// A data set of one file with the size and digest of `published`.
models::KnownDataset known(const std::string& name, const std::string& published) {
  return {.dataset = "mnist",
          .address = "http://127.0.0.1:1",
          .folder = "sub",
          .files = {{name, published.size(), sha256_hex(published), "", ""}},
          .unpacked = "",
          .members = {}};
}

struct Site {
  DataFolder served;
  DataFolder data;
  std::string get(const models::KnownDataset& set, const std::string& mode) const {
    const FileServer server(served.path(), mode);
    std::ostringstream out;
    tools::get_data(set, data.path(), server.address(), out);
    return out.str();
  }
  std::string error(const models::KnownDataset& set, const std::string& mode) const {
    return user_error_of([&] { get(set, mode); });
  }
  std::string requests() const { return read_text(served.path() / "requests"); }
};

}  // namespace

TEST_CASE("a file is downloaded completely, verified, and not downloaded again") {
  const Site site;
  site.served.write("a.bin", content);
  CHECK(contains(site.get(known("a.bin", content), "range"), "sub/a.bin: downloaded, as published"));
  CHECK(names_in(site.data.path()) == "sub/a.bin");
  CHECK(read_text(site.data.path() / "sub/a.bin") == content);
  CHECK(contains(site.get(known("a.bin", content), "range"), "sub/a.bin: already there, as published"));
  CHECK(site.requests() == "/a.bin -\n");
}

TEST_CASE("an interrupted download leaves only its part, and the next one downloads the rest") {
  const Site site;
  site.served.write("a.bin", content);
  const std::string error = site.error(known("a.bin", content), "cut");
  CHECK(contains(error, "cannot download http://127.0.0.1:"));
  CHECK(contains(error, "sub/a.bin.part; the same command continues"));
  CHECK(names_in(site.data.path()) == "sub/a.bin.part");
  CHECK(fs::file_size(site.data.path() / "sub/a.bin.part") == 100'000);
  site.get(known("a.bin", content), "cut");
  CHECK(names_in(site.data.path()) == "sub/a.bin");
  CHECK(read_text(site.data.path() / "sub/a.bin") == content);
  CHECK(site.requests() == "/a.bin -\n/a.bin 100000\n");
}

TEST_CASE("from a server that cannot continue, the whole file is downloaded again") {
  const Site site;
  site.served.write("a.bin", content);
  site.data.write("sub/a.bin.part", "half of something");
  site.get(known("a.bin", content), "whole");
  CHECK(names_in(site.data.path()) == "sub/a.bin");
  CHECK(read_text(site.data.path() / "sub/a.bin") == content);
}

TEST_CASE("a file with wrong content is not kept, and an existing wrong one is replaced") {
  const Site site;
  std::string other = content;
  other[17] = 'x';
  site.served.write("a.bin", other);
  CHECK(contains(site.error(known("a.bin", content), "range"),
                 "a.bin is not the published file: 200000 bytes"));
  CHECK(names_in(site.data.path()).empty());
  site.served.write("a.bin", content);
  site.data.write("sub/a.bin", other);
  site.get(known("a.bin", content), "range");
  CHECK(read_text(site.data.path() / "sub/a.bin") == content);
}

TEST_CASE("a file that the server does not have is an error with its address") {
  const Site site;
  const std::string error = site.error(known("none.bin", content), "range");
  CHECK(contains(error, "/none.bin: "));
  CHECK(contains(error, "404"));
}

TEST_CASE("a server that sends more than the published size is cut off, and nothing is kept") {
  const Site site;
  site.served.write("a.bin", content);
  const std::string error = site.error(known("a.bin", content.substr(0, 1000)), "range");
  CHECK_MESSAGE(contains(error, "the server sends more than the 1000 bytes of the published file"), error);
  CHECK(names_in(site.data.path()).empty());
}

TEST_CASE("without our own SHA-256 a file is downloaded over HTTPS only") {
  const Site site;
  site.served.write("a.bin", content);
  models::KnownDataset set = known("a.bin", content);
  set.files[0].sha256.clear();
  set.files[0].md5 = "00000000000000000000000000000000";
  const std::string error = site.error(set, "range");
  CHECK_MESSAGE(contains(error, "only the MD5 of the file is known; use an address with https://"), error);
  CHECK(site.requests().empty());
  for (const auto& published : models::known_datasets())
    for (const auto& file : published.files)
      CHECK_MESSAGE((!file.sha256.empty() || published.address.starts_with("https://")), file.name);
}

TEST_CASE("redirects that do not end, or that lead to a local file, are not followed") {
  const Site site;
  site.served.write("a.bin", content);
  CHECK(contains(site.error(known("a.bin", content), "loop"), "Maximum (5) redirects followed"));
  CHECK(site.requests().size() == 6 * std::string("/a.bin -\n").size());
  const std::string error = site.error(known("a.bin", content), "local");
  CHECK_MESSAGE(contains(error, "Protocol \"file\" not supported or disabled"), error);
}

TEST_CASE("an archive that is kept unpacked is unpacked, and no other file remains") {
  const Site site;
  const std::string archive =
      gzipped(tar({{"batches/one.bin", "1"}, {"batches/two.bin", "22"}, {"readme", "x"}}));
  std::ofstream(site.served.path() / "b.tar.gz", std::ios::binary) << archive;
  models::KnownDataset set = known("b.tar.gz", archive);
  set.folder = "";
  set.unpacked = "batches";
  CHECK(contains(site.get(set, "range"), "batches: downloaded, as published, and unpacked"));
  CHECK(names_in(site.data.path()) == "batches/one.bin batches/two.bin");
  CHECK(read_text(site.data.path() / "batches/two.bin") == "22");
  CHECK(contains(site.get(set, "range"), "already there"));
}

TEST_CASE("files are verified against the published digests, and read") {
  const DataFolder data;
  std::ostringstream out;
  CHECK(tools::verify_data("mnist", data.path(), out));
  CHECK(out.str() == "mnist: not in " + data.path().string() + "\n");
  data.write("mnist/t10k-images-idx3-ubyte", idx_images(3));
  data.write("mnist/t10k-labels-idx1-ubyte", idx_labels(3));
  out.str("");
  CHECK_FALSE(tools::verify_data("mnist", data.path(), out));
  CHECK(
      contains(out.str(), "t10k-images-idx3-ubyte: NOT as published: its content should have MD5 2646ac64"));
  CHECK(contains(out.str(), "reads as mnist, 10 classes, fingerprint "));
  data.write("mnist/t10k-labels-idx1-ubyte", idx_labels(2));
  out.str("");
  CHECK_FALSE(tools::verify_data("mnist", data.path(), out));
  CHECK(contains(out.str(), "NOT readable as mnist: "));
}

TEST_CASE("the real files match the published digests, however they were compressed") {
  const char* directory = std::getenv("TRAINYARD_DATA");
  const fs::path data = directory != nullptr ? fs::path(directory) : fs::path("../shared/data");
  for (const std::string name : {"mnist", "multi30k"}) {
    std::ostringstream out;
    CHECK(tools::verify_data(name, data, out));
    if (contains(out.str(), "not in")) {
      MESSAGE("skipped: ", out.str());
    } else {
      CHECK(contains(out.str(), "as published, "));
      CHECK(contains(out.str(), "reads as " + name));
    }
  }
}

TEST_CASE("the list has every published file with its size, digest and address") {
  std::ostringstream out;
  tools::list_data(std::nullopt, out);
  for (const auto& set : models::known_datasets()) {
    CHECK(contains(out.str(), set.address));
    for (const auto& file : set.files) {
      CHECK(contains(out.str(), file.name));
      CHECK(contains(out.str(), std::to_string(file.bytes)));
      CHECK(file.sha256.size() + file.md5.size() >= 32);
    }
  }
}
