// The commands of README and docs/, as a reader types them. Each page's commands run in order, in a copy of a
// folder where `first.toml` was made and trained. Commands that cannot run here are listed with the reason;
// their options must exist.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::e2e;
namespace fs = std::filesystem;

namespace {

const fs::path source = TRAINYARD_SOURCE;

// What a command needs that a test does not have.
const std::map<std::string, std::string> not_run{
    {"trainyard data get mnist --data ~/data", "a download"},
    {"trainyard run experiments/mnist.toml --data ~/data", "that download; recipes_test trains this file"},
    {"trainyard run train.py --seeds 5", "a script; tests/python/newcomer_test.py types the next line"},
    {"trainyard run train.py --seeds 5 --epochs 8", "a Python with torch"},
    {"trainyard explain train --probe", "a Python with torch; tests/python/recorded_test.py probes"},
    {"trainyard run experiments/parallel-ml-two-cores.toml --data DIR --set dataset=mnist --as \"parallel ml "
     "two cores\"",
     "MNIST; published_numbers_test trains a part of this file"},
    {"trainyard run net.toml --data ~/data", "CIFAR-10; declared_test trains an exported network"},
    {"trainyard replay last", "asynchronous servers; e2e/strategies/servers_test.cpp replays a run"},
    {"trainyard check experiments/cluster.toml", "Slurm; tests/cluster runs its launcher"},
    {"trainyard run experiments/cluster.toml", "Slurm"},
    {"salloc --nodes=2 trainyard run experiments/cluster.toml", "Slurm"},
};

// Gates, whose exit code is 0 or 3: it depends on the times.
const std::set<std::string> gates{"trainyard compare single ddp --fail-on deteriorates",
                                  "trainyard compare --metric accuracy --fail-on deteriorates"};

// What stands for another text in a scratch folder.
struct Placeholder {
  std::string text;
  std::string query;  // gives the real one
};
const std::vector<Placeholder> placeholders{
    {"3f9a", "SELECT min(run_key) FROM attempt"},
    {"77b2", "SELECT max(run_key) FROM attempt"},
};

constexpr const char* exported_models = "exported-models.md";  // needs a Python with torch

struct Block {
  std::string language;
  std::vector<std::string> lines;
};

// The fenced blocks of a page, in order.
std::vector<Block> blocks_of(const fs::path& page) {
  std::istringstream in(tests::read_text(page));
  std::vector<Block> blocks;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({line.substr(3), {}});
    } else if (inside) {
      blocks.back().lines.push_back(line);
    }
  }
  return blocks;
}

// Without the comment behind it: "trainyard list keys     # every key".
std::string without_comment(const std::string& line) {
  const std::string command = line.substr(0, std::min(line.find(" # "), line.size()));
  return command.substr(0, command.find_last_not_of(' ') + 1);
}

std::vector<std::string> commands_of(const fs::path& page) {
  std::vector<std::string> commands;
  for (const Block& block : blocks_of(page)) {
    if (block.language != "sh") continue;
    bool quoted = false;  // inside a text that continues on the next line
    for (const std::string& line : block.lines) {
      const std::string command = without_comment(line);
      if (quoted)
        commands.back() += "\n" + command;
      else if (!command.empty())
        commands.push_back(command);
      quoted = quoted != (std::ranges::count(command, '"') % 2 == 1);
    }
  }
  return commands;
}

bool calls_trainyard(const std::string& command) {
  return command.starts_with("trainyard ") || contains(command, " trainyard ");
}

std::vector<fs::path> pages() {
  std::vector<fs::path> pages{source / "README.md", source / "db/README.md", source / "bench/README.md",
                              source / "CONTRIBUTING.md"};
  for (const auto& entry : fs::directory_iterator(source / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  std::ranges::sort(pages);
  return pages;
}

// A line of a shell in `folder`, with the programs of the build on PATH and a home of its own.
Output shell(const fs::path& folder, const std::string& line) {
  const std::string python = fs::path(TRAINYARD_PYTHON).parent_path().string();  // its python3 has torch
  const std::string path =
      std::string(TRAINYARD_BUILD) + ":" + (python.empty() ? "" : python + ":") + std::getenv("PATH");
  return run_trainyard(folder, {"-c", line}, {{"PATH", path}, {"HOME", (folder / "home").string()}},
                       "/bin/sh");
}

std::string filled_in(const fs::path& folder, std::string command) {
  for (const auto& [text, query] : placeholders) {
    const auto at = command.find(text);
    if (at == std::string::npos) continue;
    const Output key = shell(folder, "trainyard sql '" + query + "' --format csv | tail -n 1");
    REQUIRE_MESSAGE(key.code == 0, key.err);
    command.replace(at, text.size(), key.out.substr(0, key.out.find_last_not_of('\n') + 1));
  }
  return command;
}

// At most five seeds: on a busy machine, times of twenty are not decided either.
void keep_few_seeds(const fs::path& file) {
  std::string text = tests::read_text(file);
  const std::string many = "max = 20", few = "max = 5";
  const auto at = text.find(many);
  REQUIRE(at != std::string::npos);
  tests::write_text(file, text.replace(at, many.size(), few));
}

// What a page assumes: files that it shows, and those that are beside it.
void prepare(const fs::path& folder, const fs::path& page) {
  fs::create_directory(folder / "home");
  if (!fs::exists(folder / "experiments")) fs::create_symlink(source / "experiments", folder / "experiments");
  const auto write = [&](const char* name, const std::string& language, std::size_t number) {
    auto blocks = blocks_of(page);
    std::erase_if(blocks, [&](const Block& block) { return block.language != language; });
    REQUIRE(number < blocks.size());
    std::ofstream out(folder / name);
    for (const std::string& line : blocks[number].lines) out << line << '\n';
  };
  if (page.filename() == "your-own-program.md") {
    write("own.toml", "toml", 0);
    write("train.py", "python", 0);
  }
  if (page.filename() == "comparing.md") write("runs.csv", "csv", 0);
  if (page.filename() == exported_models) {
    write("net.py", "python", 0);
    write("net.toml", "toml", 0);
    write("smooth.py", "python", 1);
    write("reader.py", "python", 3);
    write("reader.toml", "toml", 1);
  }
  if (page.filename() == "security.md")
    fs::copy_file(folder / "first.toml", folder / "theirs.toml", fs::copy_options::overwrite_existing);
}

// The language model of the page was trained in `folder`: it learned, and its arms computed the same.
void check_language_model(const fs::path& folder) {
  const auto sql = [&](const std::string& query) {
    const Output answer = shell(folder, "trainyard sql \"" + query + "\" --format csv | tail -n +2");
    CHECK_MESSAGE(answer.code == 0, answer.err);
    return answer.out;
  };
  CHECK(
      sql("SELECT strategy, COUNT(*) FROM run WHERE task = 'language-model' GROUP BY strategy ORDER BY 1") ==
      "ddp,3\npipeline,3\nsingle,3\n");
  const std::string finals = "FROM task_final_metrics WHERE model = 'reader'";
  CHECK(sql("SELECT MAX(test_perplexity) < 20, MIN(test_accuracy) > 0.2, COUNT(test_bleu) " + finals) ==
        "1,1,0\n");
  CHECK(sql("SELECT MAX(abs(test_perplexity - exp(test_loss))) < 1e-9 " + finals) == "1\n");
  CHECK(sql("SELECT MAX(p) / MIN(p) - 1 < 0.01 FROM (SELECT AVG(test_perplexity) AS p " + finals +
            " GROUP BY strategy)") == "1\n");
  CHECK(sql("SELECT COUNT(*), MAX(abs(loss / reference_loss - 1)) < 1e-4 FROM probe JOIN run USING (run_key) "
            "WHERE model = 'reader'") == "10,1\n");
  CHECK(
      sql("SELECT SUM(weight) = 64 * 500 FROM metric m JOIN run r USING (run_key) WHERE name = 'correct' AND "
          "phase = 'train' AND epoch = 1 AND strategy = 'ddp' AND seed = 0 AND model = 'reader'") == "1\n");
  CHECK(contains(shell(folder, "trainyard compare").out, "test perplexity"));
  CHECK(contains(tests::read_text(folder / "yard/reports/reader/index.html"), "Test perplexity"));
}

// "--data" of "trainyard data get mnist --data ~/data".
std::set<std::string> options_of(const std::string& command) {
  std::set<std::string> options;
  std::istringstream words(command);
  for (std::string word; words >> word;)
    if (word.starts_with("--")) options.insert(word.substr(0, word.find('=')));
  return options;
}

}  // namespace

TEST_CASE("every trainyard command of README and docs runs as it is typed there") {
  const Scratch scratch;
  const fs::path trained = scratch.path() / "trained";
  fs::create_directories(trained);
  REQUIRE(shell(trained, "trainyard new first.toml").code == 0);
  keep_few_seeds(trained / "first.toml");
  const Output first = shell(trained, "trainyard run first.toml");
  REQUIRE_MESSAGE(first.code == 0, first.err);
  int commands = 0;
  for (const fs::path& page : pages()) {
    const fs::path folder = scratch.path() / page.stem();
    if (page.filename() == exported_models && std::string(TRAINYARD_PYTHON).empty()) {
      MESSAGE("skipped: no Python with torch was found when this was configured");
      continue;
    }
    fs::remove_all(folder);
    fs::copy(trained, folder, fs::copy_options::recursive);
    prepare(folder, page);
    for (const std::string& typed : commands_of(page)) {
      if (!calls_trainyard(typed) || not_run.contains(typed)) continue;
      CAPTURE(page.string());
      CAPTURE(typed);
      if (typed == "trainyard new first.toml") fs::remove(folder / "first.toml");
      const Output answer = shell(folder, filled_in(folder, typed));
      const bool gate_closed = gates.contains(typed) && answer.code == 3;
      CHECK_MESSAGE((answer.code == 0 || gate_closed), answer.err);
      if (typed == "trainyard new first.toml") keep_few_seeds(folder / "first.toml");
      ++commands;
    }
    if (page.filename() == exported_models) check_language_model(folder);
  }
  CHECK(commands > 40);
}

TEST_CASE("documented commands that no test can run have options and files that exist") {
  const Scratch scratch;
  std::set<std::string> typed;
  for (const fs::path& page : pages())
    for (const std::string& command : commands_of(page)) typed.insert(command);
  for (const auto& each : not_run) {
    const std::string& command = each.first;
    CAPTURE(command);
    CHECK(typed.contains(command));  // still on a page
    const auto verb = command.find("trainyard ") + 10;
    const Output help = shell(
        scratch.path(), "trainyard " + command.substr(verb, command.find(' ', verb) - verb) + " --help");
    CHECK(help.code == 0);
    for (const std::string& option : options_of(command.substr(verb))) CHECK(contains(help.out, option));
  }
  for (const std::string& command : typed) {
    const std::string program = command.substr(0, command.find(' '));
    if (!program.starts_with("tools/") && !program.starts_with("bench/")) continue;
    CAPTURE(command);
    REQUIRE(fs::exists(source / program));
    const std::string text = tests::read_text(source / program);
    for (const std::string& option : options_of(command))
      if (option != "--help") CHECK_MESSAGE(contains(text, option), option);
  }
}
