#include "runner/optimizer/learning_rate.h"

#include <array>
#include <cmath>
#include <numbers>

#include "base/named_row.h"

namespace trainyard::runner {

namespace {

// What the first learning rate is multiplied with after so many whole epochs.
double constant(const experiments::Run&, double) {
  return 1;
}

double step(const experiments::Run& run, double done) {
  const auto every = static_cast<double>(run.optimizer.schedule_epochs);
  return std::pow(run.optimizer.schedule_factor, std::floor(done / every));
}

double cosine(const experiments::Run& run, double done) {
  return (1 + std::cos(std::numbers::pi * done / static_cast<double>(run.epochs))) / 2;
}

struct Row {
  const char* name;
  double (*factor)(const experiments::Run&, double done);
};

constexpr std::array schedules{Row{"constant", constant}, Row{"step", step}, Row{"cosine", cosine}};

}  // namespace

double learning_rate_at(const experiments::Run& run, std::int64_t epoch) {
  const Row& row = models::named_row(schedules, &Row::name, "learning rate schedule", run.optimizer.schedule);
  return experiments::effective_learning_rate(run) * row.factor(run, static_cast<double>(epoch - 1));
}

}  // namespace trainyard::runner
