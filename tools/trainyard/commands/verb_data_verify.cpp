#include <iostream>

#include "base/error.h"
#include "models/datasets/datasets.h"
#include "tools/trainyard/commands/verb_data.h"

namespace trainyard::tools {
namespace {

namespace fs = std::filesystem;

// The file at `place` under its published name, or unpacked without ".gz"; nothing where it is not there.
std::optional<fs::path> file_at(const fs::path& place, const std::string& name) {
  if (fs::is_regular_file(place)) return place.filename() == name ? std::optional(place) : std::nullopt;
  if (fs::is_regular_file(place / name)) return place / name;
  if (!name.ends_with(".gz")) return std::nullopt;
  const fs::path plain = place / name.substr(0, name.size() - 3);
  return fs::is_regular_file(plain) ? std::optional(plain) : std::nullopt;
}

struct Verdict {
  bool wrong = false;
  std::string text;
};

Verdict verdict_of(const models::KnownFile& known, const fs::path& file) {
  if (models::fits(known, models::digests_of_file(file)))
    return {false, "as published, " + models::digest_text(known)};
  if (!known.content_md5.empty()) {
    if (models::digests_of_content(file).md5 == known.content_md5)
      return {false, "its content is as published, MD5 " + known.content_md5};
    return {true, "NOT as published: its content should have MD5 " + known.content_md5};
  }
  if (file.filename() != known.name) return {false, "unpacked; nothing is known to hold it against"};
  return {true, "NOT as published: should be " + std::to_string(known.bytes) + " bytes, " +
                    models::digest_text(known)};
}

bool verify_files(const models::KnownDataset& known, const fs::path& place, std::ostream& out) {
  bool good = true;
  bool any = false;
  for (const models::KnownFile& file : known.unpacked.empty() ? known.files : known.members) {
    const auto found = file_at(place, file.name);
    if (!found) continue;
    any = true;
    const Verdict verdict = verdict_of(file, *found);
    good = good && !verdict.wrong;
    out << found->string() << ": " << verdict.text << '\n';
  }
  if (!any) out << place.string() << ": no file has a published name; only read, not held against a digest\n";
  return good;
}

std::string shape_text(const models::Dataset& dataset, const models::InputShape& input) {
  if (dataset.kind == models::DataKind::images) return std::to_string(input.classes) + " classes";
  std::string text = "vocabulary " + std::to_string(input.vocabulary);
  if (input.target_vocabulary > 0) text += " and " + std::to_string(input.target_vocabulary);
  return text;
}

}  // namespace

bool verify_data(const std::string& name, const fs::path& directory, std::ostream& out) {
  const models::Dataset& dataset = models::find_dataset(name);
  const auto place = models::find_folder(dataset, directory);
  if (!place) {
    out << name << ": not in " << directory.string() << '\n';
    return true;
  }
  const models::KnownDataset* known = models::find_known_dataset(name);
  bool good = known == nullptr || verify_files(*known, *place, out);
  try {
    const models::DataFacts facts = models::facts(dataset, *place, models::DataChoice{});
    out << place->string() << ": reads as " << name << ", " << shape_text(dataset, facts.input)
        << ", fingerprint " << facts.fingerprint << '\n';
  } catch (const UserError& error) {
    out << "NOT readable as " << name << ": " << error.what() << '\n';
    good = false;
  }
  return good;
}

}  // namespace trainyard::tools
