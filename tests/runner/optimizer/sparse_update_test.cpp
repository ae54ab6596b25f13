// Sparse gradients: the update equals that of the dense kernel with zeros in the other rows.
#include "runner/optimizer/sparse_update.h"

#include <ATen/ATen.h>

#include "runner/gradients/clipping.h"
#include "runner/gradients/sparse_gradient.h"
#include "runner/optimizer/optimizer.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::sparse_update_test {

constexpr std::int64_t matrix_rows = 300, columns = 37;

at::Tensor first_values() {
  return at::arange(matrix_rows * columns, at::kDouble).sin().to(at::kFloat).view({matrix_rows, columns});
}

// The rows with a gradient: some, the outermost, all, none.
at::Tensor rows_of_step(int step) {
  at::Tensor all = at::arange(matrix_rows, at::kLong);
  if (step == 0) return all.slice(0, 5, 200, 7).contiguous();
  if (step == 1) return at::tensor({0L, 1L, 150L, static_cast<long>(matrix_rows - 1)}, at::kLong);
  if (step == 2) return all;
  if (step == 3) return all.slice(0, 0, 0);
  return all.slice(0, step, matrix_rows, 3);
}

at::Tensor gradient_of_step(int step) {
  const at::Tensor taken = rows_of_step(step);
  const at::Tensor values = (at::arange(taken.size(0) * columns, at::kDouble) * (step + 1))
                                .cos()
                                .to(at::kFloat)
                                .view({-1, columns});
  return at::sparse_coo_tensor(taken.unsqueeze(0), values, {matrix_rows, columns})._coalesced_(true);
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// The largest difference of parameters and state between eight sparse and eight dense steps.
double difference_after_steps(const experiments::Optimizer& settings) {
  const at::Tensor ours = first_values(), theirs = first_values();
  const auto by_rows = make_optimizer(settings, {ours}), dense = make_optimizer(settings, {theirs});
  for (int step = 0; step < 8; ++step) {
    if (step == 5) by_rows->set_learning_rate(0.003);
    if (step == 5) dense->set_learning_rate(0.003);
    const at::Tensor gradient = gradient_of_step(step);
    by_rows->step({gradient});
    dense->step({whole(gradient)});
  }
  std::vector<double> differences{difference(ours, theirs)};
  CHECK(difference(ours, first_values()) > 0.001);
  for (std::size_t k = 0; k < dense->state().size(); ++k)
    differences.push_back(difference(by_rows->state()[k][0], dense->state()[k][0]));
  return at::tensor(differences, at::kDouble).max().item<double>();  // NaN if any difference is NaN
}

TEST_CASE("a sparse step equals that of the dense kernel to rounding, for all optimizers") {
  CHECK(difference_after_steps({.kind = "sgd", .learning_rate = 0.1, .momentum = 0}) < 1e-6);
  CHECK(difference_after_steps({.kind = "sgd", .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01}) <
        1e-6);
  CHECK(difference_after_steps({.kind = "adam", .learning_rate = 0.01, .weight_decay = 0.02}) < 1e-6);
  CHECK(difference_after_steps({.kind = "adamw", .learning_rate = 0.01, .weight_decay = 0.02}) < 1e-6);
}

TEST_CASE("parts of a matrix are updated separately, whatever rows they begin and end with") {
  const at::Tensor gradient = gradient_of_step(0);
  const at::Tensor listed = gradient._indices(), values = gradient._values();
  const GivenRows given{listed.const_data_ptr<std::int64_t>(), values.const_data_ptr<float>(),
                        listed.size(1)};
  const SgdStep step{.learning_rate = 0.5, .momentum = 0, .weight_decay = 0, .first = true};
  const at::Tensor together = first_values(), in_parts = first_values();
  update_rows(step, {0, matrix_rows, columns}, together.mutable_data_ptr<float>(), nullptr, given);
  for (const auto& [begin, end] : {std::pair{0, 5}, {5, 6}, {6, 12}, {12, 250}, {250, 300}})
    update_rows(step, {begin, end, columns}, in_parts.mutable_data_ptr<float>(), nullptr, given);
  CHECK(at::equal(together, in_parts));
  CHECK(at::equal(together, first_values() - whole(gradient) * 0.5));
}

TEST_CASE("a skipped sparse step changes nothing") {
  for (const char* kind : {"sgd", "adam"}) {
    const at::Tensor parameter = first_values();
    const auto optimizer = make_optimizer({.kind = kind, .learning_rate = 0.1, .momentum = 0.9}, {parameter});
    optimizer->step({gradient_of_step(0)}, at::ones({}));
    CHECK(at::equal(parameter, first_values()));
    CHECK(optimizer->state()[0][0].abs().max().item<double>() == 0);
    optimizer->step({gradient_of_step(0)}, at::zeros({}));
    CHECK_FALSE(at::equal(parameter, first_values()));
  }
}

TEST_CASE("sparse gradients become dense if they are in float64 or not in row order") {
  const experiments::Optimizer settings{.kind = "adam", .learning_rate = 0.01};
  const at::Tensor ours = first_values().to(at::kDouble), theirs = ours.clone();
  make_optimizer(settings, {ours})->step({gradient_of_step(0).to(at::kDouble)});
  make_optimizer(settings, {theirs})->step({whole(gradient_of_step(0)).to(at::kDouble)});
  CHECK(at::equal(ours, theirs));
}

TEST_CASE("sparse gradients are clipped by the same norm as dense ones, and can be written as dense") {
  const at::Tensor gradient = gradient_of_step(1), expected = whole(gradient).clone();
  const auto alone = [](double own) { return own; };
  CHECK(clip_gradients({gradient}, 0.5, alone) == doctest::Approx(clip_gradients({expected}, 0.5, alone)));
  CHECK(difference(whole(gradient), expected) < 1e-7);
  for (int step = 0; step < 5; ++step) {
    const at::Tensor into = at::ones({matrix_rows, columns}), turned = at::ones({columns, matrix_rows}).t();
    write_whole(gradient_of_step(step), into);
    write_whole(gradient_of_step(step), turned);
    CHECK(at::equal(into, whole(gradient_of_step(step))));
    CHECK(at::equal(turned, into));
  }
}

}  // namespace trainyard::runner::sparse_update_test
