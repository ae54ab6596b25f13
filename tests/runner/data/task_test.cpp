#include "runner/data/task.h"

#include <cmath>

#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"
#include "models/networks/network.h"
#include "tests/models/networks/catalogue_network.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::task_test {

MetricSums sums_of(const char* task_name, const at::Tensor& outputs, const at::Tensor& targets,
                   std::int64_t weight) {
  const Task& task = find_task(task_name);
  MetricSums sums(task);
  sums.add(task.loss_sum(outputs, targets), {outputs}, targets, weight);
  return sums;
}

TEST_CASE(
    "classification sums cross entropy, and a sample is correct if its largest logit is that of its label") {
  // softmax of (ln 1, ln 2, ln 5) is (1/8, 2/8, 5/8)
  const at::Tensor logits = at::tensor({1., 2., 5., 5., 2., 1.}, at::kDouble).log().view({2, 3});
  const MetricSums sums = sums_of("classification", logits, at::tensor({2, 1}, at::kLong), 2);
  CHECK(sums.loss() == doctest::Approx(-std::log(5. / 8) - std::log(2. / 8)));
  CHECK(sums.correct() == 1);
  CHECK(sums.weight() == 2);
}

TEST_CASE("reconstruction sums squared errors of pixels, and its accuracy is undefined") {
  const at::Tensor images = at::tensor({0., 0.5, 1., 1.}, at::kDouble).view({1, 1, 2, 2});
  const at::Tensor targets = at::tensor({0.5, 0.5, 0., 1.}, at::kDouble).view({1, 1, 2, 2});
  const MetricSums sums = sums_of("reconstruction", images, targets, 4);
  CHECK(sums.loss() == 1.25);
  CHECK(!sums.correct());
  const auto json = to_json(sums, "test");
  REQUIRE(json.size() == 1);
  CHECK(json[0].dump() == R"({"phase":"test","name":"loss","sum":1.25,"weight":4})");
}

TEST_CASE("translation sums over tokens without padding, even if the network predicts padding") {
  // 2 sentences of 2 and 1 tokens, and a vocabulary of 3.
  const at::Tensor probabilities =
      at::tensor({1., 2., 5., 5., 2., 1., 1., 6., 1., 8., 1., 1.}, at::kDouble).view({2, 2, 3});
  const at::Tensor tokens = at::tensor({2, 1, 1, 0}, at::kLong).view({2, 2});
  const MetricSums sums = sums_of("translation", probabilities.log(), tokens, 3);
  CHECK(sums.loss() == doctest::Approx(-std::log(5. / 8) - std::log(2. / 8) - std::log(6. / 8)));
  CHECK(sums.correct() == 2);
}

TEST_CASE("a language model sums cross entropy over all tokens, and the mean is that of parts of any size") {
  // 2 windows of 2 tokens, and a vocabulary of 3.
  const at::Tensor logits =
      at::tensor({1., 2., 5., 5., 2., 1., 1., 6., 1., 8., 1., 1.}, at::kDouble).log().view({2, 2, 3});
  const at::Tensor tokens = at::tensor({2, 1, 1, 2}, at::kLong).view({2, 2});
  const MetricSums sums = sums_of("language-model", logits, tokens, 4);
  CHECK(sums.loss() == doctest::Approx(-std::log(5. / 8 * 2 / 8 * 6 / 8 * 1 / 10)));
  CHECK(sums.correct() == 2);
  const at::Tensor mean = at::cross_entropy_loss(logits.flatten(0, 1), tokens.flatten());
  CHECK(sums.loss() / static_cast<double>(sums.weight()) == doctest::Approx(mean.item<double>()));
  const MetricSums first = sums_of("language-model", logits.slice(0, 0, 1), tokens.slice(0, 0, 1), 2);
  const MetricSums second = sums_of("language-model", logits.slice(0, 1), tokens.slice(0, 1), 2);
  CHECK(first.loss() + second.loss() == doctest::Approx(sums.loss()));
}

TEST_CASE("the logits of a language model must have the sizes of its tokens") {
  const at::Tensor tokens = at::ones({2, 4}, at::kLong);
  const Task& task = find_task("language-model");
  CHECK_THROWS_WITH_AS(task.loss_sum(at::zeros({2, 3, 9}), tokens),
                       "the network gives values [2, 3, 9] for tokens [2, 4]; export a network that gives "
                       "logits [batch, length, vocabulary] for its tokens",
                       UserError);
  CHECK_THROWS_AS(task.loss_sum(at::zeros({2, 4}), tokens), UserError);
}

TEST_CASE("an answer is correct if argmax gives it, even if several values are largest") {
  for (const std::int64_t classes : {1, 2, 7, 255, 256, 257, 1000}) {
    for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
      CAPTURE(classes);
      CAPTURE(type);
      const at::Tensor few = at::randint(0, 4, {3, 41, classes}, at::kFloat).to(type);  // many ties
      const at::Tensor all = at::randn({3, 41, classes}).to(type);
      for (const at::Tensor& logits : {few, all, all.transpose(0, 1)}) {
        const at::Tensor best = logits.argmax(-1);
        const at::Tensor drawn = at::randint(0, classes, best.sizes(), at::kLong);
        const at::Tensor answers = at::where(at::rand(best.sizes()).lt(0.5), best, drawn);
        CHECK(at::equal(count_correct(logits, answers), best.eq(answers).sum()));
        CHECK(
            at::equal(count_correct(logits, answers, 0), best.eq(answers).logical_and(answers.ne(0)).sum()));
      }
    }
  }
}

TEST_CASE("loss, gradient and correct tokens of a translation are those of positions with weight") {
  const models::Hyperparameters sizes{{"embedding", std::int64_t{6}},
                                      {"hidden", std::int64_t{5}},
                                      {"layers", std::int64_t{2}},
                                      {"dropout", 0.0}};
  const auto network = networks::build_network(
      "seq2seq", sizes,
      {.image = {}, .vocabulary = 9, .target_vocabulary = 8, .source_length = 5, .target_length = 4}, 3,
      at::kDouble);
  const networks::Activations inputs{at::tensor({4, 5, 6, 3, 7, 0}, at::kLong).view({2, 3}),
                                     at::tensor({1, 4, 5, 2, 1, 6, 2, 0}, at::kLong).view({2, 4})};
  const at::Tensor targets = at::tensor({4, 5, 7, 2, 6, 2, 0, 0}, at::kLong).view({2, 4});
  const Task& task = find_task("translation");
  const at::Tensor positions = task.positions(targets);
  CHECK(at::equal(positions, at::tensor({0, 1, 2, 3, 4, 5}, at::kLong)));
  networks::ForwardContext some;
  some.positions = positions;
  const at::Tensor all_logits = network.forward(inputs).front();
  const at::Tensor logits = network.forward(inputs, some).front();
  const at::Tensor answers = targets.flatten().index_select(0, positions);
  REQUIRE(logits.sizes() == at::IntArrayRef({6, 8}));
  CHECK(at::equal(task.counts[0].of({logits}, answers), task.counts[0].of({all_logits}, targets)));
  const at::Tensor loss = task.loss_sum(logits, answers), of_all = task.loss_sum(all_logits, targets);
  CHECK(loss.item<double>() == doctest::Approx(of_all.item<double>()).epsilon(1e-14));
  const auto values = network.parameter_values();
  const auto gradients = torch::autograd::grad({loss}, values),
             gradients_of_all = torch::autograd::grad({of_all}, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(at::allclose(gradients[i], gradients_of_all[i], 1e-12, 1e-14));
}

TEST_CASE("metrics add up over batches, also additional ones by name") {
  const at::Tensor logits = at::zeros({2, 3});
  const at::Tensor labels = at::tensor({0, 1}, at::kLong);
  const Task& task = find_task("classification");
  MetricSums sums(task);
  for (int batch = 0; batch < 3; ++batch) {
    sums.add(task.loss_sum(logits, labels), {logits}, labels, 2);
    sums.add("bleu_1", 3, 5);
  }
  sums.add("bleu_2", 1, 4);
  CHECK(sums.loss() == doctest::Approx(6 * std::log(3.)));
  CHECK(sums.weight() == 6);
  const auto json = to_json(sums, "test");
  REQUIRE(json.size() == 4);
  CHECK(json[1]["name"] == "correct");
  CHECK(json[2].dump() == R"({"phase":"test","name":"bleu_1","sum":9.0,"weight":15})");
  CHECK(json[3].dump() == R"({"phase":"test","name":"bleu_2","sum":1.0,"weight":4})");
}

TEST_CASE("an unknown task is an error") {
  CHECK_THROWS_WITH_AS(find_task("regresion"), doctest::Contains("there is no task \"regresion\""),
                       UserError);
}

}  // namespace trainyard::runner::task_test
