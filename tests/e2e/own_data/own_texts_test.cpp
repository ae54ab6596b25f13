// Texts of the user as data: classes in folders, translations in two files, and text files for language models.
#include <algorithm>
#include <cstdlib>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace fs = std::filesystem;

namespace {

std::string texts_experiment(const std::string& model, const std::string& dataset, const std::string& more) {
  return "name = \"own\"\ncompare = { axis = \"strategy\", baseline = \"single\", pair = [\"seed\"] "
         "}\n[matrix]\nmodel = "
         "[\"" +
         model + "\"]\nstrategy = [\"single\", \"ddp\", \"pipeline\"]\nseed = { count = 2 }\n[data]\n" +
         dataset + " = \"own\"\n[defaults]\ndataset = \"" + dataset + "\"\nepochs = 2\nbatch = 8\n" + more;
}

std::string answer_of(const Scratch& scratch, const std::string& sql) {
  const Output answer = scratch.at({"sql", sql, "--format", "csv"});
  REQUIRE_MESSAGE(answer.code == 0, answer.err);
  return answer.out.substr(answer.out.find('\n') + 1);
}

// Trains own.toml. All runs finish, and every strategy passes the parity check.
void check_trains(const Scratch& scratch, const std::string& parity_checks) {
  checked_output(scratch.at({"check", "own.toml"}), 0, "own.toml: ok");
  checked_output(scratch.at({"plan", "own.toml"}), 0, "6 to run");
  const Output trained = scratch.at({"run", "own.toml"});
  REQUIRE_MESSAGE(trained.code == 0, (trained.out + trained.err));
  CHECK(contains(trained.out, "6 runs finished, 0 were finished before, 0 failed"));
  CHECK(answer_of(scratch, "SELECT COUNT(*), MAX(abs(loss / reference_loss - 1)) < 1e-4 FROM probe") ==
        parity_checks);
  checked_output(scratch.at({"run", "own.toml"}), 0, "6 were finished before");
  CHECK(scratch.at({"compare"}).code == 0);
}

// One line with the text on standard error, exit code 2, and no yard.
void check_refused(const Scratch& scratch, const std::string& text) {
  const Output refused = checked_error(scratch.at({"run", "own.toml"}), 2, text);
  CHECK_MESSAGE(std::count(refused.err.begin(), refused.err.end(), '\n') == 1, refused.err);
  CHECK_FALSE(fs::exists(scratch.path() / "yard/runs"));
}

void write_classes(const Scratch& scratch) {
  const char* things[] = {"ball", "goal", "match", "song", "piano", "band"};
  for (int i = 0; i < 60; ++i)
    scratch.write("own/" + std::string(i % 2 == 0 ? "sport" : "music") + "/" + std::to_string(i) + ".txt",
                  std::string("This is a ") + things[i % 2 * 3 + i / 2 % 3] + ".\n");
}

}  // namespace

TEST_CASE(
    "texts in class folders are trained under every strategy, and the page has the names of the classes") {
  const Scratch scratch;
  write_classes(scratch);
  scratch.write("own.toml", texts_experiment("nbow", "text-folder", "[model.nbow]\nembedding = 8\n"));
  check_trains(scratch, "10,1\n");
  CHECK(answer_of(scratch,
                  "SELECT json_extract(extra, '$.data_profiles[0].class_names') FROM journal LIMIT 1") ==
        R"("[""music"",""sport""]")"
        "\n");
  fs::remove_all(scratch.path() / "own");  // the report needs no data
  REQUIRE(scratch.at({"report", "--out", "page"}).code == 0);
  const std::string page = tests::read_text(scratch.path() / "page/index.html");
  for (const char* name : {">music</text>", ">sport</text>"}) CHECK_MESSAGE(contains(page, name), name);
  checked_output(scratch.at({"show", "last"}), 0, "text-folder");
  checked_output(scratch.at({"list", "datasets"}), 0, "text-folder");
  checked_output(scratch.at({"list", "datasets", "text-pairs"}), 0, "train.LANGUAGE");
  checked_output(scratch.at({"list", "keys"}), 0, "bpe_file");
}

TEST_CASE("sentences in two files are trained under every strategy") {
  const std::string data = real_data();
  if (data.empty()) {
    MESSAGE("skipped: no data sets; set TRAINYARD_DATA");
    return;
  }
  const Scratch scratch;
  fs::create_directory(scratch.path() / "own");
  for (const std::string language : {"de.gz", "en.gz"}) {
    const fs::path from = fs::path(data) / "multi30k", to = scratch.path() / "own";
    fs::copy_file(from / ("train." + language), to / ("train." + language));
    fs::copy_file(from / ("val." + language), to / ("validation." + language));
    fs::copy_file(from / ("test_2016_flickr." + language), to / ("test." + language));
  }
  const std::string small =
      "train_samples = 64\nvocabulary_max_size = 200\n[model.seq2seq]\nembedding = 8\nhidden = "
      "8\nlayers = 1\n";
  scratch.write("own.toml", texts_experiment("seq2seq", "text-pairs", "source_language = \"en\"\n" + small));
  check_trains(scratch, "10,1\n");
  CHECK(answer_of(scratch, "SELECT DISTINCT json_extract(resolved, '$.data.source_language') FROM run") ==
        "en\n");
  checked_output(scratch.at({"plan", "own.toml", "--set", "source_language=de"}), 0, "6 to run");
}

TEST_CASE("own texts that cannot be used are refused in one line with the place, and nothing starts") {
  const Scratch scratch;
  scratch.write("own.toml", texts_experiment("nbow", "text-folder", ""));
  check_refused(scratch, "data set \"text-folder\" was not found in ");
  write_classes(scratch);
  scratch.write("own/music/bad.txt", "good\xff");
  check_refused(scratch, "own/music/bad.txt: byte 4: this is not UTF-8; save it as UTF-8");
  fs::remove(scratch.path() / "own/music/bad.txt");
  scratch.write("own/empty/notes.md", "no text");
  check_refused(scratch, "own: these class folders have no file *.txt: \"empty\"");
  fs::remove_all(scratch.path() / "own/empty");
  fs::remove_all(scratch.path() / "own/sport");
  check_refused(scratch, "own has one class folder of texts");

  scratch.write("own.toml", texts_experiment("seq2seq", "text-pairs", ""));
  check_refused(scratch, "data set \"text-pairs\" was not found in ");
  scratch.write("own/train.de", "Eins.\nZwei.\n");
  scratch.write("own/train.en", "One.\n");
  check_refused(scratch, "own/train.de has 2 lines, but ");
  scratch.write("own/train.en", "One.\n\n");
  check_refused(scratch, "own/train.en:2: the line is empty");
  scratch.write("own/train.fr", "Un.\nDeux.\n");
  check_refused(scratch, "own has files train.LANGUAGE of 3 languages: de, en, fr");
  scratch.write("own.toml",
                texts_experiment("seq2seq", "text-pairs", "[model.seq2seq]\ntokens = \"words\"\n"));
  check_refused(scratch, "tokens is a key of windows of a text; data set \"text-pairs\" has text pairs");
}

TEST_CASE("a language model is trained on words and on byte pairs of text files") {
  if (std::string(TRAINYARD_PYTHON).empty()) {
    MESSAGE("skipped: no Python with torch was found when this was configured");
    return;
  }
  const Scratch scratch;
  scratch.write(
      "lm.py",
      "import torch\nfrom torch import nn\n\ndef lm(batch):\n    net = nn.Sequential(nn.Embedding(300, 8), "
      "nn.Linear(8, 300))\n    return net, torch.randint(300, (batch, 16)), \"language-model\"\n");
  const fs::path python = TRAINYARD_PYTHON;
  const std::string path = python.parent_path().string() + ":" + std::getenv("PATH");
  const Output exported =
      scratch.at({"export", "lm.py:lm", "--batch", "4", "-o", "lm.pt2"}, {{"PATH", path}});
  REQUIRE_MESSAGE(exported.code == 0, exported.err);
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += i % 3 == 0 ? "The dog sees the cat.\n" : "A cat hears a bird, and it sings!\n";
  scratch.write("own/b.txt", text);
  scratch.write("own/a.txt", text);
  scratch.write("merges.txt", "#version: 0.2\nh e\nĠ c\nĠc a\n");
  const std::string model =
      "[model.lm]\nexport = \"lm.pt2\"\ntask = \"language-model\"\ninitial = \"seed\"\n";
  const auto with = [&](const std::string& keys) {
    scratch.write("own.toml", texts_experiment("lm", "text", "window_length = 16\n" + keys + model));
  };
  with("tokens = \"words\"\n");
  check_trains(scratch, "10,1\n");
  with("tokens = \"bpe\"\nbpe_file = \"merges.txt\"\n");
  check_trains(scratch, "20,1\n");
  const std::string vocabulary =
      "SELECT DISTINCT json_extract(resolved, '$.data.tokens') FROM run ORDER BY 1";
  CHECK(answer_of(scratch, vocabulary) == "bpe\nwords\n");
  const Scratch other;
  fs::copy(scratch.path() / "own", other.path() / "own");
  for (const char* name : {"own.toml", "lm.pt2"}) fs::copy_file(scratch.path() / name, other.path() / name);
  other.write("merges.txt", "h e\nh e l\n");
  check_refused(other, "merges.txt:2: a merge is two tokens with one space between them");
  fs::remove(other.path() / "merges.txt");
  check_refused(other, "merges.txt");
  other.write("own/b.txt", "short \xff");
  check_refused(other, "own/b.txt: byte 6: this is not UTF-8");
}
