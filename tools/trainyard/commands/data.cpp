#include "tools/trainyard/commands/data.h"

#include <iostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/named_row.h"
#include "base/plain_file.h"
#include "experiments/file/file.h"
#include "models/datasets/datasets.h"
#include "models/readers/data_file.h"
#include "reports/format/aligned_text.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/download.h"
#include "tools/trainyard/cli/terminal.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string name;
  std::optional<fs::path> directory;
  std::optional<std::string> from;
};

constexpr const char* data_footer =
    "A data directory holds a folder or an archive for each data set. --data or TRAINYARD_DATA names it, "
    "here and for `run`.\n\n"
    "`get` downloads to NAME.part, continues after an interruption, verifies size and digest, and renames. "
    "So a file is complete or absent. The digest is SHA-256.\n\n"
    "`verify` reads the data as a run does. It also accepts a .gz that was compressed again, if the digest "
    "of its content is known.\n\n"
    "Exit codes: 0 all is well, 1 a file differs from the published one or cannot be read, 2 a download "
    "failed or the command line is wrong.";

fs::path directory_of(const Options& options) {
  const auto directory = experiments::data_search(options.directory);
  if (!directory) throw UserError("no data directory is named", "give --data DIR or set TRAINYARD_DATA");
  return *directory;
}

const models::KnownDataset& known_dataset(const std::string& name) {
  if (const models::KnownDataset* known = models::find_known_dataset(name)) return *known;
  const auto names = names_of(models::known_datasets(), &models::KnownDataset::dataset);
  if (models::find_dataset(name).generated())
    throw UserError("\"" + name + "\" is generated, so there is nothing to download",
                    name_advice(name, names));
  throw UserError("no published files are known for data set \"" + name + "\"", name_advice(name, names));
}

int list_command(const Options& options) {
  list_data(experiments::data_search(options.directory), std::cout);
  return done;
}

int get_command(const Options& options) {
  get_data(known_dataset(options.name), directory_of(options), options.from, std::cout);
  return done;
}

int verify_command(const Options& options) {
  const fs::path directory = directory_of(options);
  if (!fs::is_directory(directory))
    throw UserError(directory.string() + " is not a folder", "name another with --data or TRAINYARD_DATA");
  if (!options.name.empty()) {
    const bool there = models::find_folder(models::find_dataset(options.name), directory).has_value();
    return verify_data(options.name, directory, std::cout) && there ? done : run_failed;
  }
  bool good = true;
  for (const auto& known : models::known_datasets())
    good = verify_data(known.dataset, directory, std::cout) && good;
  return good ? done : run_failed;
}

constexpr double megabyte = 1e6;

fs::path with_part(const fs::path& file) {
  return file.string() + ".part";
}

// UserError if it is not a plain file.
std::uint64_t size_of_plain(const fs::path& file) {
  (void)open_plain(file).or_refuse(file);
  return fs::file_size(file);
}

// Download a file and verify it. Returns the path of its .part file.
fs::path get_part(const models::KnownFile& file, const std::string& address, const fs::path& folder) {
  fs::create_directories(folder);
  fs::path part = with_part(folder / file.name);
  const std::uint64_t before = fs::exists(part) ? size_of_plain(part) : 0;
  if (before != file.bytes) {
    if (before > file.bytes) fs::remove(part);
    ProgressLine line;
    download(address + '/' + file.name, part, {.bytes = file.bytes, .plain_http = !file.sha256.empty()},
             [&](std::uint64_t now, std::uint64_t whole) {
               line.show(now, whole, [&] {
                 return fmt::format("{}: {:.1f} of {:.1f} MB", file.name, static_cast<double>(now) / megabyte,
                                    static_cast<double>(whole) / megabyte);
               });
             });
  }
  const models::Digests found = models::digests_of_file(part);
  if (models::fits(file, found)) return part;
  fs::remove(part);
  throw UserError(
      fmt::format("{}/{} is not the published file: {} bytes, {}; should be {} bytes, {}", address, file.name,
                  found.bytes, file.sha256.empty() ? "MD5 " + found.md5 : "SHA-256 " + found.sha256,
                  file.bytes, models::digest_text(file)),
      "try again, or use another address with --from");
}

// Write the files in folder `name` of the archive to directory/name.
void unpack(const fs::path& archive, const fs::path& directory, const std::string& name) {
  const fs::path part = with_part(directory / name);
  fs::remove_all(part);
  fs::create_directories(part);
  models::Archive files(archive);
  while (const auto entry = files.next()) {
    const fs::path path(*entry);
    if (path.parent_path().filename() != name) continue;
    PlainFileWriter out(part / path.filename());
    out << files.content();
    out.close();
    if (!out) throw_file_error(part / path.filename());
  }
  fs::remove_all(directory / name);
  fs::rename(part, directory / name);
}

// The file at `place` under its published name, or unpacked without ".gz". Empty if there is none.
std::optional<fs::path> file_at(const fs::path& place, const std::string& name) {
  if (!fs::is_directory(place)) return place.filename() == name ? std::optional(place) : std::nullopt;
  if (fs::exists(place / name)) return place / name;
  if (!name.ends_with(".gz")) return std::nullopt;
  const fs::path plain = place / name.substr(0, name.size() - 3);
  return fs::exists(plain) ? std::optional(plain) : std::nullopt;
}

// It begins with "NOT" if the file is wrong.
std::string verdict_of(const models::KnownFile& known, const fs::path& file) try {
  if (models::fits(known, models::digests_of_file(file)))
    return "as published, " + models::digest_text(known);
  if (!known.content_md5.empty()) {
    if (models::digests_of_content(file).md5 == known.content_md5)
      return "its content is as published, MD5 " + known.content_md5;
    return "NOT as published: its content should have MD5 " + known.content_md5;
  }
  if (file.filename() != known.name) return "unpacked, and no digest of the content is known";
  return "NOT as published: should be " + std::to_string(known.bytes) + " bytes, " +
         models::digest_text(known);
} catch (const UserError& error) {
  return std::string("NOT readable: ") + error.what();
}

bool verify_files(const models::KnownDataset& known, const fs::path& place, std::ostream& out) {
  bool good = true;
  bool any = false;
  for (const models::KnownFile& file : known.unpacked.empty() ? known.files : known.members) {
    const auto found = file_at(place, file.name);
    if (!found) continue;
    any = true;
    const std::string verdict = verdict_of(file, *found);
    good = good && !verdict.starts_with("NOT");
    out << found->string() << ": " << verdict << '\n';
  }
  if (!any) out << place.string() << ": no file has a published name, so no digest is compared\n";
  return good;
}

std::string shape_text(const models::Dataset& dataset, const models::InputShape& input) {
  if (dataset.kind == models::DataKind::rows) return std::to_string(input.image.channels) + " input columns";
  if (dataset.kind == models::DataKind::images) return std::to_string(input.classes) + " classes";
  std::string text = "vocabulary " + std::to_string(input.vocabulary);
  if (input.target_vocabulary > 0) text += " and " + std::to_string(input.target_vocabulary);
  return text;
}

}  // namespace

void list_data(const std::optional<fs::path>& directory, std::ostream& out) {
  reports::Table table;
  table.columns = {"data set", "file", reports::right_column("bytes"), "digest", "from"};
  if (directory) table.columns.emplace_back("in " + directory->string());
  for (const models::KnownDataset& known : models::known_datasets()) {
    const auto place =
        directory ? models::find_folder(models::find_dataset(known.dataset), *directory) : std::nullopt;
    for (const models::KnownFile& file : known.files) {
      table.rows.push_back(
          {known.dataset, file.name, std::to_string(file.bytes), models::digest_text(file), known.address});
      if (directory) table.rows.back().emplace_back(place ? place->string() : "");
    }
  }
  out << reports::aligned_table(table);
}

void add_data(CLI::App& program, Invocation& invocation) {
  auto* command = program.add_subcommand("data", "list, get or verify the files of published data sets");
  command->require_subcommand(1);
  command->footer(data_footer);
  const auto add = [&](const char* name, const char* about, int (*action)(const Options&)) {
    auto verb = add_verb(*command, invocation, name, about, action);
    refuse_empty(
        verb.command
            ->add_option("--data", verb.options->directory, "the data directory; otherwise TRAINYARD_DATA")
            ->type_name("DIR"));
    return verb;
  };
  add("list", "the published files: sizes, digests, addresses", list_command);
  const auto [get, wanted] = add("get", "download what is missing of a data set", get_command);
  get->add_option("NAME", wanted->name, "data set")->required();
  get->add_option("--from", wanted->from, "get the files from this address instead (mirror)")
      ->type_name("URL");
  const auto [verify, checked] =
      add("verify", "compare local files with the published checksums, and read them", verify_command);
  verify->add_option("NAME", checked->name, "data set; otherwise all");
}

void get_data(const models::KnownDataset& known, const fs::path& directory,
              const std::optional<std::string>& address, std::ostream& out) {
  const fs::path folder = known.folder.empty() ? directory : directory / known.folder;
  const std::string from = address.value_or(known.address);
  if (!known.unpacked.empty() && fs::exists(directory / known.unpacked)) {
    out << (directory / known.unpacked).string() << ": already there; check it with `data verify`\n";
    return;
  }
  for (const models::KnownFile& file : known.files) {
    const fs::path path = folder / file.name;
    if (known.unpacked.empty() && fs::exists(path) && models::fits(file, models::digests_of_file(path))) {
      out << path.string() << ": already there, as published\n";
      continue;
    }
    const fs::path part = get_part(file, from, folder);
    if (known.unpacked.empty()) {
      fs::rename(part, path);
      out << path.string() << ": downloaded, as published\n";
    } else {
      unpack(part, directory, known.unpacked);
      fs::remove(part);
      out << (directory / known.unpacked).string() << ": downloaded, as published, and unpacked\n";
    }
  }
}

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
