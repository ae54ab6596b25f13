#include "runner/optimizer/grouped_optimizer.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace trainyard::runner {

std::vector<at::Tensor> chosen(const std::vector<at::Tensor>& all, const std::vector<std::size_t>& places) {
  std::vector<at::Tensor> some;
  if (all.empty()) return some;
  for (const std::size_t place : places) some.push_back(all[place]);
  return some;
}

namespace {

struct Group {
  models::GroupFactors factors;
  std::vector<std::size_t> places;  // of its parameters
  std::unique_ptr<Optimizer> optimizer = {};
};

class GroupedOptimizer final : public Optimizer {
 public:
  GroupedOptimizer(const experiments::Optimizer& settings, const std::vector<at::Tensor>& parameters,
                   const std::vector<models::GroupFactors>& factors, const ZerosLike& zeros,
                   const MakeGroup& make) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      auto group = std::ranges::find(groups_, factors[i], &Group::factors);
      if (group == groups_.end())
        group = groups_.insert(groups_.end(), {.factors = factors[i], .places = {}});
      group->places.push_back(i);
    }
    std::vector<std::vector<at::Tensor>>
        rows;  // of all parameters: the memory of a row may be shared as a whole
    for (Group& group : groups_) {
      std::size_t row = 0;
      const auto zeros_of_group = [&](const std::vector<at::Tensor>&) {
        if (row == rows.size()) rows.push_back(zeros(parameters));
        return chosen(rows[row++], group.places);
      };
      experiments::Optimizer own = settings;
      own.learning_rate *= group.factors.learning_rate;
      own.weight_decay *= group.factors.weight_decay;
      group.optimizer = make(own, chosen(parameters, group.places), zeros_of_group);
    }
  }
  void update(const std::vector<at::Tensor>& gradients, const std::optional<at::Tensor>& found_inf) override {
    for (const Group& group : groups_) group.optimizer->update(chosen(gradients, group.places), found_inf);
  }
  void set_learning_rate(double learning_rate) override {
    for (const Group& group : groups_)
      group.optimizer->set_learning_rate(learning_rate * group.factors.learning_rate);
  }
  void restore_step(std::int64_t steps) override {
    for (const Group& group : groups_) group.optimizer->restore_step(steps);
  }
  std::vector<std::vector<at::Tensor>> state() const override {
    std::size_t parameters = 0;
    for (const Group& group : groups_) parameters += group.places.size();
    std::vector<std::vector<at::Tensor>> all;
    for (const Group& group : groups_) {
      const std::vector<std::vector<at::Tensor>> own = group.optimizer->state();
      all.resize(own.size(), std::vector<at::Tensor>(parameters));
      for (std::size_t row = 0; row < own.size(); ++row)
        for (std::size_t i = 0; i < group.places.size(); ++i) all[row][group.places[i]] = own[row][i];
    }
    return all;
  }

 private:
  std::vector<Group> groups_;
};

}  // namespace

std::unique_ptr<Optimizer> grouped_optimizer(const experiments::Optimizer& settings,
                                             const std::vector<at::Tensor>& parameters,
                                             const std::vector<models::GroupFactors>& factors,
                                             const ZerosLike& zeros, const MakeGroup& make) {
  return std::make_unique<GroupedOptimizer>(settings, parameters, factors, zeros, make);
}

}  // namespace trainyard::runner
