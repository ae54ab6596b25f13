// Stale gradients on a quadratic, whose limits of stability are known in closed form.
#include "runner/optimizer/replayed_servers.h"

#include <array>
#include <cmath>
#include <numbers>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "experiments/protocol/server_log.h"
#include "models/chain.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::replayed_servers_test {

constexpr std::int64_t updates = 8000;

// The log of one server and `replicas` equally fast ones: each update but the first ones misses all others.
ServerEvents log_of(int replicas) {
  ServerEvents events;
  const auto add = [&](std::int64_t update, bool applied) {
    if (update >= updates) return;
    const auto replica = static_cast<int>(update % replicas);
    events.push_back(experiments::number_of({update, replica, applied}));
  };
  for (int replica = 0; replica < replicas; ++replica) add(replica, false);
  for (std::int64_t update = 0; update < updates; ++update) {
    add(update, true);
    add(update + replicas, false);
  }
  return events;
}

// |w| after all updates of w²/2 from w = 1.
double trained(int staleness, double learning_rate, double momentum) {
  models::InputShape input;
  input.image = {1, 1, 1};
  const models::Graph graph = models::Chain(input).flatten().linear(1, false).graph();
  const networks::Network network = networks::build_network(graph, {.seed = 1, .dtype = at::kDouble});
  experiments::Strategy strategy{.kind = "parameter-server", .replicas = staleness + 1, .servers = 1};
  Update update =
      replayed_update({.kind = "sgd", .learning_rate = learning_rate, .momentum = momentum}, network, {},
                      strategy, [&] { return std::vector<ServerEvents>{log_of(staleness + 1)}; });
  // The first weight is drawn, and the dynamics are linear.
  const double first = std::abs(network.parameter_values().front().item<double>());
  update.optimizer->set_learning_rate(learning_rate);
  update.order->begin_epoch(updates);
  while (update.order->next())
    update.optimizer->update({network.parameter_values().front().detach().clone()}, std::nullopt);
  return std::abs(network.parameter_values().front().item<double>()) / first;
}

TEST_CASE("a quadratic is stable up to the learning rate of its staleness") {
  constexpr std::array limits_with_momentum{3.8, 0.1, 0.0513, 0.0348, 0.0265, 0.0215, 0.0182};
  for (int staleness = 0; staleness < static_cast<int>(limits_with_momentum.size()); ++staleness) {
    CAPTURE(staleness);
    const double limit = 2 * std::sin(std::numbers::pi / (4 * staleness + 2));
    CHECK(trained(staleness, 0.95 * limit, 0) < 1e-6);
    CHECK_FALSE(trained(staleness, 1.05 * limit, 0) < 1e6);  // it may also not be a number
    const double with_momentum = limits_with_momentum[static_cast<std::size_t>(staleness)];
    CHECK(trained(staleness, 0.95 * with_momentum, 0.9) < 1e-6);
    CHECK_FALSE(trained(staleness, 1.05 * with_momentum, 0.9) < 1e6);
  }
}

}  // namespace trainyard::runner::replayed_servers_test
