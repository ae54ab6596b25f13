// The published files of the data sets: where they are got, and what they are known by. `trainyard data`
// lists, gets and verifies them. Digests are those that the publisher or PyTorch's and TensorFlow's loaders
// state; of Multi30k, those of the files in its repository. Without LibTorch, network or user's messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace trainyard::models {

struct KnownFile {
  std::string name;         // "train-images-idx3-ubyte.gz"
  std::uint64_t bytes = 0;  // as it is published
  std::string sha256;       // of the same; empty where only MD5 is known
  std::string md5;          // of the same; empty where SHA-256 is
  std::string content_md5;  // of what a .gz unpacks to: known packers differ; may be empty
};

// `files` are got from address/name into `folder` of the data directory ("" is the directory itself).
struct KnownDataset {
  std::string dataset;  // "mnist"
  std::string address;
  std::string folder;
  std::vector<KnownFile> files;
  std::string unpacked;            // an archive only: the folder it holds, which is kept in its place
  std::vector<KnownFile> members;  // of that folder
};

std::span<const KnownDataset> known_datasets();
const KnownDataset* find_known_dataset(const std::string& dataset);  // null: nothing is published for it

struct Digests {
  std::uint64_t bytes = 0;
  std::string sha256;
  std::string md5;
};
Digests digests_of_file(const std::filesystem::path& file);     // of the file as it is
Digests digests_of_content(const std::filesystem::path& file);  // unpacked, where it is gzip

bool fits(const KnownFile& known, const Digests& file);  // what is known of bytes and digests is so
// The digest that decides, for people: "SHA-256 440f…", "MD5 8d4f…".
std::string digest_text(const KnownFile& known);

}  // namespace trainyard::models
