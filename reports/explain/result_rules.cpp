#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/named_row.h"
#include "base/text.h"
#include "reports/explain/causes.h"
#include "reports/format/number_text.h"
#include "reports/format/words.h"
#include "reports/statistics/statistics.h"

namespace trainyard::reports {

namespace {

constexpr double half_of_two = 0.35;      // logarithm: a factor of 2 is 0.69 away from 1
constexpr double of_exact_factor = 0.05;  // factors of gradients are exact to 1e-7
constexpr double of_equal_rates = 0.02;
constexpr double least_batch = 1.2;  // a larger factor is another batch
constexpr double of_equal_statistics = 0.1;
constexpr double shared_share = 0.1;      // of a rank's samples; a sampler that pads shares fewer
constexpr double repeated_share = 0.01;   // of an epoch of the baseline; a larger one draws with replacement
constexpr double rounded_rest = 2e-5;     // float32 leaves 2e-7, float16 2e-4, bfloat16 2e-3
constexpr double of_own_gradient = 1e-3;  // the gradient is that of the rank alone
constexpr double unknown_rest = 0.05;     // the mean does not explain the gradient at all
constexpr double better_fit = 9;          // of the two models of the loss
constexpr double least_spread = 0.01;     // of the logarithms of weights
constexpr double all_samples = 0.99;      // of an epoch of the baseline; drop_last leaves out less
constexpr double discarded = 1.5;         // backward passes per kept one

bool near(double value, double wanted, double tolerance) {
  return value > 0 && std::abs(std::log(value / wanted)) < tolerance;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

std::string digits(double value) {
  return plain_number(value, 3);
}

double sum(const std::vector<double>& values) {
  return values.empty() ? NAN : std::accumulate(values.begin(), values.end(), 0.0);
}

std::string term(const Facts& facts, const std::string& name) {
  const std::string* text = value_or_null(facts.terms, name);
  return text == nullptr ? "" : *text;
}

double ranks_of(const ExplainedPair& pair) {
  return static_cast<double>(pair.arm.ranks);
}

// Median over the watched steps that have the number.
double middle(const Facts& facts, double WatchedStep::*value) {
  std::vector<double> found;
  for (const WatchedStep& step : facts.steps)
    if (std::isfinite(step.*value)) found.push_back(step.*value);
  return median(found);
}

// The loss given to backward() against that of the baseline: geometric mean over the first steps.
double loss_ratio(const ExplainedPair& pair) {
  std::vector<double> logarithms;
  for (const WatchedStep& step : pair.arm.steps)
    for (const WatchedStep& other : pair.baseline.steps)
      if (constexpr std::int64_t last = 3; step.step == other.step && step.step <= last) {
        const double own = sum(step.losses) / ranks_of(pair);
        const double theirs = sum(other.losses) / static_cast<double>(pair.baseline.ranks);
        if (own > 0 && theirs > 0) logarithms.push_back(std::log(own / theirs));
      }
  return logarithms.empty() ? NAN : std::exp(mean_of(logarithms));
}

double kept_per_step(const Facts& facts) {
  return facts.steps.empty() || facts.steps.front().kept.empty() ? NAN : facts.steps.front().kept.front();
}

double backwards_per_kept(const Facts& facts) {
  double all = 0, kept = 0;
  for (const WatchedStep& step : facts.steps)
    if (!step.kept.empty() && !step.backwards.empty()) {
      all += step.backwards.front();
      kept += step.kept.front();
    }
  return kept > 0 ? all / kept : NAN;
}

bool sums_ranks(const ExplainedPair& pair) {
  return pair.arm.ranks > 1 &&
         near(middle(pair.arm, &WatchedStep::reduction), ranks_of(pair), of_exact_factor);
}

bool accumulates_undivided(const ExplainedPair& pair) {
  const double passes = kept_per_step(pair.arm);
  return passes > 1 && near(loss_ratio(pair), passes, half_of_two);
}

bool is_uncleared(const ExplainedPair& pair) {
  return pair.arm.uncleared && !pair.baseline.uncleared;
}

bool discards(const ExplainedPair& pair) {
  return backwards_per_kept(pair.arm) > discarded && !(backwards_per_kept(pair.baseline) > discarded);
}

std::optional<Finding> other_weights(const ExplainedPair& pair) {
  if (pair.arm.initial_weights.empty() || pair.baseline.initial_weights.empty() ||
      pair.arm.initial_weights == pair.baseline.initial_weights)
    return {};
  return Finding{fmt::format("the first weights are not those of {}", pair.name),
                 "call torch.manual_seed(seed) on each rank before the model is made"};
}

bool shares_data(const ExplainedPair& pair) {
  // Samples of different data sets have the same numbers.
  return pair.arm.overlap > shared_share && !(pair.baseline.repeated > repeated_share) &&
         pair.arm.equal_data != false;
}

std::optional<Finding> other_parameters(const ExplainedPair& pair) {
  std::vector<std::string> lack;
  std::ranges::set_difference(pair.arm.without_gradient, pair.baseline.without_gradient,
                              std::back_inserter(lack));
  if (lack.empty()) return {};
  constexpr std::size_t shown = 3;
  const std::size_t more = lack.size() > shown ? lack.size() - shown : 0;
  lack.resize(lack.size() - more);
  return Finding{fmt::format("parameters get no gradient at step 1, but have one in {}: {}{}", pair.name,
                             joined(lack), more > 0 ? fmt::format(" and {} more", more) : ""),
                 "check requires_grad of these parameters, and whether the forward pass uses them"};
}

std::optional<Finding> same_data(const ExplainedPair& pair) {
  if (!shares_data(pair)) return {};
  return Finding{
      fmt::format("two ranks have {} % of the samples of epoch 1 in common", digits(100 * pair.arm.overlap)),
      "divide one order among the ranks: DistributedSampler(dataset), with one seed on all ranks; but if "
      "samples are drawn at random, draw with another seed on each rank"};
}

std::optional<Finding> discarded_steps(const ExplainedPair& pair) {
  if (!discards(pair)) return {};
  return Finding{fmt::format("zero_grad() discards gradients: {} backward passes for each one that is kept",
                             digits(backwards_per_kept(pair.arm))),
                 "call optimizer.zero_grad() only once before or after each optimizer.step()"};
}

std::optional<Finding> uncleared_gradients(const ExplainedPair& pair) {
  if (!is_uncleared(pair)) return {};
  return Finding{"a step adds its gradients to those of the step before it",
                 "call optimizer.zero_grad() once per step, after optimizer.step()"};
}

std::optional<Finding> summed_gradients(const ExplainedPair& pair) {
  if (!sums_ranks(pair)) return {};
  return Finding{
      fmt::format("the gradients of the {} ranks are added, not averaged: {} times their mean{}",
                  pair.arm.ranks, digits(middle(pair.arm, &WatchedStep::reduction)),
                  contains(term(pair.arm, "optimizer"), "adam") ? "; with Adam this changes little" : ""),
      "divide the gradients by world_size after all_reduce, or remove the hook or all_reduce that adds them"};
}

std::optional<Finding> undivided_accumulation(const ExplainedPair& pair) {
  if (!accumulates_undivided(pair)) return {};
  const double passes = kept_per_step(pair.arm);
  const bool or_ranks = near(passes, ranks_of(pair), of_exact_factor) && pair.arm.ranks > 1;
  return Finding{fmt::format("a step has {} backward passes, and its loss is {} times that of {}",
                             digits(passes), digits(loss_ratio(pair)), pair.name),
                 fmt::format("divide the loss by the number of backward passes: (loss / {}).backward(){}",
                             digits(passes), or_ranks ? "; or do not multiply it by world_size" : "")};
}

std::optional<Finding> multiplied_loss(const ExplainedPair& pair) {
  if (pair.arm.ranks < 2 || accumulates_undivided(pair) ||
      !near(loss_ratio(pair), ranks_of(pair), half_of_two))
    return {};
  return Finding{
      fmt::format("the loss given to backward() is {} times that of {}", digits(loss_ratio(pair)), pair.name),
      "do not multiply the loss by world_size; if Trainer does it for a loss that ignores "
      "num_items_in_batch, "
      "set average_tokens_across_devices=False"};
}

// The largest part of a gradient that is not the mean of the ranks. NaN if each step of the baseline has one, too.
double largest_rest(const ExplainedPair& pair) {
  double largest = NAN;
  for (const WatchedStep& step : pair.arm.steps) largest = std::fmax(largest, step.rest);  // ignores NaN
  return middle(pair.baseline, &WatchedStep::rest) > rounded_rest ? NAN : largest;
}

// The ranks have gradients of their own: all of it, or what came after the exchange.
bool is_alone(const ExplainedPair& pair) {
  const double own = middle(pair.arm, &WatchedStep::own);
  return pair.arm.ranks > 1 && !is_uncleared(pair) && largest_rest(pair) > unknown_rest &&
         (pair.arm.equal_weights == false ||
          (std::isfinite(own) ? own < of_own_gradient : !pair.arm.equal_weights));
}

std::optional<Finding> not_averaged(const ExplainedPair& pair) {
  if (!is_alone(pair)) return {};
  if (pair.arm.equal_weights == true && term(pair.arm, "clip_norm") != "none")
    return Finding{"each rank clips its own gradient, before the gradients are averaged",
                   "call clip_grad_norm_ after the gradients of the ranks are averaged"};
  return Finding{
      fmt::format("the gradients of the ranks are not averaged: that of the optimizer is {} % off their mean",
                  digits(100 * largest_rest(pair))),
      "call the model through DistributedDataParallel, and leave no_sync() before the last backward pass"};
}

std::optional<Finding> different_rates(const ExplainedPair& pair) {
  if (pair.arm.equal_rates != false) return {};
  return Finding{"the ranks have different learning rates",
                 "call scheduler.step() on all ranks, not only on rank 0"};
}

std::optional<Finding> different_weights(const ExplainedPair& pair) {
  if (pair.arm.equal_weights != false || not_averaged(pair) || different_rates(pair)) return {};
  return Finding{"the ranks have different weights after an epoch",
                 "give all ranks the same first weights, by DistributedDataParallel(model) or a seed, and "
                 "the same optimizer"};
}

std::optional<Finding> divided_twice(const ExplainedPair& pair) {
  if (pair.arm.ranks < 2 || discards(pair)) return {};
  const double reduction = middle(pair.arm, &WatchedStep::reduction), ratio = loss_ratio(pair);
  const bool by_reduction = near(reduction, 1 / ranks_of(pair), of_exact_factor);
  if (!by_reduction && !near(ratio, 1 / ranks_of(pair), half_of_two)) return {};
  return Finding{by_reduction ? fmt::format("the gradient is {} of the mean of the ranks", digits(reduction))
                              : fmt::format("the loss given to backward() is {} of that of {}", digits(ratio),
                                            pair.name),
                 "do not divide by world_size: DistributedDataParallel already takes the mean"};
}

// Samples per step and learning rate are one decision, so there is one cause for both.
enum class Scaled { none, batch, both, rate };

Scaled scaled(const ExplainedPair& pair) {
  const double batch = pair.arm.step_samples() / pair.baseline.step_samples();
  const double rate = pair.arm.learning_rate / pair.baseline.learning_rate;
  if (discards(pair) || !std::isfinite(batch) || !std::isfinite(rate)) return Scaled::none;
  const bool other_batch = batch > least_batch || batch < 1 / least_batch;
  if (other_batch && near(rate, 1, of_exact_factor)) return Scaled::batch;
  if (other_batch && near(rate, batch, 2 * of_exact_factor)) return Scaled::both;
  return near(rate, 1, of_equal_rates) ? Scaled::none : Scaled::rate;
}

std::string batches_text(const ExplainedPair& pair) {
  return fmt::format("{} samples per step, {} has {}", digits(pair.arm.step_samples()), pair.name,
                     digits(pair.baseline.step_samples()));
}

std::optional<Finding> batch(const ExplainedPair& pair) {
  if (scaled(pair) != Scaled::batch) return {};
  const double ratio = pair.arm.step_samples() / pair.baseline.step_samples();
  const double passes = kept_per_step(pair.arm), before = kept_per_step(pair.baseline);
  const bool is_whole = near(ratio, ranks_of(pair), of_exact_factor) && pair.arm.ranks > 1;
  std::string how;
  if (passes > before)
    how = fmt::format(": {} backward passes per step, {} has {}", digits(passes), pair.name, digits(before));
  else if (is_whole)
    how = passes > 1 ? fmt::format(": each rank makes all {} backward passes", digits(passes))
                     : ": each rank takes the whole batch";
  return Finding{
      batches_text(pair) + how,
      fmt::format(
          "give each rank {} samples per step{}, or else multiply the learning rate by {}, with warm-up",
          digits(pair.baseline.step_samples() / ranks_of(pair)),
          passes > 1 && ratio > 1 ? fmt::format(": divide its accumulation steps by {}", digits(ratio)) : "",
          digits(ratio))};
}

std::optional<Finding> batch_and_rate(const ExplainedPair& pair) {
  if (scaled(pair) != Scaled::both) return {};
  return Finding{fmt::format("{}, and the learning rate is scaled alike: {} against {}", batches_text(pair),
                             digits(pair.arm.learning_rate), digits(pair.baseline.learning_rate)),
                 fmt::format("give each rank {} samples and keep the learning rate",
                             digits(pair.baseline.step_samples() / ranks_of(pair)))};
}

std::optional<Finding> learning_rate(const ExplainedPair& pair) {
  if (scaled(pair) != Scaled::rate) return {};
  const bool varies = pair.arm.schedule != "constant" || pair.baseline.schedule != "constant";
  return Finding{
      fmt::format("the learning rate{} is {}, {} has {}", varies ? " of the first step" : "",
                  digits(pair.arm.learning_rate), pair.name, digits(pair.baseline.learning_rate)),
      fmt::format(
          "use the learning rate {}{}", digits(pair.baseline.learning_rate),
          varies ? ", and the same schedule, counted in optimizer steps, whatever the number of ranks" : "")};
}

std::optional<Finding> scheduler_steps(const ExplainedPair& pair) {
  const double own = pair.arm.schedule_steps / pair.arm.epochs,
               other = pair.baseline.schedule_steps / pair.baseline.epochs;
  const double per_step = pair.arm.schedule_steps / pair.arm.steps_made /
                          (pair.baseline.schedule_steps / pair.baseline.steps_made);
  // A scheduler may step with the optimizer or once per epoch, and the arms may have other numbers of steps.
  if (!(own > 0) || !(other > 0) || near(own, other, half_of_two) || near(per_step, 1, half_of_two) ||
      discards(pair))
    return {};
  return Finding{
      fmt::format("the scheduler makes {} steps per epoch, {} has {}", digits(own), pair.name, digits(other)),
      "call scheduler.step() as often as in the other arm"};
}

std::optional<Finding> schedule(const ExplainedPair& pair) {
  const Facts &arm = pair.arm, &baseline = pair.baseline;
  const bool is_known = !arm.schedule.empty() && !baseline.schedule.empty();
  const bool has_steps = arm.steps_made == baseline.steps_made;  // with others the rates differ, too
  // Other parameter groups have another hash, too.
  const bool is_equal =
      arm.schedule == baseline.schedule || (!arm.rates.empty() && arm.rates == baseline.rates);
  if (!is_known || is_equal || !has_steps || scaled(pair) != Scaled::none || scheduler_steps(pair)) return {};
  std::string where = "in later steps";
  const auto [mine, theirs] = std::ranges::mismatch(arm.rates, baseline.rates);
  if (mine != arm.rates.end() && theirs != baseline.rates.end()) {
    const auto place = mine - arm.rates.begin();
    where = fmt::format("at the {} of epoch {}: {}, {} has {}", place % 2 == 0 ? "begin" : "end",
                        place / 2 + 1, digits(*mine), pair.name, digits(*theirs));
  }
  return Finding{
      "the learning rates differ " + where,
      "use the same schedule in both arms, counted in optimizer steps, whatever the number of ranks"};
}

std::optional<Finding> unseen_model(const ExplainedPair& pair) {
  if (!pair.arm.unseen_model || pair.baseline.unseen_model) return {};
  return Finding{"the model that trainyard.start() got is not called",
                 "call this model, as model(inputs), and not model.module(inputs)"};
}

std::optional<Finding> eval_mode(const ExplainedPair& pair) {
  if (!(pair.arm.eval_steps > 0) || pair.baseline.eval_steps > 0) return {};
  return Finding{fmt::format("the model is in eval() mode in {} steps", plain_number(pair.arm.eval_steps)),
                 "call model.train() before each epoch"};
}

// Terms that the file of the experiment can declare as wanted, so they come late.
std::optional<Finding> settings(const ExplainedPair& pair) {
  std::vector<std::string> differences;
  for (const std::string name : compared_terms) {
    const std::string own = term(pair.arm, name), other = term(pair.baseline, name);
    if (own != other && !own.empty() && !other.empty())
      differences.push_back(fmt::format("{} is {}, {} has {}", with_spaces(name), own, pair.name, other));
  }
  if (differences.empty()) return {};
  return Finding{joined(differences, {}, "; "), "use the same settings in both arms"};
}

// With a sum over all ranks the loss of a rank grows with its tokens. With a mean of each rank it does not.
std::optional<Finding> uneven_means(const ExplainedPair& pair) {
  if (pair.arm.ranks < 2 || accumulates_undivided(pair)) return {};
  double spread = 0, of_means = 0, of_sums = 0;
  for (const WatchedStep& step : pair.arm.steps) {
    if (step.losses.empty() || step.weights.empty() || step.kept != step.backwards) continue;
    std::vector<double> weights, losses;
    for (std::size_t i = 0; i < step.losses.size(); ++i) {
      weights.push_back(std::log(step.weights[i]));
      losses.push_back(std::log(step.losses[i]));
    }
    const double weight = mean_of(weights), loss = mean_of(losses);
    if (!std::isfinite(weight) || !std::isfinite(loss)) continue;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double x = weights[i] - weight, y = losses[i] - loss;
      spread += x * x;
      of_means += y * y;
      of_sums += (y - x) * (y - x);
    }
  }
  if (spread <= least_spread || of_means * better_fit >= of_sums) return {};
  return Finding{"each rank takes the mean of its own part, and the parts have different sizes",
                 std::string(even_means_advice) + "; with Trainer set average_tokens_across_devices=True"};
}

std::optional<Finding> set_epoch(const ExplainedPair& pair) {
  if (!pair.arm.repeats_order || !pair.baseline.order_known || pair.baseline.repeats_order) return {};
  if (contains(pair.arm.order, "without shuffling") || contains(pair.arm.order, "SequentialSampler"))
    return Finding{"the samples are not shuffled", "pass shuffle=True to DistributedSampler"};
  return Finding{"all epochs have the same order of samples",
                 "call sampler.set_epoch(epoch) before each epoch"};
}

// Whether another batch explains this factor.
bool follows_from_batch(const ExplainedPair& pair, double factor) {
  const Scaled how = scaled(pair);
  return (how == Scaled::batch || how == Scaled::both) &&
         near(factor, pair.arm.step_samples() / pair.baseline.step_samples(), of_equal_statistics);
}

std::optional<Finding> fewer_samples(const ExplainedPair& pair) {
  const double ratio = pair.arm.epoch_samples / pair.baseline.epoch_samples;
  if (discards(pair) || !(ratio < all_samples) || follows_from_batch(pair, ratio)) return {};
  return Finding{
      fmt::format("an epoch has {} samples, {} has {}", plain_number(pair.arm.epoch_samples, 9), pair.name,
                  plain_number(pair.baseline.epoch_samples, 9)),
      near(ratio, 1 / ranks_of(pair), of_exact_factor)
          ? "divide the data among the ranks once: by DistributedSampler or by the trainer, not by both"
          : "do not leave out the last batch: drop_last=False, or a number of samples that fills all "
            "batches"};
}

std::optional<Finding> different_data(const ExplainedPair& pair) {
  if (pair.arm.equal_data != false || fewer_samples(pair)) return {};  // each rank has a part by hand
  return Finding{
      "the data sets of the ranks differ before a sampler divides them",
      "split the data with one seed: random_split(data, sizes, torch.Generator().manual_seed(0)); and let a "
      "sampler divide it among the ranks"};
}

std::optional<Finding> padded_sampler(const ExplainedPair& pair) {
  const double ratio = pair.arm.epoch_samples / pair.baseline.epoch_samples;
  if (shares_data(pair) || !(ratio > 1) || follows_from_batch(pair, ratio)) return {};
  return Finding{fmt::format("an epoch has {} samples, {} has {}: some are repeated",
                             plain_number(pair.arm.epoch_samples, 9), pair.name,
                             plain_number(pair.baseline.epoch_samples, 9)),
                 "take a number of samples that fills all batches; or drop_last=True in DistributedSampler, "
                 "which leaves out the rest"};
}

std::optional<Finding> batch_norm_samples(const ExplainedPair& pair) {
  const double own = pair.arm.batch_norm_samples, other = pair.baseline.batch_norm_samples;
  if (!(own > 0) || !(other > 0) || near(own, other, of_equal_statistics)) return {};
  if (follows_from_batch(pair, own / other)) return {};
  const bool is_local = own < other && pair.arm.ranks > 1;
  return Finding{
      fmt::format("batch normalisation takes its statistics from {} samples per forward pass, {} from {}",
                  digits(own), pair.name, digits(other)),
      is_local ? "use nn.SyncBatchNorm.convert_sync_batchnorm(model) on GPUs, or GroupNorm in both arms"
               : "use the same number of samples per forward pass in both arms"};
}

std::optional<Finding> same_augmentation(const ExplainedPair& pair) {
  if (pair.arm.same_in_fetch.empty()) return {};
  return Finding{fmt::format("all ranks draw the same random numbers for their samples ({})",
                             joined(pair.arm.same_in_fetch)),
                 "add the rank to the seed of augmentation: random.seed(seed + rank)"};
}

std::optional<Finding> same_dropout(const ExplainedPair& pair) {
  if (pair.arm.same_in_forward.empty()) return {};
  return Finding{"all ranks draw the same dropout masks, because they have the same seed",
                 "call torch.manual_seed(seed + rank) after DistributedDataParallel(model)"};
}

std::optional<Finding> lossy_exchange(const ExplainedPair& pair) {
  const double rest = largest_rest(pair);
  if (!(rest > rounded_rest) || is_alone(pair) || is_uncleared(pair)) return {};
  return Finding{
      fmt::format("the averaged gradient differs from the mean of the ranks by {} %: it is {} on the way",
                  digits(100 * rest), rest > unknown_rest ? "compressed" : "rounded to 16 bits"),
      "remove a communication hook, as bf16_compress_hook or powerSGD_hook, or average in float32"};
}

double validated(const ExplainedPair& pair) {
  return pair.arm.validation_weight / pair.baseline.validation_weight;
}

std::optional<Finding> validation_repeated(const ExplainedPair& pair) {
  if (!(validated(pair) > 1)) return {};
  return Finding{
      fmt::format("validation counts {} samples or tokens, {} has {}",
                  plain_number(pair.arm.validation_weight, 9), pair.name,
                  plain_number(pair.baseline.validation_weight, 9)),
      "validate each sample on one rank only, and record the rank's own number of samples with its sum"};
}

constexpr double hardly_any = 0.05, most = 0.95;  // of the baseline's samples

std::optional<Finding> mean_of_means(const ExplainedPair& pair) {
  if (validation_repeated(pair) || !(validated(pair) < hardly_any)) return {};
  return Finding{fmt::format("validation counts {} values, {} has {}: a mean of means",
                             plain_number(pair.arm.validation_weight, 9), pair.name,
                             plain_number(pair.baseline.validation_weight, 9)),
                 "give run.validation() the sum over samples and their number"};
}

std::optional<Finding> metric_of_one_rank(const ExplainedPair& pair) {
  if (validation_repeated(pair) || !(validated(pair) >= hardly_any && validated(pair) < most)) return {};
  return Finding{
      fmt::format("validation counts {} of the {} samples of {}", plain_number(pair.arm.validation_weight, 9),
                  plain_number(pair.baseline.validation_weight, 9), pair.name),
      "validate each sample on one rank: divide the data once, and record the part of each rank"};
}

std::optional<Finding> train_mode(const ExplainedPair& pair) {
  if (!(pair.arm.train_mode_passes > 0) || pair.baseline.train_mode_passes > 0) return {};
  return Finding{"the model is in train() mode in forward passes without gradients, as in validation",
                 "call model.eval() before validation"};
}

constexpr std::array all_rules{Rule{"eval-mode", false, eval_mode, true},
                               Rule{"weights", false, other_weights},
                               Rule{"other-parameters", false, other_parameters},
                               Rule{"same-data", false, same_data},
                               Rule{"discarded-steps", false, discarded_steps},
                               Rule{"uncleared-gradients", false, uncleared_gradients},
                               Rule{"summed-gradients", false, summed_gradients},
                               Rule{"undivided-accumulation", false, undivided_accumulation},
                               Rule{"divided-twice", false, divided_twice},
                               Rule{"multiplied-loss", false, multiplied_loss},
                               Rule{"not-averaged", false, not_averaged},
                               Rule{"different-rates", false, different_rates},
                               Rule{"different-weights", false, different_weights},
                               Rule{"different-data", false, different_data},
                               Rule{"unseen-model", false, unseen_model},
                               Rule{"settings", false, settings},
                               Rule{"batch", false, batch},
                               Rule{"batch-and-rate", false, batch_and_rate},
                               Rule{"learning-rate", false, learning_rate},
                               Rule{"scheduler-steps", false, scheduler_steps},
                               Rule{"schedule", false, schedule},
                               Rule{"uneven-means", false, uneven_means},
                               Rule{"set-epoch", false, set_epoch},
                               Rule{"fewer-samples", false, fewer_samples},
                               Rule{"padded-sampler", false, padded_sampler},
                               Rule{"batch-norm-samples", false, batch_norm_samples},
                               Rule{"same-augmentation", false, same_augmentation},
                               Rule{"same-dropout", false, same_dropout},
                               Rule{"lossy-exchange", false, lossy_exchange},
                               Rule{"train-mode", false, train_mode},
                               Rule{"validation-repeated", false, validation_repeated},
                               Rule{"mean-of-means", false, mean_of_means},
                               Rule{"metric-of-one-rank", false, metric_of_one_rank}};

}  // namespace

std::span<const Rule> result_rules() {
  return all_rules;
}

}  // namespace trainyard::reports
