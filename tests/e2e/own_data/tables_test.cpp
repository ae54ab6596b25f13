// Tables of the user: a regression, a classification, and what is refused.
#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "db/database/database.h"
#include "db/queries/queries.h"
#include "tests/support/program.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

// price = 3 · area − 4 · age + noise. The noise has the variance 1 and area and age too, so that the variance of the
// price is 9 + 16 + 1. A linear model leaves 1/26 of it. `size` is the sign of area + age.
std::string table(int rows) {
  std::mt19937 bits(1);
  const auto normal = [&] {  // Box and Muller: the same numbers with every library
    const double u = (static_cast<double>(bits()) + 1) / 4294967297.0,
                 v = static_cast<double>(bits()) / 4294967296.0;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979 * v);
  };
  std::string text = "area,age,price,size\n";
  for (int row = 0; row < rows; ++row) {
    const double area = normal(), age = normal();
    text += std::to_string(100 + 30 * area) + "," + std::to_string(50 + 10 * age) + "," +
            std::to_string(200 + 3 * area - 4 * age + normal()) + (area + age > 0 ? ",big\n" : ",small\n");
  }
  return text;
}

std::string experiment(const std::string& keys, const std::string& rest = "") {
  return "name = \"houses\"\n[data]\ncsv = \"houses\"\n[matrix]\nmodel = [\"mlp\"]\nstrategy = [\"single\", "
         "\"ddp\"]\n"
         "[compare]\nbaseline = \"single\"\n[defaults]\ndataset = \"csv\"\nepochs = 3\nbatch = 32\n" +
         keys + "\n[model.mlp]\nhidden = []\n" + rest;
}

nlohmann::json results(const Scratch& yard) {
  const Output output = yard.at({"sql",
                                 "SELECT strategy, test_loss, test_r2, test_rmse, test_accuracy FROM "
                                 "task_final_metrics ORDER BY strategy",
                                 "--format", "json"});
  REQUIRE_MESSAGE(output.code == 0, output.err);
  return nlohmann::json::parse(output.out);
}

}  // namespace

TEST_CASE("a regression on a user's own table leaves the noise, under single and ddp") {
  const Scratch yard;
  yard.write("houses/data.csv", table(4000));
  yard.write("t.toml", experiment("target_column = \"price\"\ninput_columns = \"area, city\""));
  checked_error(yard.at({"check", "t.toml"}), 2, "data.csv:1: there is no column \"city\"");
  yard.write("t.toml", experiment("target_column = \"price\""));
  checked_error(yard.at({"run", "t.toml"}), 2, "data.csv:2: column \"size\" has \"");
  yard.write("t.toml", experiment("learning_rate = 0.05"));
  checked_error(yard.at({"check", "t.toml"}), 2, "data set \"csv\" needs target_column");
  yard.write("t.toml", experiment("target_column = \"size\"\ntarget_kind = \"classes\""));
  checked_error(yard.at({"check", "t.toml"}), 2, "target_kind must be one of \"number\", \"class\"");
  CHECK_FALSE(std::filesystem::exists(yard.path() / "yard"));  // nothing was started

  yard.write("t.toml", experiment("target_column = \"price\"\ninput_columns = \"area, age\"",
                                  "[expect.mlp]\ntest_r2 = 0.9\n"));
  const Output run = checked_output(yard.at({"run", "t.toml"}), 0, "test r2");
  CHECK_FALSE(contains(run.out, "BROKEN"));
  const auto rows = results(yard);
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) {
    CAPTURE(row.dump());
    CHECK(row.at("test_accuracy").is_null());
    // 400 squared errors: four standard deviations of their mean are 4 · √(2 / 400) = 28 %
    CHECK(row.at("test_loss").get<double>() == doctest::Approx(1.0 / 26).epsilon(0.3));
    CHECK(row.at("test_r2").get<double>() == doctest::Approx(25.0 / 26).epsilon(0.02));
    // numpy.std of the prices of these 4000 rows is 5.205; that of the training part differs by less than 2 %
    CHECK(row.at("test_rmse").get<double>() ==
          doctest::Approx(5.205 * std::sqrt(row.at("test_loss").get<double>())).epsilon(0.02));
    CHECK(row.at("test_rmse").get<double>() == doctest::Approx(1).epsilon(0.15));  // the noise
  }
  checked_output(
      yard.at({"list", "models", "mlp"}), 0,
      "task classification (records loss, correct), regression (records loss, target, square, deviation);");
  const std::string page = tests::read_text(yard.path() / "yard/reports/houses/index.html");
  CHECK_FALSE(contains(page, "Test acc. %"));
  CHECK_FALSE(contains(page, ">Validation accuracy<"));
  CHECK(contains(page, ">Val. loss<"));
  const double difference = rows[0].at("test_loss").get<double>() - rows[1].at("test_loss").get<double>();
  CHECK(std::abs(difference) < 1e-5);
}

TEST_CASE("a classification on a user's own table has an accuracy and no R²") {
  const Scratch yard;
  yard.write("houses/data.csv", table(2000));
  yard.write("t.toml",
             experiment("target_column = \"size\"\ntarget_kind = \"class\"\ninput_columns = \"area, age\"",
                        "[expect.mlp]\ntest_accuracy = 0.95\n"));
  checked_output(yard.at({"run", "t.toml"}), 0, "test accuracy");
  const auto rows = results(yard);
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) CHECK((row.at("test_r2").is_null() && row.at("test_rmse").is_null()));
}
