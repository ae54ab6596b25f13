// `files` as patterns and folders, `env`, and their part in the run key.
#include "experiments/config/found_files.h"

#include <fstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "experiments/file/file.h"
#include "experiments/run/run.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::experiments;
using trainyard::tests::ScratchFolder;

namespace {

void put(const std::filesystem::path& file, const std::string& text = "x") {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

std::vector<std::string> names_of(const std::string& entry, const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const FoundFile& file : found_files(entry, folder)) names.push_back(file.name);
  return names;
}

std::string file_of_arm(const std::string& lines) {
  return "name = \"x\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"mine\"]\nseed = [4]\n[defaults]\n"
         "dataset = \"synthetic-digits\"\n[strategy.mine]\ncommand = [\"a\"]\n" +
         lines;
}

Run arm_run(const std::string& lines, const std::filesystem::path& folder) {
  Loaded loaded = load_text(file_of_arm(lines), folder / "f.toml");
  REQUIRE(loaded.experiment.has_value());
  resolve_data(*loaded.experiment, {});
  return loaded.experiment->runs.at(0);
}

std::string arm_problem(const std::string& lines) {
  std::string all;
  for (const Problem& problem : load_text(file_of_arm(lines), "f.toml").problems)
    all += to_text(problem) + "\n";
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("folders and patterns find sorted files, without hidden names, caches and linked folders") {
  const ScratchFolder folder;
  for (const char* name : {"train.py", "pkg/b.py", "pkg/a.py", "pkg/data.txt", "pkg/sub/c.py",
                           "pkg/.hidden.py", "pkg/.git/d.py", "pkg/__pycache__/a.py", "pkg/a.pyc"})
    put(folder / name);
  std::filesystem::create_directory_symlink(folder.path(), folder / "pkg/up");
  std::filesystem::create_symlink(folder / "train.py", folder / "pkg/linked.py");
  const auto found = [&](const std::string& entry) { return names_of(entry, folder.path()); };
  CHECK(found("pkg") == Names{"pkg/a.py", "pkg/b.py", "pkg/data.txt", "pkg/linked.py", "pkg/sub/c.py"});
  CHECK(found("pkg/") == found("pkg"));
  CHECK(found("./pkg") == found("pkg"));
  CHECK(found("pkg/*.py") == Names{"pkg/a.py", "pkg/b.py", "pkg/linked.py"});
  CHECK(found("pkg/**/*.py") == Names{"pkg/a.py", "pkg/b.py", "pkg/linked.py", "pkg/sub/c.py"});
  CHECK(found("pkg/[ab].py") == Names{"pkg/a.py", "pkg/b.py"});
  CHECK(found("*/?.py") == Names{"pkg/a.py", "pkg/b.py"});
  CHECK(found("**/sub/*") == Names{"pkg/sub/c.py"});
  CHECK(found((folder / "pkg/*.txt").string()) == Names{"data.txt"});  // independent of the machine
  CHECK(found("pkg/*.cu").empty());
  CHECK(found("nowhere/*").empty());
  CHECK(finds_files("pkg", folder.path()));
  CHECK_FALSE(finds_files("train.py", folder.path()));
  put(folder / "odd[1].py");
  CHECK_FALSE(finds_files("odd[1].py", folder.path()));  // a file with exactly that name comes first
}

TEST_CASE("a plain list of files has the same hash as before, and files from patterns include their names") {
  const ScratchFolder folder;
  put(folder / "train.py", "print(1)");
  const std::string sha = "d287bb7f9d15abdc5b6e98536263815744b6ef21c8f3c839fc434ca70d8efe99";  // sha256sum
  const std::string plain = canonical_work(arm_run("files = [\"train.py\"]\n", folder.path()));
  CHECK_MESSAGE(plain.find("\"strategy\":{\"command\":[\"a\"],\"files\":[\"" + sha +
                           "\"],\"kind\":\"foreign\",\"replicas\":1,\"stages\":1}") != std::string::npos,
                plain);
  const Run found = arm_run("files = [\"*.py\"]\n", folder.path());
  CHECK(canonical_work(found).find("\"files\":[],\"found_files\":[\"train.py " + sha + "\"]") !=
        std::string::npos);
  CHECK(to_json(run_from_json(to_json(found))) == to_json(found));
  std::filesystem::rename(folder / "train.py", folder / "other.py");
  CHECK(run_key(arm_run("files = [\"*.py\"]\n", folder.path())) != run_key(found));
  CHECK(canonical_work(arm_run("files = [\"other.py\"]\n", folder.path())) == plain);
}

TEST_CASE("a pattern or folder that finds no file is an error that names it") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "empty");
  for (const char* entry : {"pkg/*.py", "empty"})
    CHECK_THROWS_WITH_AS(
        arm_run("files = [\"" + std::string(entry) + "\"]\n", folder.path()),
        doctest::Contains((std::string("`files` has \"") + entry + "\", which matches no file").c_str()),
        UserError);
}

TEST_CASE("env contains the values of its run, and is in the key and in the run's JSON") {
  const ScratchFolder folder;
  const Run run = arm_run("env = { SEED_OF = \"{model}/{seed}\", BRACE = \"{{}\" }\n", folder.path());
  CHECK(run.strategy.environment ==
        std::map<std::string, std::string>{{"BRACE", "{}"}, {"SEED_OF", "mlp/4"}});
  CHECK(canonical_work(run).find("\"env\":[\"BRACE={}\",\"SEED_OF=mlp/4\"]") != std::string::npos);
  CHECK(run_from_json(to_json(run)) == run);
  const Run none = arm_run("", folder.path());
  CHECK(canonical_work(none).find("\"env\"") == std::string::npos);
  CHECK_FALSE(to_json(none).at("strategy").contains("env"));
}

TEST_CASE("env refuses variables that the launch sets, invalid names and values that are not text") {
  const auto has = [](const std::string& lines, const std::string& text) {
    const std::string problems = arm_problem(lines);
    CHECK_MESSAGE(problems.find(text) != std::string::npos, problems);
  };
  for (const char* name :
       {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
        "TORCHELASTIC_RUN_ID", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "TRAINYARD_RUN", "TRAINYARD_TOKEN"})
    has("env = { " + std::string(name) + " = \"1\" }\n",
        "f.toml:10:9: error: " + std::string(name) + " is set by trainyard for each rank");
  has("env = { \"A B\" = \"1\" }\n", "the name of a variable may have only letters, digits and underscores");
  has("env = { A = 1 }\n", "A of env must be a text, as in { NAME = \"value\" }, but is 1");
  has("env = [\"A=1\"]\n", "env of [strategy.mine] must be a table");
  has("env = { A = \"{learning_rat}\" }\n", "a run has no value named \"learning_rat\"; did you mean");
}

TEST_CASE("a pattern with many ** reads each folder once") {
  const ScratchFolder folder;
  std::filesystem::path deep = folder.path();
  std::string pattern;
  for (int depth = 0; depth < 30; ++depth) deep /= "a";
  put(deep / "zz");
  // Reading a folder for each way to match it would take C(44, 14) = 114,955,808,528 reads.
  for (int part = 0; part < 14; ++part) pattern += "**/a/";
  CHECK(names_of(pattern + "**/zz", folder.path()).size() == 1);
  CHECK(names_of(pattern + "**/**/**/nothing", folder.path()).empty());
  CHECK(names_of("**/**/**/**/**/zz", folder.path()).size() == 1);
  CHECK(names_of("**/a/**/**", folder.path()).size() == 1);
}

TEST_CASE("files that the kernel makes are refused with the place of `files`") {
  const ScratchFolder folder;
  std::filesystem::create_symlink("/proc/self/status", folder / "linked.py");
  for (const char* entry : {"/proc", "/proc/self/*", "/proc/self/status", "/sys", "linked.py", "*.py"}) {
    const std::string place = (folder / "f.toml").string() + ":10:9: `files` has \"" + entry + "\", but ";
    CHECK_THROWS_WITH_AS(arm_run("files = [\"" + std::string(entry) + "\"]\n", folder.path()),
                         doctest::Contains(place.c_str()), UserError);
  }
}

TEST_CASE("every error of a file has the place of `files`") {
  const ScratchFolder folder;
  const std::string place = (folder / "f.toml").string() + ":10:9: ";
  for (const char* entry : {"missing.py", "*.missing"})
    CHECK_THROWS_WITH_AS(arm_run("files = [\"" + std::string(entry) + "\"]\n", folder.path()),
                         doctest::Contains(place.c_str()), UserError);
}
