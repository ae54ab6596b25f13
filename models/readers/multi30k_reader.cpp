#include "models/readers/multi30k_reader.h"

#include "base/error.h"
#include "models/readers/text_file.h"

namespace trainyard::models {

namespace {

namespace fs = std::filesystem;

fs::path file_of(const fs::path& folder, const std::string& name) {
  for (const char* packed : {"", ".gz"})
    if (fs::is_regular_file(folder / (name + packed))) return folder / (name + packed);
  throw UserError((folder / name).string() + " is missing, and so is " + name + ".gz",
                  "get Multi30k whole from its source");
}

// Without the ends of lines, "\n" or "\r\n".
std::vector<std::string> lines_of(const std::string& text) {
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

std::vector<std::string> read_lines(const fs::path& path, const std::string& name, Sha256& hash) {
  const std::string text = read_text_file(path);
  hash.update(name + '\n' + std::to_string(text.size()) + '\n');
  hash.update(text);
  return lines_of(text);
}

RawTexts read_part(const fs::path& folder, const std::string& name, Sha256& hash) {
  const fs::path source = file_of(folder, name + ".de");
  const fs::path target = file_of(folder, name + ".en");
  RawTexts part{.source = read_lines(source, name + ".de", hash),
                .target = read_lines(target, name + ".en", hash),
                .labels = {}};
  if (part.source.size() != part.target.size())
    throw UserError(source.string() + " has " + std::to_string(part.source.size()) + " lines, but " +
                        target.string() + " has " + std::to_string(part.target.size()),
                    "get both again from their source");
  if (part.size() == 0) throw UserError(source.string() + " is empty", "get it again from its source");
  return part;
}

}  // namespace

Parts<RawTexts> read_multi30k(const fs::path& folder, Sha256& hash) {
  RawTexts train = read_part(folder, "train", hash);
  RawTexts validation = read_part(folder, "val", hash);
  return {.train = std::move(train),
          .validation = std::move(validation),
          .test = read_part(folder, "test_2016_flickr", hash)};
}

}  // namespace trainyard::models
