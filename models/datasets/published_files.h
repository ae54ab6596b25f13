// Published files of the data sets: URLs, sizes and digests, for `trainyard data`.
// Digests are from the publisher, or from the loaders of PyTorch and TensorFlow. For Multi30k and Tiny
// Shakespeare they are the digests of the files in their repositories.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace trainyard::models {

struct KnownFile {
  std::string name;         // "train-images-idx3-ubyte.gz"
  std::uint64_t bytes = 0;  // of the published file
  std::string sha256;       // of the published file; empty if only its MD5 is known
  std::string md5;          // of the published file; empty if its SHA-256 is known
  std::string
      content_md5;  // of the unpacked content of a .gz, which several packers may have made; may be empty
};

// Each file is downloaded from address/name to `folder` in the data directory ("" is the data directory
// itself).
struct KnownDataset {
  std::string dataset;  // "mnist"
  std::string address;
  std::string folder;
  std::vector<KnownFile> files;
  std::string unpacked = {};  // for an archive: the folder in it, which replaces the archive after unpacking
  std::vector<KnownFile> members = {};  // the files in that folder
};

std::span<const KnownDataset> known_datasets();
const KnownDataset* find_known_dataset(const std::string& dataset);  // null if no files are published

struct Digests {
  std::uint64_t bytes = 0;
  std::string sha256;
  std::string md5;
};
Digests digests_of_file(const std::filesystem::path& file);     // of the file
Digests digests_of_content(const std::filesystem::path& file);  // of the unpacked content, if it is gzip

bool fits(const KnownFile& known, const Digests& file);  // size and all known digests are equal
// The digest for messages: "SHA-256 440f…", "MD5 8d4f…".
std::string digest_text(const KnownFile& known);

}  // namespace trainyard::models
