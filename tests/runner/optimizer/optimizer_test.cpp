// Expected values are from PyTorch 2.13 in float64: its optimizers, schedulers and clip_grad_norm_.
#include "runner/optimizer/optimizer.h"

#include <cmath>

#include "runner/gradients/clipping.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace {

using namespace trainyard;
using namespace trainyard::runner;

void check_close(const at::Tensor& found, const std::vector<double>& expected) {
  const at::Tensor flat = found.flatten();
  REQUIRE(flat.numel() == static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(flat[static_cast<std::int64_t>(i)].item<double>() ==
          doctest::Approx(expected[i]).epsilon(1e-12).scale(0));
  }
}

// The parameter (1, −2, 3) after 6 steps with gradients sin(step + index). The learning rate is 0.1, and 0.02
// from step 4 on.
at::Tensor after_six_steps(const experiments::Optimizer& settings) {
  at::Tensor parameter = at::tensor({1., -2., 3.}, at::kDouble);
  const auto optimizer = make_optimizer(settings, {parameter});
  for (int step = 0; step < 6; ++step) {
    if (step == 3) optimizer->set_learning_rate(0.02);
    optimizer->step({at::tensor({std::sin(step), std::sin(step + 1), std::sin(step + 2)}, at::kDouble)});
  }
  return parameter;
}

at::Tensor after_six_steps(const std::string& kind, double momentum, double weight_decay) {
  return after_six_steps(experiments::Optimizer{
      .kind = kind, .learning_rate = 0.1, .momentum = momentum, .weight_decay = weight_decay});
}

// The rate of each step.
std::vector<double> rates(const experiments::Run& run, std::int64_t steps = 1) {
  std::vector<double> each;
  for (std::int64_t epoch = 1; epoch <= run.epochs; ++epoch)
    for (std::int64_t step = 0; step < steps; ++step)
      each.push_back(learning_rate_at(find_schedule(run.optimizer.schedule), run, {epoch, step, steps}));
  return each;
}

void check_rates(const experiments::Run& run, const std::vector<double>& expected) {
  check_close(at::tensor(rates(run), at::kDouble), expected);
}

}  // namespace

TEST_CASE("sgd, adam and adamw step as in PyTorch, even after a change of the learning rate") {
  check_close(after_six_steps("sgd", 0.9, 0.01),
              {0.7005691865476591, -2.394800079686774, 2.8232692199864386});
  check_close(after_six_steps("adam", 0, 0.02), {0.7173290622939292, -2.279587512749028, 2.8166282906952054});
  check_close(after_six_steps("adamw", 0, 0.02),
              {0.8139682064277636, -2.2694495860135486, 2.811666385372489});
  check_close(after_six_steps("adamw", 0, 0), {0.8207931371367989, -2.284754205287503, 2.8324415026719727});
}

TEST_CASE("the learning rates of an epoch are those of StepLR and CosineAnnealingLR") {
  experiments::Run run;
  run.epochs = 7;
  run.optimizer.learning_rate = 0.4;
  CHECK(rates(run) == std::vector<double>(7, 0.4));
  run.optimizer.schedule = "step";
  run.optimizer.schedule_epochs = 3;
  run.optimizer.schedule_factor = 0.5;
  check_rates(run, {0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.1});
  run.optimizer.schedule = "cosine";
  check_rates(run, {0.4, 0.38019377358048384, 0.32469796037174675, 0.2445041867912629, 0.15549581320873715,
                    0.07530203962825331, 0.019806226419516192});
}

TEST_CASE("adam and adamw have the betas and the epsilon of PyTorch") {
  experiments::Optimizer settings{.kind = "adamw",
                                  .learning_rate = 0.1,
                                  .momentum = 0,
                                  .weight_decay = 0.02,
                                  .beta1 = 0.8,
                                  .beta2 = 0.95,
                                  .epsilon = 1e-3};
  check_close(after_six_steps(settings), {0.8127858023213754, -2.2579170681162206, 2.827946076574188});
  settings.kind = "adam";
  settings.weight_decay = 0;
  check_close(after_six_steps(settings), {0.8195978403301205, -2.2732141922254807, 2.8487442153674167});
}

TEST_CASE("a warm-up and a cosine to a lowest rate are LinearLR and CosineAnnealingLR") {
  experiments::Run run;
  run.epochs = 2;
  run.optimizer.learning_rate = 0.4;
  run.optimizer.learning_rate_min = 0.04;
  run.optimizer.warmup_steps =
      3;  // LinearLR(start_factor=1/3, total_iters=2), then CosineAnnealingLR(T_max=7)
  run.optimizer.schedule = "cosine-by-step";
  check_close(at::tensor(rates(run, 5), at::kDouble),
              {0.13333333333333333, 0.26666666666666666, 0.4, 0.4, 0.38217439622243543, 0.33222816433457203,
               0.2600537681121366, 0.17994623188786343, 0.10777183566542797, 0.05782560377756457});
  run.epochs = 4;
  run.optimizer.learning_rate_min = 0.1;
  run.optimizer.warmup_steps = 0;
  run.optimizer.schedule = "cosine";
  check_rates(run, {0.4, 0.35606601717798214, 0.25, 0.1439339828220179});
  run.optimizer.warmup_steps = 2;  // an epoch has two steps
  const std::vector<double> each = rates(run, 2);
  CHECK(std::vector(each.begin(), each.begin() + 4) ==
        std::vector{0.2, 0.4, 0.35606601717798214, 0.35606601717798214});
  run.optimizer.schedule = "constant";
  run.optimizer.learning_rate_min = 0;
  CHECK(rates(run, 1) == std::vector{0.2, 0.4, 0.4, 0.4});
}

TEST_CASE("a learning rate that is scaled with the replicas' batch is scaled in every epoch") {
  experiments::Run run;
  run.epochs = 2;
  run.optimizer.learning_rate = 0.1;
  run.batch_size = 32;
  run.batch_per = "replica";
  run.strategy.replicas = 4;
  run.global_batch = 128;
  run.learning_rate_scaling = "linear";
  run.optimizer.schedule = "cosine";
  check_rates(run, {0.4, 0.2});
}

TEST_CASE("gradients are clipped by their common norm, on any number of stages") {
  const auto first = [] { return at::tensor({1., -2., 3., 0.5}, at::kDouble).view({2, 2}); };
  const auto second = [] { return at::tensor({0.25, -4., 1.5}, at::kDouble); };
  const std::vector<double> first_clipped{0.43810787756290515, -0.8762157551258103, 1.3143236326887155,
                                          0.21905393878145257};
  const std::vector<double> second_clipped{0.10952696939072629, -1.7524315102516206, 0.6571618163443578};
  constexpr double norm = 5.706356105256663;

  SUBCASE("on one device") {
    const std::vector<at::Tensor> gradients{first(), second()};
    CHECK(clip_gradients(gradients, 2.5, [](double own) { return own; }) ==
          doctest::Approx(norm).epsilon(1e-14));
    check_close(gradients[0], first_clipped);
    check_close(gradients[1], second_clipped);
  }
  SUBCASE("on two stages, each with the squares of the other") {
    const at::Tensor ours = first(), theirs = second();
    CHECK(clip_gradients({ours}, 2.5, [](double own) { return own + 0.0625 + 16 + 2.25; }) ==
          doctest::Approx(norm).epsilon(1e-14));
    CHECK(clip_gradients({theirs}, 2.5, [](double own) { return own + 1 + 4 + 9 + 0.25; }) ==
          doctest::Approx(norm).epsilon(1e-14));
    check_close(ours, first_clipped);
    check_close(theirs, second_clipped);
  }
  SUBCASE("unchanged if the norm is small enough") {
    const at::Tensor gradient = first();
    clip_gradients({gradient}, 100, [](double own) { return own; });
    CHECK(at::equal(gradient, first()));
  }
  SUBCASE("a stage without parameters still gets the norm") {
    CHECK(clip_gradients({}, 1, [](double own) { return own + 4; }) == 2);
  }
}

TEST_CASE("weight decay of matrices leaves out parameters with fewer than two dimensions") {
  const std::vector<at::Tensor> parameters{at::ones({2, 2}), at::ones({2}), at::ones({2, 1, 3, 3})};
  const std::vector<models::GroupFactors> given{{1, 1}, {0.5, 1}, {1, 0.5}};
  experiments::Optimizer settings{.kind = "adamw", .momentum = 0, .weight_decay = 0.1};
  CHECK((group_factors(settings, parameters, given) == given));
  settings.weight_decay_of = "matrices";
  const std::vector<models::GroupFactors> matrices{{1, 1}, {0.5, 0}, {1, 0.5}};
  CHECK((group_factors(settings, parameters, given) == matrices));
}

TEST_CASE("parameter groups have factors of the learning rate and of the weight decay, as in PyTorch") {
  const std::vector<std::pair<experiments::Optimizer, std::vector<double>>> cases{
      {{.kind = "sgd", .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.02},
       {0.6929837746165542, -2.377732657245438, 2.79992513231012, 0.34892377179680556}},
      {{.kind = "adamw", .learning_rate = 0.1, .momentum = 0, .weight_decay = 0.02},
       {0.8139682064277636, -2.2694495860135486, 2.811666385372489, 0.3844218143321711}}};
  for (const auto& each : cases) {
    const at::Tensor first = at::tensor({1., -2., 3.}, at::kDouble), second = at::tensor({0.5}, at::kDouble);
    const auto optimizer =
        make_optimizer(each.first, {first, second},
                       {{.learning_rate = 1, .weight_decay = 1}, {.learning_rate = 0.5, .weight_decay = 0}});
    for (int step = 0; step < 6; ++step) {
      if (step == 3) optimizer->set_learning_rate(0.02);
      optimizer->step({at::tensor({std::sin(step), std::sin(step + 1), std::sin(step + 2)}, at::kDouble),
                       at::tensor({std::cos(step)}, at::kDouble)});
    }
    check_close(at::cat({first, second}), each.second);
    for (const auto& row : optimizer->state()) {
      REQUIRE(row.size() == 2);
      CHECK((row[0].numel() == 3 || row[0].dim() == 0));
    }
  }
}
