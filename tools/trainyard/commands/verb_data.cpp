// trainyard data: the published data sets, got and verified.
#include "tools/trainyard/commands/verb_data.h"

#include <cstdlib>
#include <iostream>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/nearest_name.h"
#include "experiments/file/file.h"
#include "models/datasets/datasets.h"
#include "tools/trainyard/cli/command.h"
#include "tools/trainyard/cli/text_table.h"
#include "tools/trainyard/commands/commands.h"

namespace trainyard::tools {

namespace {

namespace fs = std::filesystem;

struct Options {
  std::string name;
  std::optional<fs::path> directory;
  std::optional<std::string> from;
};

constexpr const char* about = "list, get or verify the published files of data sets";

constexpr const char* footer =
    "A data directory holds a folder or an archive for each data set. --data or TRAINYARD_DATA names it, "
    "here "
    "and for `run`.\n\n"
    "`get` downloads to NAME.part, continues after an interruption, verifies size and digest, and renames. "
    "So a "
    "file is there whole or not at all. The digest is SHA-256, or MD5 if only that is published.\n\n"
    "`verify` reads the data as a run would. It also accepts a .gz that was packed anew, if the digest of "
    "its "
    "content is known.\n\n"
    "Exit codes: 0 all is well, 1 a file differs from the published one or cannot be read, 2 it cannot be "
    "downloaded.";

fs::path directory_of(const Options& options) {
  const auto directory = experiments::data_search(options.directory).directory;
  if (!directory) throw UserError("no data directory is named", "give --data DIR or set TRAINYARD_DATA");
  return *directory;
}

const models::KnownDataset& known_dataset(const std::string& name) {
  if (const models::KnownDataset* known = models::find_known_dataset(name)) return *known;
  std::vector<std::string> names;
  for (const auto& known : models::known_datasets()) names.push_back(known.dataset);
  if (models::find_dataset(name).generated())
    throw UserError("\"" + name + "\" is generated, there is nothing to get",
                    models::name_advice(name, names));
  throw UserError("nothing is published for data set \"" + name + "\"", models::name_advice(name, names));
}

int list_command(const Options& options) {
  list_data(experiments::data_search(options.directory).directory, std::cout);
  return done;
}

int get_command(const Options& options) {
  get_data(known_dataset(options.name), directory_of(options), options.from, std::cout);
  return done;
}

int verify_command(const Options& options) {
  const fs::path directory = directory_of(options);
  if (!fs::is_directory(directory))
    throw UserError(directory.string() + " is no folder", "--data DIR or TRAINYARD_DATA names it");
  if (!options.name.empty()) {
    const bool there = models::find_folder(models::find_dataset(options.name), directory).has_value();
    return verify_data(options.name, directory, std::cout) && there ? done : run_failed;
  }
  bool good = true;
  for (const auto& known : models::known_datasets())
    good = verify_data(known.dataset, directory, std::cout) && good;
  return good ? done : run_failed;
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& meaning,
                      const std::shared_ptr<Options>& options, int (*action)(const Options&),
                      Invocation& invocation) {
  auto* command = parent.add_subcommand(name, meaning);
  refuse_empty(
      command->add_option("--data", options->directory, "the data directory; otherwise TRAINYARD_DATA")
          ->type_name("DIR"));
  command->callback(
      [options, action, &invocation] { invocation.action = [options, action] { return action(*options); }; });
  return command;
}

}  // namespace

void list_data(const std::optional<fs::path>& directory, std::ostream& out) {
  TextTable table{.columns = {"data set", "file", "bytes", "digest", "from"},
                  .rows = {},
                  .right = {false, false, true, false, false}};
  if (directory) table.columns.emplace_back("in " + directory->string());
  for (const models::KnownDataset& known : models::known_datasets()) {
    const auto place =
        directory ? models::find_folder(models::find_dataset(known.dataset), *directory) : std::nullopt;
    for (const models::KnownFile& file : known.files) {
      table.rows.push_back(
          {known.dataset, file.name, std::to_string(file.bytes), models::digest_text(file), known.address});
      if (directory) table.rows.back().push_back(place ? place->string() : "");
    }
  }
  out << aligned(table);
}

void add_data(CLI::App& program, Invocation& invocation) {
  auto options = std::make_shared<Options>();
  auto* command = program.add_subcommand("data", about);
  command->require_subcommand(1);
  command->footer(footer);
  add_command(*command, "list", "the published files: sizes, digests, addresses", options, &list_command,
              invocation);
  auto* get = add_command(*command, "get", "download what is missing of a data set", options, &get_command,
                          invocation);
  get->add_option("NAME", options->name, "data set")->required();
  get->add_option("--from", options->from, "get the files from this address instead (mirror)")
      ->type_name("URL");
  auto* verify =
      add_command(*command, "verify", "compare local files with the published checksums, and read them",
                  options, &verify_command, invocation);
  verify->add_option("NAME", options->name, "data set; otherwise all");
}

}  // namespace trainyard::tools
