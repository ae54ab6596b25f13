#include "models/readers/text_readers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <sstream>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "models/readers/class_folders.h"
#include "models/readers/data_file.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

struct Review {
  bool test = false;
  std::uint8_t label = 0;
  std::string name = {};  // "0_9.txt"
  std::string text = {};
};

constexpr std::array<const char*, 4> review_folders{"train/neg", "train/pos", "test/neg", "test/pos"};

Review review_in(const std::string& folder) {
  return {.test = folder.starts_with("test"),
          .label = folder.ends_with("pos") ? std::uint8_t{1} : std::uint8_t{0}};
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

fs::path file_of(const fs::path& folder, const std::string& name, const char* advice) {
  for (const char* packed : {"", ".gz"})
    if (fs::exists(folder / (name + packed))) return folder / (name + packed);
  throw UserError(fmt::format("{} is missing, and so is {}.gz", (folder / name).string(), name), advice);
}

// The lines without their ends, "\n" or "\r\n".
std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

std::string read_hashed(const fs::path& path, const std::string& name, Sha256& hash, const char* advice) {
  std::string text = read_text_file(path, advice);
  hash.update(name + '\n' + std::to_string(text.size()) + '\n');
  hash.update(text);
  return text;
}

constexpr const char* own_advice = "save it as UTF-8, plain or in gzip";

bool is_text_name(const std::string& name) {
  return name.ends_with(".txt");
}

constexpr SampleFiles text_files{.is_name = is_text_name, .kind = "file *.txt", .samples = "texts"};

RawTexts read_labelled(const std::vector<LabelledFile>& files, Sha256& hash) {
  RawTexts part;
  for (const LabelledFile& file : files) {
    part.source.push_back(read_hashed(file.path, file.name, hash, own_advice));
    if (trimmed(part.source.back()).empty())
      throw UserError(fmt::format("{} is empty", file.path.string()), "add its text, or remove the file");
    part.labels.push_back(file.label);
  }
  return part;
}

std::string without_gz(const std::string& name) {
  return name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
}

// The languages of the files PART.LANGUAGE and PART.LANGUAGE.gz.
std::set<std::string> languages_of(const fs::path& folder, const std::string& part) {
  std::set<std::string> languages;
  if (!fs::is_directory(folder)) return languages;
  for (const std::string& name : names_in(folder))
    if (name.starts_with(part + '.') && name.size() > part.size() + 1)
      languages.insert(without_gz(name).substr(part.size() + 1));
  return languages;
}

std::vector<std::string> sentences_in(const fs::path& file, const std::string& name, Sha256& hash) {
  std::vector<std::string> lines = split_lines(read_hashed(file, name, hash, own_advice));
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (lines[i].find_first_not_of(" \t") == std::string::npos)
      throw UserError(fmt::format("{}:{}: the line is empty", file.string(), i + 1),
                      "remove this line from the files of both languages");
  return lines;
}

struct Languages {
  std::string source, target;
};

// A part of translations: the sentences of each language in a file.
RawTexts read_part(const fs::path& folder, const std::string& part, const Languages& languages,
                   Sha256& hash) {
  constexpr const char* both = "give each part both languages, with the same lines";
  const std::string names[] = {part + '.' + languages.source, part + '.' + languages.target};
  const fs::path source = file_of(folder, names[0], both), target = file_of(folder, names[1], both);
  RawTexts texts{.source = sentences_in(source, names[0], hash),
                 .target = sentences_in(target, names[1], hash),
                 .labels = {}};
  if (texts.source.size() != texts.target.size())
    throw UserError(fmt::format("{} has {}, but {} has {}", source.string(),
                                counted(texts.source.size(), "line"), target.string(), texts.target.size()),
                    "line n of one file must be the translation of line n of the other");
  if (texts.size() == 0) throw UserError(fmt::format("{} is empty", source.string()), "add its sentences");
  return texts;
}

// The two languages of the training part, in the order of translation.
Languages find_languages(const fs::path& folder, const std::string& source_language) {
  const std::set<std::string> found = languages_of(folder, "train");
  if (found.size() != 2)
    throw UserError(fmt::format("{} has files train.LANGUAGE of {}{}{}", folder.string(),
                                counted(found.size(), "language"), found.empty() ? "" : ": ", joined(found)),
                    "it must have two, as train.de and train.en");
  const std::string& first = *found.begin();
  const std::string& second = *found.rbegin();
  if (source_language.empty() || source_language == first) return {.source = first, .target = second};
  if (source_language == second) return {.source = second, .target = first};
  throw UserError(fmt::format("source_language is \"{}\", but {} has the languages {} and {}",
                              source_language, folder.string(), first, second),
                  "use one of these languages");
}

// Empty if it has no file. UserError for a file of a third language.
RawTexts optional_part(const fs::path& folder, const std::string& part, const Languages& languages,
                       Sha256& hash) {
  const std::set<std::string> found = languages_of(folder, part);
  for (const std::string& language : found)
    if (language != languages.source && language != languages.target)
      throw UserError(fmt::format("{}: the training part has no file of the language \"{}\"",
                                  (folder / (part + '.' + language)).string(), language),
                      "use the same two languages in all parts");
  return found.empty() ? RawTexts() : read_part(folder, part, languages, hash);
}

// The files of the user's own text, in their order.
std::vector<fs::path> own_text_files(const fs::path& place) {
  if (!fs::is_directory(place)) return fs::exists(place) ? std::vector{place} : std::vector<fs::path>{};
  std::vector<fs::path> files;
  for (const std::string& name : names_in(place))
    if (!name.starts_with('.') && is_text_name(without_gz(name))) files.push_back(place / name);
  return files;
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
  const Languages languages{.source = "de", .target = "en"};
  Parts<RawTexts> parts;
  parts.train = read_part(folder, "train", languages, hash);
  parts.validation = read_part(folder, "val", languages, hash);
  parts.test = read_part(folder, "test_2016_flickr", languages, hash);
  return parts;
}

std::string read_whole_text(const fs::path& folder, const std::string& name, Sha256& hash) {
  return read_hashed(file_of(folder, name, "download the data set again"), name, hash,
                     "download the file again");
}

bool holds_text_classes(const fs::path& folder) {
  return holds_classes(folder, text_files);
}

std::vector<std::string> text_class_names(const fs::path& folder) {
  return find_class_folders(folder, text_files).classes;
}

FolderTexts read_text_folder(const fs::path& folder, Sha256& hash) {
  const ClassFolders found = find_class_folders(folder, text_files);
  if (found.classes.size() < 2)
    throw UserError(fmt::format("{} has {} of texts", folder.string(),
                                counted_in_words(found.classes.size(), "class folder")),
                    "a classification needs at least two, each with files *.txt");
  const auto part = [&](const char* name, const std::vector<LabelledFile>& files) {
    hash.update(fmt::format("part {}\n", name));
    return read_labelled(files, hash);
  };
  FolderTexts texts{.parts = {}, .classes = std::ssize(found.classes)};
  texts.parts.train = part("train", found.files.train);
  texts.parts.validation = part("validation", found.files.validation);
  texts.parts.test = part("test", found.files.test);
  return texts;
}

bool holds_text_pairs(const fs::path& folder) {
  return !languages_of(folder, "train").empty();
}

Parts<RawTexts> read_text_pairs(const fs::path& folder, const std::string& source_language, Sha256& hash) {
  const Languages languages = find_languages(folder, source_language);
  Parts<RawTexts> parts;
  parts.train = read_part(folder, "train", languages, hash);
  parts.validation = optional_part(folder, "validation", languages, hash);
  parts.test = optional_part(folder, "test", languages, hash);
  return parts;
}

bool holds_own_text(const fs::path& file_or_folder) {
  return !own_text_files(file_or_folder).empty();
}

std::string read_own_text(const fs::path& file_or_folder, Sha256& hash) {
  const std::vector<fs::path> files = own_text_files(file_or_folder);
  if (files.empty())
    throw UserError(fmt::format("{} has no file *.txt", file_or_folder.string()), "add the text");
  std::string whole;
  for (const fs::path& file : files) {
    whole += read_hashed(file, without_gz(file.filename().string()), hash, own_advice);
    if (!whole.ends_with('\n')) whole += '\n';
  }
  return whole;
}

}  // namespace trainyard::models
