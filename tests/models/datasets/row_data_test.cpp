#include "models/datasets/row_data.h"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "tests/support/contains.h"
#include "tests/support/data_folder.h"

using namespace trainyard;
using namespace trainyard::models;
using namespace trainyard::tests;

namespace fs = std::filesystem;

namespace {

DataChoice choice_of(const fs::path& place, const std::string& kind = "number") {
  DataChoice choice;
  choice.dataset = choice.source = "csv";
  choice.folder = place;
  choice.target_column = "y";
  choice.target_kind = kind;
  return choice;
}

const Rows& rows_of(const Samples& samples) {
  return std::get<Rows>(samples);
}

// What is wrong with the table, without the folder.
std::string error_in(const std::string& text, const std::string& kind = "number",
                     const std::string& inputs = "") {
  const DataFolder folder;
  folder.write("train.csv", text);
  DataChoice choice = choice_of(folder.path(), kind);
  choice.input_columns = inputs;
  choice.split = {1, 0, 0};
  const std::string error = user_error_of([&] { facts(find_dataset("csv"), folder.path(), choice); });
  const auto at = error.find("train.csv");
  return at == std::string::npos ? error : error.substr(at);
}

}  // namespace

TEST_CASE("inputs and a target that is a number are standardised by the training part") {
  const DataFolder folder;
  folder.write("train.csv", "x,y,same\n1,10,7\n3, 30 ,7\n");
  folder.write("validation.csv", "same,y,x\n8,+20,2\n");
  folder.write("test.csv", "x,y,same\n5,5e1,7\n");
  const Splits splits = read(choice_of(folder.path()));
  const Rows &train = rows_of(splits.train), &validation = rows_of(splits.validation),
             &test = rows_of(splits.test);
  CHECK(train.columns == 2);  // x and same; mean 2 and deviation 1, mean 7 and no deviation
  std::vector<float> first(train.values.begin(), train.values.begin() + 2);
  std::vector<float> second(train.values.begin() + 2, train.values.end());
  if (first > second) std::swap(first, second);
  CHECK(first == std::vector<float>{-1, 0});
  CHECK(second == std::vector<float>{1, 0});
  CHECK(std::abs(train.numbers[0]) == 1);  // mean 20, deviation 10
  CHECK(train.deviation == 10);
  CHECK(test.deviation == 10);
  CHECK(validation.values == std::vector<float>{0, 1});
  CHECK(validation.numbers == std::vector<float>{0});
  CHECK(test.values == std::vector<float>{3, 0});
  CHECK(test.numbers == std::vector<float>{3});
  CHECK(own_class_names(choice_of(folder.path())).empty());
}

TEST_CASE("one file is cut by data_split, as data.csv in a folder or by its own name") {
  const DataFolder folder;
  std::string text = "id,y,x\n";
  for (int i = 0; i < 20; ++i)
    text += std::to_string(i) + (i % 2 == 0 ? ",even," : ",odd,") + std::to_string(i % 2) + "\n";
  folder.write("data.csv", text);
  DataChoice choice = choice_of(folder.path(), "class");
  choice.input_columns = "x";
  const Splits splits = read(choice);
  CHECK(sample_count(splits.train) == 16);
  CHECK(sample_count(splits.validation) == 2);
  CHECK(sample_count(splits.test) == 2);
  const Rows& train = rows_of(splits.train);
  for (std::size_t i = 0; i < train.labels.size(); ++i)
    CHECK((train.values[i] > 0) == (train.labels[i] == 1));
  const DataFacts known = facts(find_dataset("csv"), folder.path(), choice);
  CHECK(known.input.image == ImageShape{1, 1, 1});
  CHECK(known.input.classes == 2);
  CHECK(known.sizes.train == 20);
  CHECK(own_class_names(choice) == std::vector<std::string>{"even", "odd"});
  choice.folder = folder.path() / "data.csv";
  CHECK(rows_of(read(choice).train).values == train.values);
  CHECK(find_folder(find_dataset("csv"), choice.folder) == choice.folder);
  CHECK(find_folder(find_dataset("csv"), folder.path()) == folder.path());
  CHECK_FALSE(find_folder(find_dataset("csv"), folder.path() / "other"));
  choice.fingerprint = known.fingerprint;
  read(choice);
  folder.write("data.csv", text + "20,even,0\n");
  CHECK(contains(user_error_of([&] { read(choice); }), "has changed since the run was planned"));
}

TEST_CASE("a wrong value is one line with file, line and column") {
  CHECK(contains(error_in("x,y\n1,2\nred,3\n"),
                 "train.csv:3: column \"x\" has \"red\", which is not a number; "));
  CHECK(contains(error_in("x,y\n1,2\n,3\n"), "train.csv:3: column \"x\" has no value; "));
  CHECK(contains(error_in("x,y\n1,2\nnan,3\n"),
                 "train.csv:3: column \"x\" has \"nan\", which is not a finite number; "));
  CHECK(contains(error_in("x,y\n1,2\n1,-inf\n"),
                 "train.csv:3: column \"y\" has \"-inf\", which is not a finite "));
  CHECK(contains(error_in("x,y\n1,2\n1,1e999\n"), "train.csv:3: column \"y\" has \"1e999\""));
  CHECK(contains(error_in("x,y\n1,good\n"), "set target_kind = \"class\""));
  CHECK(contains(error_in("x,z\n1,2\n"),
                 "train.csv:1: there is no column \"y\"; the columns are \"x\", \"z\""));
  CHECK(contains(error_in("x,y\n1,2\n", "number", "x, w"), "train.csv:1: there is no column \"w\"; "));
  CHECK(contains(error_in("x,y\n1,2\n", "number", "x,x"), "input_columns names the column \"x\" twice"));
  CHECK(contains(error_in("x,y\n1,2\n", "number", "x,y"), "input_columns names the target \"y\""));
  CHECK(contains(error_in("y\n1\n"), "train.csv:1: the table has only the column of the target"));
  CHECK(contains(error_in("x,y\n1,a\n2,a\n", "class"), "has only one class in the training part, \"a\""));
  CHECK(contains(error_in("x,y\n1e308,1\n-1e308,2\n"), "standard deviation of column \"x\""));
  const DataFolder folder;
  folder.write("train.csv", "x,y\n1,a\n2,b\n");
  folder.write("test.csv", "x,y\n1,b\n2,c\n");
  DataChoice choice = choice_of(folder.path(), "class");
  choice.split = {0.9, 0.0, 0.1};
  CHECK(contains(user_error_of([&] { read(choice); }),
                 "test.csv:3: column \"y\" has the class \"c\", which the training part lacks; "));
  folder.write("data.csv", "x,y\n1,2\n");
  CHECK(contains(user_error_of([&] { read(choice); }), "has data.csv and train.csv; "));
}
