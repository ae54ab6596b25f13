// A FIFO, device or folder in place of a file: every command refuses it at once, or does not need it.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/shell_arm.h"

using namespace trainyard;
using namespace trainyard::e2e;
namespace fs = std::filesystem;

namespace {

// Exit code 124 means that the command waited.
Output at_once(const fs::path& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"20", TRAINYARD_PROGRAM});
  return run_trainyard(folder, arguments, {}, "/usr/bin/timeout");
}

enum class Kind { fifo, folder, device };

void put(const fs::path& place, Kind kind) {
  fs::remove_all(place);
  fs::create_directories(place.parent_path());
  if (kind == Kind::fifo) REQUIRE(::mkfifo(place.c_str(), 0600) == 0);
  if (kind == Kind::folder) fs::create_directories(place);
  if (kind == Kind::device) fs::create_symlink("/dev/zero", place);  // endless
}

const std::string one_arm = R"([matrix]
model = ["mlp"]
strategy = ["mine"]
seed = [1]
[defaults]
dataset = "synthetic-digits"
epochs = 1
[strategy.mine]
command = ["/bin/sh", "arm.sh"]
)";

// A command that reads or writes `place`, and what its error says.
struct Case {
  std::string place;
  std::vector<std::string> arguments;
  int code = 2;
  bool follows_links = true;  // false: a link is replaced
};

void check_refused(const Scratch& scratch, const Case& each) {
  for (const Kind kind : {Kind::fifo, Kind::folder, Kind::device}) {
    if (kind == Kind::device && !each.follows_links) continue;
    put(scratch.path() / each.place, kind);
    const Output said = at_once(scratch.path(), each.arguments);
    const std::string text = each.place + ": " + said.out + said.err;
    CHECK_MESSAGE(said.code == each.code, text);
    CHECK_MESSAGE(contains(said.out + said.err, kind == Kind::fifo     ? "a FIFO"
                                                : kind == Kind::folder ? "a folder"
                                                                       : "a device"),
                  text);
    CHECK_MESSAGE(!contains(said.err, "internal error"), text);
    fs::remove_all(scratch.path() / each.place);
  }
}

}  // namespace

TEST_CASE(
    "a FIFO, device or folder in place of an experiment file or a file that it names is refused at once") {
  const Scratch scratch;
  scratch.write("arm.sh", shell_arm("epoch 1\nfinish"));
  scratch.write("files.toml", "name = \"a\"\n" + one_arm + "files = [\"arm.sh\", \"used\"]\n");
  scratch.write("pattern.toml", "name = \"a\"\n" + one_arm + "files = [\"pkg/*.py\"]\n");
  for (const char* verb : {"check", "plan", "run"}) check_refused(scratch, {"x.toml", {verb, "x.toml"}});
  put(scratch.path() / "used", Kind::fifo);
  CHECK(contains(at_once(scratch.path(), {"check", "files.toml"}).err, "it is a FIFO, not a plain file"));
  put(scratch.path() / "pkg/one.py", Kind::fifo);
  CHECK(contains(at_once(scratch.path(), {"check", "pattern.toml"}).err, "it is a FIFO, not a plain file"));
  scratch.write("numbers.toml", "name = \"a\"\npublished = \"book.toml\"\n" + one_arm);
  put(scratch.path() / "book.toml", Kind::fifo);
  CHECK(contains(at_once(scratch.path(), {"check", "numbers.toml"}).err, "is not a readable file"));
}

TEST_CASE("a FIFO, device or folder in place of a data file is refused at once") {
  const Scratch scratch;
  scratch.write("data/mnist/train-labels-idx1-ubyte", "labels");
  check_refused(scratch,
                {"data/mnist/train-images-idx3-ubyte", {"data", "verify", "mnist", "--data", "data"}, 1});
  check_refused(scratch, {"data/aclImdb/train/pos/0_9.txt", {"data", "verify", "imdb", "--data", "data"}, 1});
  scratch.write("data/multi30k/train.en", "a sentence\n");
  check_refused(scratch, {"data/multi30k/train.de", {"data", "verify", "multi30k", "--data", "data"}, 1});
  for (const char* part : {"", ".part"})
    check_refused(scratch, {std::string("data/mnist/train-images-idx3-ubyte.gz") + part,
                            {"data", "get", "mnist", "--data", "data", "--from", "file:///nowhere"}});
  scratch.write("own.toml",
                "name = \"own\"\n[matrix]\nmodel = [\"cnn\"]\nstrategy = [\"single\"]\nseed = [1]\n"
                "[defaults]\ndataset = \"folder\"\nepochs = 1\n[data]\nfolder = \"own\"\n");
  check_refused(scratch, {"own/cats/one.png", {"check", "own.toml"}});
  scratch.write("own/train-labels.npy", "labels");
  check_refused(scratch, {"own/train-images.npy", {"check", "own.toml"}});
  scratch.write("texts.toml",
                "name = \"own\"\n[matrix]\nmodel = [\"nbow\"]\nstrategy = [\"single\"]\nseed = [1]\n"
                "[defaults]\ndataset = \"text-folder\"\nepochs = 1\n[data]\ntext-folder = \"texts\"\n");
  scratch.write("texts/music/1.txt", "a song");
  check_refused(scratch, {"texts/sport/1.txt", {"check", "texts.toml"}});
}

TEST_CASE("a FIFO, device or folder in place of a file to write is refused at once") {
  const FinishedArms scratch("epoch 1\nfinish");
  check_refused(scratch, {"out.csv", {"export", "--out", "out.csv"}});
  check_refused(scratch, {"pages/index.html", {"report", "--out", "pages"}, 2, false});
}

TEST_CASE("no command waits for a FIFO in the yard, and the database is checked without it") {
  const FinishedArms scratch("echo text\nepoch 1\nfinish");
  const fs::path yard = scratch.path() / "yard", good = scratch.path() / "good";
  fs::rename(yard, good);
  const std::string key = fs::directory_iterator(good / "runs")->path().filename();
  const std::string attempt = "runs/" + key + "/attempt-1/";
  const auto with_fifo = [&](const std::string& place, const std::vector<std::string>& arguments) {
    fs::remove_all(yard);
    fs::copy(good, yard, fs::copy_options::recursive);
    put(yard / place, Kind::fifo);
    const Output said = at_once(scratch.path(), arguments);
    CHECK_MESSAGE(said.code != 124, (arguments.front() + " with " + place));
    CHECK_MESSAGE(!contains(said.err, "internal error"), (arguments.front() + " with " + place + said.err));
    return said;
  };
  for (const char* name : {"run.json", "rank-0.records.jsonl", "orchestrator.records.jsonl"})
    for (const char* verb : {"check", "rebuild"}) with_fifo(attempt + name, {"db", verb});
  with_fifo(attempt + "rank-0.log", {"logs", key});
  for (const char* name : {"results.db", "journal.jsonl", "trainyard.log", "yard.lock"})
    for (const auto& arguments : std::vector<std::vector<std::string>>{
             {"run", "arms.toml", "--no-report"}, {"status"}, {"logs"}, {"db", "check"}, {"rm", key}})
      CHECK(contains(with_fifo(name, arguments).err, "is not a plain file"));
  CHECK(with_fifo("store.log", {"status"}).code == 0);
}
