#include "runner/data/task.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <tuple>

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "base/named_row.h"
#include "models/metrics.h"
#include "models/networks/vector_kernels.h"
#include "models/samples/tokenizer.h"

namespace trainyard::runner {

namespace {

constexpr std::int64_t padding = 0;

at::Tensor label_loss(const at::Tensor& logits, const at::Tensor& labels) {
  return at::cross_entropy_loss(logits, labels, /*weight=*/{}, at::Reduction::Sum);
}

at::Tensor right_labels(const std::vector<at::Tensor>& outputs, const at::Tensor& labels) {
  return count_correct(outputs.front(), labels);
}

at::Tensor squared_error(const at::Tensor& images, const at::Tensor& targets) {
  return at::mse_loss(images, targets, at::Reduction::Sum);
}

// Values [batch, 1], numbers [batch].
at::Tensor number_loss(const at::Tensor& values, const at::Tensor& numbers) {
  return at::mse_loss(values.flatten().to(numbers), numbers, at::Reduction::Sum);
}

at::Tensor sum_of_numbers(const std::vector<at::Tensor>&, const at::Tensor& numbers) {
  return numbers.sum(at::kDouble);
}

at::Tensor sum_of_squares(const std::vector<at::Tensor>&, const at::Tensor& numbers) {
  return numbers.to(at::kDouble).square().sum();
}

at::Tensor token_loss(const at::Tensor& logits, const at::Tensor& tokens) {
  return at::cross_entropy_loss(logits.flatten(0, -2), tokens.flatten(), /*weight=*/{}, at::Reduction::Sum,
                                padding);
}

// The sizes in an exported file are not checked before its network runs.
at::Tensor next_token_loss(const at::Tensor& logits, const at::Tensor& tokens) {
  if (logits.dim() != 3 || logits.sizes().slice(0, 2) != tokens.sizes())
    throw UserError(c10::str("the network gives values ", logits.sizes(), " for tokens ", tokens.sizes()),
                    "export a network that gives logits [batch, length, vocabulary] for its tokens");
  return token_loss(logits, tokens);
}

at::Tensor right_tokens(const std::vector<at::Tensor>& outputs, const at::Tensor& tokens) {
  return count_correct(outputs.front(), tokens, padding);
}

at::Tensor token_positions(const at::Tensor& tokens) {
  return tokens.flatten().nonzero().flatten();
}

const std::array tasks{
    Task{"classification", label_loss, {{"correct", right_labels}}, nullptr},
    Task{"regression",
         number_loss,
         {{"target", sum_of_numbers, at::kDouble}, {"square", sum_of_squares, at::kDouble}},
         nullptr},
    Task{"reconstruction", squared_error, {}, nullptr},
    Task{"translation", token_loss, {{"correct", right_tokens}}, token_positions},
    Task{"language-model", next_token_loss, {{"correct", right_tokens}}, nullptr}};

// The parts of a network's own loss. They are its last outputs.
void add_parts(std::vector<Count>& counts, std::size_t parts) {
  for (const models::Metric& metric : models::all_metrics)
    if (metric.part > 0 && metric.part <= parts)
      counts.push_back(
          {metric.record,
           [from_end = parts - metric.part + 1](const std::vector<at::Tensor>& outputs, const at::Tensor&) {
             return outputs.at(outputs.size() - from_end).sum(at::kDouble);
           },
           at::kDouble});
}

constexpr std::int64_t numbers_worth_a_thread = 1 << 15;

// `logits` contiguous: [rows, classes].
template <class Number>
std::int64_t count_right(const at::Tensor& logits, const at::Tensor& answers, std::int64_t ignored) {
  const std::int64_t classes = logits.size(-1);
  const auto* numbers = logits.const_data_ptr<Number>();
  const auto* answer = answers.const_data_ptr<std::int64_t>();
  std::atomic<std::int64_t> right = 0;
  at::parallel_for(0, answers.numel(), std::max<std::int64_t>(numbers_worth_a_thread / classes, 1),
                   [&](std::int64_t begin, std::int64_t end) {
                     std::int64_t here = 0;
                     for (std::int64_t row = begin; row < end; ++row)
                       here += answer[row] != ignored &&
                               networks::is_first_largest(numbers + row * classes, classes, answer[row]);
                     right += here;
                   });
  return right;
}

using Tokens = std::span<const std::int64_t>;
using Counts = std::map<std::vector<std::int64_t>, std::int64_t>;

std::int64_t gram_count(Tokens tokens, std::size_t n) {
  return tokens.size() < n ? 0 : static_cast<std::int64_t>(tokens.size() - n + 1);
}

// The number of times that each n-gram of known words is in `tokens`.
Counts known_grams(Tokens tokens, std::size_t n) {
  Counts counts;
  for (std::size_t i = 0; i + n <= tokens.size(); ++i) {
    const Tokens gram = tokens.subspan(i, n);
    if (std::find(gram.begin(), gram.end(), models::unknown_token) == gram.end())
      ++counts[{gram.begin(), gram.end()}];
  }
  return counts;
}

std::int64_t matches(const Counts& candidate, const Counts& reference) {
  std::int64_t sum = 0;
  for (const auto& [gram, count] : candidate) {
    const auto found = reference.find(gram);
    if (found != reference.end()) sum += std::min(count, found->second);
  }
  return sum;
}

}  // namespace

at::Tensor Task::sum_of(const std::vector<at::Tensor>& outputs, const at::Tensor& targets) const {
  return own_loss ? outputs.at(1).sum() : loss_sum(outputs.front(), targets);
}

at::Tensor Task::weight_of(const std::vector<at::Tensor>& outputs) const {
  return outputs.at(2).detach().sum(at::kDouble);
}

const Task& task_with_own_loss(std::string_view data_task, const models::OwnLoss& loss) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::string, std::size_t>, Task> made;
  const std::lock_guard lock(mutex);
  const auto [row, is_new] = made.try_emplace({std::string(data_task), loss.reduction, loss.parts.size()});
  if (is_new) {
    Task task = find_task(data_task);
    if (task.target() != Target::label) task.counts.clear();
    add_parts(task.counts, loss.parts.size());
    task.positions = nullptr;
    task.own_loss = loss;
    row->second = std::move(task);
  }
  return row->second;
}

const Task& find_task(std::string_view name) {
  return named_row(tasks, &Task::name, "task", name);
}

MetricSums::MetricSums(const Task& task, at::Device device)
    : task_(&task),
      loss_(at::zeros({}, at::TensorOptions(device).dtype(at::kDouble))),
      loss_weight_(at::zeros_like(loss_)) {
  for (const Count& count : task.counts)
    counts_.push_back(at::zeros({}, at::TensorOptions(device).dtype(count.type)));
}

void MetricSums::add(const at::Tensor& loss_sum, const std::vector<at::Tensor>& outputs,
                     const at::Tensor& targets, std::int64_t weight) {
  const at::NoGradGuard no_grad;
  loss_.add_(loss_sum);
  if (has_own_weight()) loss_weight_.add_(task_->weight_of(outputs));
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i].add_(task_->counts[i].of(outputs, targets));
  weight_ += weight;
}

void MetricSums::add(const std::string& name, double sum, std::int64_t weight) {
  auto row =
      std::find_if(further_.begin(), further_.end(), [&](const Named& named) { return named.name == name; });
  if (row == further_.end()) row = further_.insert(row, {name, 0, 0});
  row->sum += sum;
  row->weight += weight;
}

MetricSums MetricSums::take() {
  MetricSums taken = *this;
  taken.loss_ = loss_.clone();
  taken.loss_weight_ = loss_weight_.clone();
  for (at::Tensor& count : taken.counts_) count = count.clone();
  loss_.zero_();
  loss_weight_.zero_();
  for (at::Tensor& count : counts_) count.zero_();
  weight_ = 0;
  further_.clear();
  return taken;
}

double MetricSums::loss_weight() const {
  return has_own_weight() ? loss_weight_.item<double>() : static_cast<double>(weight_);
}

std::optional<std::int64_t> MetricSums::correct() const {
  if (!counts_correct()) return std::nullopt;
  return counts_.front().item<std::int64_t>();
}

std::vector<std::pair<std::string_view, nlohmann::ordered_json>> MetricSums::counts() const {
  std::vector<std::pair<std::string_view, nlohmann::ordered_json>> counts;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const Count& count = task_->counts[i];
    if (count.type == at::kLong)
      counts.emplace_back(count.record, counts_[i].item<std::int64_t>());
    else
      counts.emplace_back(count.record, counts_[i].item<double>());
  }
  return counts;
}

at::Tensor MetricSums::numbers() const {
  const at::Tensor loss = has_own_weight() ? loss_ / loss_weight_ * static_cast<double>(weight_) : loss_;
  return at::stack({loss, counts_correct() ? counts_.front().to(at::kDouble) : at::zeros_like(loss_)});
}

nlohmann::ordered_json to_json(const MetricSums& sums, const std::string& phase) {
  nlohmann::ordered_json metrics = nlohmann::ordered_json::array();
  const auto add = [&](std::string_view name, const nlohmann::ordered_json& sum,
                       const nlohmann::ordered_json& weight) {
    metrics.push_back({{"phase", phase}, {"name", name}, {"sum", sum}, {"weight", weight}});
  };
  if (sums.has_own_weight())
    add("loss", sums.loss(), sums.loss_weight());
  else
    add("loss", sums.loss(), sums.weight());
  for (const auto& [record, sum] : sums.counts()) add(record, sum, sums.weight());
  for (const MetricSums::Named& named : sums.further()) add(named.name, named.sum, named.weight);
  return metrics;
}

at::Tensor count_correct(const at::Tensor& logits, const at::Tensor& answers, std::int64_t ignored) {
  const bool plain = logits.is_cpu() && logits.is_contiguous() &&
                     (logits.scalar_type() == at::kFloat || logits.scalar_type() == at::kDouble);
  if (!plain) return logits.argmax(-1).eq(answers).bitwise_and(answers.ne(ignored)).sum();
  const at::Tensor in_rows = answers.contiguous();
  std::int64_t right = 0;
  AT_DISPATCH_FLOATING_TYPES(logits.scalar_type(), "right_answers",
                             [&] { right = count_right<scalar_t>(logits, in_rows, ignored); });
  return at::scalar_tensor(right, answers.options());
}

void BleuSums::add(Tokens candidate, Tokens reference) {
  for (std::size_t n = 1; n <= matched.size(); ++n) {
    matched[n - 1] += matches(known_grams(candidate, n), known_grams(reference, n));
    candidates[n - 1] += gram_count(candidate, n);
  }
  candidate_length += static_cast<std::int64_t>(candidate.size());
  reference_length += static_cast<std::int64_t>(reference.size());
}

}  // namespace trainyard::runner
