// Wrong files of the user: `check` and `plan` print one line with the file, and nothing starts.
#include <algorithm>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/program.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace fs = std::filesystem;

namespace {

using Files = std::vector<std::pair<std::string, std::string>>;  // names and contents

std::string experiment_on(const std::string& model, const std::string& dataset, const std::string& keys) {
  const std::string own = dataset.starts_with("synthetic") ? "" : "[data]\n" + dataset + " = \"own\"\n";
  return "name = \"wrong\"\n[matrix]\nmodel = [\"" + model +
         "\"]\nstrategy = [\"single\", \"ddp\"]\nseed = [1]\n[compare]\nbaseline = \"single\"\n" + own +
         "[defaults]\ndataset = \"" + dataset + "\"\nepochs = 1\nbatch = 8\n" + keys + "\n";
}

// A yard with the experiment, and one wrong input after the other.
class Refused {
 public:
  Refused(const std::string& model, const std::string& dataset, const std::string& keys) {
    scratch_.write("wrong.toml", experiment_on(model, dataset, keys));
  }

  // `says`: the place and the fault.
  void with(const Files& files, const std::string& says) const {
    CAPTURE(says);
    fs::create_directory(scratch_ / "own");
    for (const auto& [name, content] : files) scratch_.write(name, content);
    for (const char* verb : {"check", "plan"}) {
      const Output output = checked_error(scratch_.at({verb, "wrong.toml"}), 2, says);
      CHECK_MESSAGE(std::count(output.err.begin(), output.err.end(), '\n') == 1, output.err);
      CHECK(output.out.empty());
    }
    CHECK_FALSE(fs::exists(scratch_ / "yard"));
    fs::remove_all(scratch_ / "own");
    for (const auto& [name, content] : files) fs::remove(scratch_ / name);
  }

 private:
  Scratch scratch_;
};

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "The dog sees the cat.\n";
  return text;
}

}  // namespace

TEST_CASE("twenty-four wrong files are refused in one line with the place, and nothing starts") {
  const Refused number("mlp", "csv", "target_column = \"price\"");
  const auto table = [&](const std::string& content, const std::string& says) {
    number.with({{"own/data.csv", content}}, "own/data.csv" + says);
  };
  number.with({}, "data set \"csv\" has neither data.csv nor train.csv in ");
  table("", " is empty; write the names of the columns into the first row");
  table("area,price\n", " has only the names of the columns");
  table("area,price\n1,2\n3\n", ":3: the row has 1 cell, but the first row has 2");
  table("area;price\n1;2\n", ":1: there is no column \"price\"; the columns are \"area;price\"");
  table("area,area,price\n1,2,3\n", ":1: two columns have the name \"area\"");
  table("area,price\n1,nan\n", ":2: column \"price\" has \"nan\", which is not a finite number");
  table("area,price\n1,2\n\n,3\n", ":4: column \"area\" has no value");
  table("area,price\n1,\"2\n", ":2: a quotation mark is not closed");
  table("area,price\n1,\"2\"3\n", ":2: characters follow a closing quotation mark");
  table("area,price\n1,\xff\n", ": byte 13: this is not UTF-8");
  number.with({{"own/train.csv", "area,price\n1,2\n"}, {"own/test.csv", "area\n1\n"}},
              "own/test.csv:1: there is no column \"price\"; the columns are \"area\"");

  const Refused text("gpt", "text", "window_length = 16");
  text.with({}, "data set \"text\" was not found in ");
  text.with({{"own/1.txt", ""}},
            "own: the training part has 0 characters, but windows of 16 need at least 17");
  Refused("nbow", "text-folder", "")
      .with({{"own/a/1.txt", "x"}, {"own/b/1.txt", " \n"}}, "own/b/1.txt is empty; add its text");

  const Refused pairs("seq2seq", "text-pairs", "");
  pairs.with({{"own/train.de", "Eins.\n"}}, "own has files train.LANGUAGE of 1 language: de");
  pairs.with({{"own/train.de", "Eins.\n"}, {"own/train.en", "One.\n"}, {"own/test.de", "Zwei.\n"}},
             "own/test.en is missing, and so is test.en.gz");

  const Refused merges("gpt", "text", "window_length = 16\ntokens = \"bpe\"\nbpe_file = \"merges.txt\"");
  const auto merge = [&](const std::string& content, const std::string& says) {
    merges.with({{"own/1.txt", lines(200)}, {"merges.txt", content}}, "merges.txt" + says);
  };
  merge("#version: 0.2\nh e\nx yz\n",
        ":3: the token \"yz\" is neither a byte nor the result of an earlier line");
  merge("h e\nh e\n", ":2: an earlier line has the same merge");
  merge("#version: 0.2\n", " has no merges");

  const Refused weights("mlp", "synthetic-digits", "initial = \"w.safetensors\"");
  const auto weight = [&](const std::string& content, const std::string& says) {
    weights.with({{"w.safetensors", content}}, "w.safetensors " + says);
  };
  const std::string whole = "is not a complete safetensors file: ";
  weight("These are not weights.", whole + "it ends in its header");
  const auto headed = [](const std::string& header) {
    return std::string({static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0}) + header;
  };
  weight(headed("xx"), whole + "byte 1: this is not JSON");
  const std::string header = R"({"1.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  weight(headed(header), whole + "'1.weight': its values are not where the header says");
  weight(headed(header) + "1234",
         "does not fit model \"mlp\": it has 1 value for layer 1 (linear), but the network has 196250");
}
