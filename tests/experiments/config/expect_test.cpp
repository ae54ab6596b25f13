// [expect.*]: thresholds that the runs of a file must reach.
#include <doctest/doctest.h>

#include "tests/experiments/file/loading.h"
#include "tests/support/contains.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

TEST_CASE("a plain number is the minimum accuracy or the maximum loss, and a table sets either limit") {
  const Loaded result = load_text(start +
                                      "[expect.mlp]\ntest_accuracy = 0.9\ntest_loss = 1\n"
                                      "train_loss = { at_least = 0.1, at_most = 2.5 }\n",
                                  "f.toml");
  REQUIRE(result.experiment.has_value());
  const auto& expect = result.experiment->expect;
  REQUIRE(expect.size() == 3);
  CHECK(to_text(expect[0]) == "mlp: test_accuracy >= 0.9");
  CHECK(to_text(expect[1]) == "mlp: test_loss <= 1");
  CHECK(to_text(expect[2]) == "mlp: train_loss >= 0.1 and <= 2.5");
}

TEST_CASE("impossible expectations are errors at their place, with a reason") {
  CHECK(problem_of(start + "[expect.mpl]\ntest_loss = 1") ==
        "f.toml:4:9: error: there is no model \"mpl\"; did you mean \"mlp\"?");
  CHECK(problem_of(start + "[expect.mlp]\ntest_acuracy = 1") ==
        "f.toml:5:1: error: \"test_acuracy\" is not a key of [expect.mlp]; did you mean \"test_accuracy\"?");
  CHECK(problem_of(start + "[expect.mlp]\ntest_psnr = 20") ==
        "f.toml:5:1: error: test_psnr is not defined for model \"mlp\" (classification, regression); choose "
        "from "
        "test_loss, validation_loss, train_loss, test_accuracy, validation_accuracy, train_accuracy, "
        "test_r2, test_rmse");
  CHECK(problem_of(start + "[expect.mlp]\ntest_loss = \"low\"") ==
        "f.toml:5:13: error: a threshold must be a number, but is \"low\"");
  CHECK(problem_of(start + "[expect.mlp]\ntest_accuracy = 90") ==
        "f.toml:5:17: error: a threshold must be a number in [0, 1], but is 90");
  CHECK(problem_of(start + "[expect.mlp]\ntest_accuracy = { at_least = -0.1 }") ==
        "f.toml:5:30: error: at_least must be a number in [0, 1], but is -0.1");
  CHECK(problem_of(start + "[expect.seq2seq]\ntest_bleu = 120") ==
        "f.toml:5:13: error: a threshold must be a number in [0, 100], but is 120");
  CHECK(problem_of(start + "[expect.seq2seq]\ntest_bleu = 0.07") ==
        "f.toml:5:1: warning: this is never checked, because no run has the model \"seq2seq\"\n"
        "f.toml:5:13: error: bleu is a score from 0 to 100, and this is less than 1; for the fraction 0.07 "
        "write 7.0");
  CHECK(problem_of(start + "[expect.mlp]\ntest_loss = {}") ==
        "f.toml:5:13: error: a threshold must have at_least or at_most, as in { at_least = 0.9 }");
  CHECK(problem_of(start + "[expect.mlp]\ntest_loss = { at_least = 2, at_most = 1 }") ==
        "f.toml:5:13: error: at_least is greater than at_most, so that no value can pass");
  CHECK(problem_of(start + "[expect.cnn]\ntest_loss = 1") ==
        "f.toml:5:1: warning: this is never checked, because no run has the model \"cnn\"");
}

TEST_CASE("a metric of the user is defined by the file, and each wrong line has its place") {
  const std::string metric = "[metric.reward]\n";
  const auto loaded =
      load_text(start + metric +
                    "unit = \"points\"\nbetter = \"higher\"\nmargin = 2\n[expect.mlp]\nvalidation_reward = 3",
                "f.toml");
  REQUIRE(loaded.experiment.has_value());
  CHECK(loaded.experiment->metrics == std::vector{OwnMetric{"reward", "points", true, false}});
  CHECK(to_text(loaded.experiment->expect.at(0)) == "mlp: validation_reward >= 3");
  CHECK(problem_of(start + metric) ==
        "f.toml:4:9: error: metric \"reward\" does not say which values are better; add better = \"higher\" "
        "or \"lower\"");
  CHECK(problem_of(start + metric + "better = \"big\"") ==
        "f.toml:5:10: error: better must be one of \"higher\", \"lower\", but is \"big\"");
  CHECK(problem_of(start + metric + "better = \"lower\"\nmargin = 0") ==
        "f.toml:6:10: error: margin must be a number > 0, but is 0");
  CHECK(problem_of(start + metric + "better = \"lower\"\nunit = \"\"") ==
        "f.toml:6:8: error: unit must be one line of 1 to 80 bytes, as in \"1/s\", but is \"\"");
  CHECK(problem_of(start + "[metric.Reward]\nbetter = \"lower\"") ==
        "f.toml:4:9: error: the name of a metric must be 1 to 40 characters of a-z 0-9 _, and begin with a "
        "letter");
  CHECK(problem_of(start + "[metric.correct]\nbetter = \"lower\"") ==
        "f.toml:4:9: error: the name of a metric must not be that of a metric of trainyard");
  CHECK(contains(problem_of(start + "[metric.seconds]\nbetter = \"lower\""),
                 "must not be that of a metric of trainyard"));
  CHECK(contains(
      problem_of(start + "[metric.wait]\nunit = \"ms\"\nbetter = \"lower\"\n[expect.mlp]\ntest_wait = 1"),
      "\"test_wait\" is not a key of [expect.mlp]"));
  CHECK(problem_of(start + "[metric.fps]\nunit = \"1/s\"\nbetter = \"higher\"\nmargin = 2") ==
        "f.toml:7:1: error: a metric in \"1/s\" is judged as a time, so margins.time of [compare] is its "
        "margin; remove this line");
}
