// [expect.*]: thresholds that the runs of a file must reach.
#include <doctest/doctest.h>

#include "tests/experiments/file/loading.h"

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
