#include "models/readers/text_readers.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "models/readers/data_file.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

struct Review {
  bool test = false;
  std::uint8_t label = 0;
  std::string name;  // "0_9.txt"
  std::string text;
};

constexpr std::array<const char*, 4> review_folders{"train/neg", "train/pos", "test/neg", "test/pos"};

Review review_in(const std::string& folder) {
  return {.test = folder.starts_with("test"),
          .label = folder.ends_with("pos") ? std::uint8_t{1} : std::uint8_t{0},
          .name = "",
          .text = ""};
}

bool is_review_name(const std::string& name) {
  return name.ends_with(".txt") && !name.starts_with('.');
}

// The review of the archive entry `…/train/pos/0_9.txt`, without its text. Empty for any other entry.
std::optional<Review> review_of(const std::string& entry) {
  const fs::path path(entry);
  const std::string name = path.filename().string();
  const fs::path label = path.parent_path();
  const std::string folder = (label.parent_path().filename() / label.filename()).string();
  const auto known = std::find(review_folders.begin(), review_folders.end(), folder);
  if (known == review_folders.end() || !is_review_name(name)) return std::nullopt;
  Review review = review_in(folder);
  review.name = name;
  return review;
}

std::vector<Review> reviews_of_archive(const fs::path& file) {
  std::vector<Review> reviews;
  Archive archive(file);
  while (const auto entry = archive.next()) {
    auto review = review_of(*entry);
    if (!review) continue;
    review->text = archive.content();
    if (const auto byte = first_not_utf8(review->text))
      throw UserError(fmt::format("{}: {}: byte {}: this is not UTF-8", file.string(), *entry, *byte),
                      "download the file again");
    reviews.push_back(std::move(*review));
  }
  return reviews;
}

std::vector<Review> reviews_of_folder(const fs::path& root) {
  std::vector<Review> reviews;
  for (const std::string folder : review_folders) {
    if (!fs::is_directory(root / folder)) continue;
    for (const std::string& name : names_in(root / folder)) {
      if (!is_review_name(name)) continue;
      Review review = review_in(folder);
      review.name = name;
      review.text = read_text_file(root / folder / name);
      reviews.push_back(std::move(review));
    }
  }
  return reviews;
}

void hash_review(const Review& review, Sha256& hash) {
  hash.update(std::string(review.test ? "test/" : "train/") + (review.label == 1 ? "pos/" : "neg/") +
              review.name + '\n' + std::to_string(review.text.size()) + '\n');
  hash.update(review.text);
}

fs::path file_of(const fs::path& folder, const std::string& name) {
  for (const char* packed : {"", ".gz"})
    if (fs::exists(folder / (name + packed))) return folder / (name + packed);
  throw UserError(fmt::format("{} is missing, and so is {}.gz", (folder / name).string(), name),
                  "download the data set again");
}

// The lines without their ends, "\n" or "\r\n".
std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string line = text.substr(start, end - start);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    start = end + 1;
  }
  return lines;
}

std::string read_hashed(const fs::path& path, const std::string& name, Sha256& hash) {
  std::string text = read_text_file(path);
  hash.update(name + '\n' + std::to_string(text.size()) + '\n');
  hash.update(text);
  return text;
}

RawTexts read_part(const fs::path& folder, const std::string& name, Sha256& hash) {
  const fs::path source = file_of(folder, name + ".de");
  const fs::path target = file_of(folder, name + ".en");
  RawTexts part{.source = split_lines(read_hashed(source, name + ".de", hash)),
                .target = split_lines(read_hashed(target, name + ".en", hash)),
                .labels = {}};
  if (part.source.size() != part.target.size())
    throw UserError(fmt::format("{} has {} lines, but {} has {}", source.string(), part.source.size(),
                                target.string(), part.target.size()),
                    "download both files again");
  if (part.size() == 0)
    throw UserError(fmt::format("{} is empty", source.string()), "download the file again");
  return part;
}

}  // namespace

bool is_archive_name(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".tar") || name.ends_with(".tar.gz") || name.ends_with(".tgz");
}

Parts<RawTexts> read_imdb(const fs::path& folder_or_archive, Sha256& hash) {
  std::vector<Review> reviews = fs::is_directory(folder_or_archive) ? reviews_of_folder(folder_or_archive)
                                                                    : reviews_of_archive(folder_or_archive);
  std::ranges::sort(reviews, {},
                    [](const Review& review) { return std::tie(review.test, review.label, review.name); });
  Parts<RawTexts> parts;
  std::array<std::int64_t, 4> counts{};
  for (Review& review : reviews) {
    hash_review(review, hash);
    ++counts.at((review.test ? 2U : 0U) + review.label);
    RawTexts& part = review.test ? parts.test : parts.train;
    part.source.push_back(std::move(review.text));
    part.labels.push_back(review.label);
  }
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts.at(i) == 0)
      throw UserError(
          fmt::format("{}: {} has no review (*.txt)", folder_or_archive.string(), review_folders.at(i)),
          "download the data set again");
  return parts;
}

Parts<RawTexts> read_multi30k(const fs::path& folder, Sha256& hash) {
  RawTexts train = read_part(folder, "train", hash);
  RawTexts validation = read_part(folder, "val", hash);
  return {.train = std::move(train),
          .validation = std::move(validation),
          .test = read_part(folder, "test_2016_flickr", hash)};
}

std::string read_whole_text(const fs::path& folder, const std::string& name, Sha256& hash) {
  return read_hashed(file_of(folder, name), name, hash);
}

}  // namespace trainyard::models
