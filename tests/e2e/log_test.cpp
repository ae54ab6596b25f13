// The log of a sweep and the logs of its ranks.
#include <regex>
#include <sstream>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shell_arm.h"
#include "tests/support/sweep_file.h"

using namespace trainyard;
using namespace trainyard::e2e;
using tests::read_text;
namespace fs = std::filesystem;

namespace {

using Texts = std::vector<std::string>;

Texts lines_with(const std::string& text, const std::string& what) {
  Texts lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (contains(line, what)) lines.push_back(line);
  return lines;
}

// A yard that has run the experiment of shell_arm.h.
struct Arms {
  explicit Arms(const std::string& body, const Texts& options = {},
                const std::map<std::string, std::string>& environment = {})
      : scratch(body, "{ count = 2 }") {
    Texts arguments{"run", "arms.toml", "--no-report", "--backoff", "0"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    run = scratch.at(arguments, environment);
  }
  fs::path file() const { return scratch.path() / "yard/trainyard.log"; }
  std::string text() const { return read_text(file()); }
  Output at(const Texts& arguments) const { return scratch.at(arguments); }

  ArmScratch scratch;
  Output run;
};

}  // namespace

TEST_CASE("the log of a sweep has one line for each launch, each end and each skipped run") {
  const Arms arms("epoch 1\nfinish");
  REQUIRE_MESSAGE(arms.run.code == 0, arms.run.err);
  const std::string log = arms.text();
  const std::regex form(
      R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (trace|debug|info|warning|error) \d+ \S.*)");
  for (const std::string& line : lines_with(log, "")) CHECK_MESSAGE(std::regex_match(line, form), line);
  const Texts launched = lines_with(log, " launched run=");
  REQUIRE_MESSAGE(launched.size() == 2, log);
  for (const char* field :
       {" attempt=1 ", " label=\"", " ranks=1 ", " devices=cpu:", " cores=", " pids=", " folder="})
    CHECK_MESSAGE(contains(launched[0], field), launched[0]);
  CHECK(lines_with(log, " rank ended run=").size() == 2);
  CHECK(lines_with(log, " code=0 signal=0 ").size() == 2);
  CHECK(lines_with(log, " finished run=").size() == 2);
  CHECK(lines_with(log, " sweep ends finished=2 skipped=0 failed=0 ").size() == 1);
  CHECK_FALSE(contains(arms.run.out + arms.run.err, " launched run="));

  CHECK(arms.at({"resume", "--no-report"}).code == 0);
  const Texts skipped = lines_with(arms.text(), " skipped run=");
  CHECK(skipped.size() == 2);
  CHECK(contains(skipped.at(0), "why=\"it has finished before\""));
  CHECK_MESSAGE(arms.text().starts_with(log), "what an earlier sweep logged stays");

  const auto shown = arms.at({"logs"});
  CHECK(shown.code == 0);
  CHECK(shown.out == arms.text());
  CHECK(arms.at({"logs", "--follow"}).out == shown.out);  // no sweep is running
  CHECK(contains(arms.at({"logs", "--rank", "0"}).err, "--rank and --attempt need a run"));
  CHECK(contains(arms.at({"logs", "--yard", "elsewhere"}).err, "there is no "));
}

TEST_CASE("a failed run is logged with its cause and its retries, without control characters") {
  const Arms arms("printf 'error: no \\033[2Jluck\\n' >&2; exit 3", {"--max-retries", "1", "--fail-fast"});
  REQUIRE(arms.run.code == 1);
  const Texts failed = lines_with(arms.text(), " error ");
  REQUIRE_MESSAGE(!failed.empty(), arms.text());
  CHECK_MESSAGE(contains(failed[0], "cause=\"error: no \\u001b[2Jluck\""), failed[0]);
  CHECK(contains(failed[0], "rank=0 "));
  CHECK_MESSAGE(contains(arms.text(), " tried again run="), arms.text());
  CHECK(contains(arms.text(), "code=3 signal=0"));
  CHECK_FALSE(contains(arms.text(), "\x1b"));
}

TEST_CASE("ranks log what they train and one line per epoch, and logs prints it") {
  const Scratch scratch;
  scratch.write("small.toml", sweep_file(3, R"("ddp")", 1));
  const auto run = scratch.at({"run", "small.toml", "--no-report"});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const auto log = scratch.at({"logs", "last", "--rank", "1"});
  CHECK(log.err.empty());
  const Texts starts = lines_with(log.out, " starts run=");
  REQUIRE_MESSAGE(starts.size() == 1, log.out);
  for (const char* field :
       {" device=cpu", " transport=", " threads=", " replicas=2 ", " parameters=", " sample=", " train=500 "})
    CHECK_MESSAGE(contains(starts[0], field), starts[0]);
  const Texts epochs = lines_with(log.out, " epoch epoch=");
  REQUIRE(epochs.size() == 3);
  for (const char* field :
       {"epoch=3 of=3 ", " train_seconds=", " train_loss=", " train_accuracy=", " validation_loss="})
    CHECK_MESSAGE(contains(epochs[2], field), epochs[2]);
  CHECK(lines_with(log.out, " finished ").size() == 1);
  CHECK_FALSE(std::filesystem::exists(scratch.path() / "yard/store.log"));  // the ranks meet in a file

  CHECK(scratch.at({"run", "small.toml", "--no-report", "--set", "epochs=1", "--log-level", "error"}).code ==
        0);
  const auto silent = scratch.at({"logs", "last"});
  CHECK(silent.out.empty());
  CHECK_MESSAGE(contains(silent.err, "--log-level"), silent.err);
}

TEST_CASE("the log level is an option or a variable, and a wrong value names the allowed ones") {
  const std::string words = "must be one of trace, debug, info, warning, error, off, but is \"loud\"";
  const Arms option("epoch 1\nfinish", {"--log-level", "loud"});
  CHECK(option.run.code == 2);
  CHECK_MESSAGE(contains(option.run.err, "--log-level: " + words), option.run.err);
  const Arms variable("epoch 1\nfinish", {}, {{"TRAINYARD_LOG", "loud"}});
  CHECK(variable.run.code == 2);
  CHECK_MESSAGE(contains(variable.run.err, "TRAINYARD_LOG " + words), variable.run.err);
  CHECK_FALSE(fs::exists(variable.file()));
  CHECK(Arms("epoch 1\nfinish", {"--log-level", "info", "--verbose"}).run.code == 2);

  const Arms verbose("echo level $TRAINYARD_LOG\nepoch 1\nfinish", {"--verbose"});
  CHECK(contains(verbose.text(), " debug "));
  CHECK(verbose.at({"logs", "last"}).out == "level debug\n");
  const Arms off("epoch 1\nfinish", {}, {{"TRAINYARD_LOG", "off"}});
  CHECK(off.run.code == 0);
  CHECK_FALSE(fs::exists(off.file()));
}

TEST_CASE("a log that is a link is refused, and its target is not changed") {
  const Arms arms("epoch 1\nfinish");
  arms.scratch.write("precious", "precious");
  fs::remove(arms.file());
  fs::create_symlink("../precious", arms.file());
  for (const Texts& verb : {Texts{"resume"}, Texts{"logs"}}) {
    checked_error(arms.at(verb), 2, "trainyard.log is a link");
  }
  CHECK(read_text(arms.scratch.path() / "precious") == "precious");
}

TEST_CASE("logs --follow prints the log of a sweep as it grows, and ends with it") {
  const ArmScratch scratch("until_there go\nepoch 1\nfinish", "[7]");
  Trainyard sweep(scratch.path(), {"run", "arms.toml", "--no-report"});
  REQUIRE(
      comes_true([&] { return contains(read_text(scratch.path() / "yard/trainyard.log"), " launched "); }));
  fs::create_directory(scratch.path() / "follow");
  Trainyard follow(scratch.path() / "follow", {"logs", "--follow", "--yard", "../yard"});
  REQUIRE(
      comes_true([&] { return contains(read_text(scratch.path() / "follow/stdout.txt"), " launched "); }));
  scratch.write("go", "");
  CHECK(sweep.wait().code == 0);
  const auto followed = follow.wait();
  CHECK(followed.code == 0);
  CHECK(followed.out == read_text(scratch.path() / "yard/trainyard.log"));
}
