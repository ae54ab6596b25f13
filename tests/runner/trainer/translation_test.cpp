#include "runner/trainer/translation.h"

#include <cmath>
#include <map>
#include <sstream>

#include "models/samples/tokenizer.h"
#include "runner/data/task.h"
#include "runner/data/text_dataset.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::translation_test {

using Tokens = std::vector<std::int64_t>;

// The token numbers of a line. "<unk>" is the unknown token.
Tokens tokens_of(const std::string& line) {
  static std::map<std::string, std::int64_t> numbers{{"<unk>", models::unknown_token}};
  Tokens tokens;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    tokens.push_back(
        numbers.try_emplace(word, models::special_tokens + static_cast<std::int64_t>(numbers.size()))
            .first->second);
  }
  return tokens;
}

constexpr std::array<std::pair<const char*, const char*>, 7> corpus{{
    {"a man in an orange hat is staring at something .", "a man in an orange hat starring at something ."},
    {"a boston terrier is running on lush green grass in front of a white fence .",
     "a boston terrier is running on lush green grass in front of a white fence ."},
    {"a girl in karate uniform is breaking a stick with a kick .",
     "a girl in karate uniform breaking a stick with a front kick ."},
    {"five people in winter coats stand in the snow with a house in the back . the the the",
     "five people wearing winter jackets and helmets stand in the snow , with snowmobiles in the background "
     "."},
    {"people are fixing the roof of a <unk> .", "people are fixing the roof of a <unk> ."},
    {"a", "a dog ."},
    {"", "two men"},
}};

// BLEU as in the views of the database.
double score(const BleuSums& sums) {
  double logarithms = 0;
  for (std::size_t n = 0; n < 4; ++n) {
    logarithms += std::log(static_cast<double>(sums.matched[n]) / static_cast<double>(sums.candidates[n]));
  }
  const auto candidate = static_cast<double>(sums.candidate_length);
  const auto reference = static_cast<double>(sums.reference_length);
  return 100 * std::min(1., std::exp(1 - reference / candidate)) * std::exp(logarithms / 4);
}

// A network that repeats its source backwards, word by word, and then ends.
at::Tensor backwards(const networks::Activations& inputs) {
  const at::Tensor &source = inputs[0], &target = inputs[1];
  at::Tensor next = at::empty({source.size(0)}, at::kLong);
  for (std::int64_t i = 0; i < source.size(0); ++i) {
    const std::int64_t words = source[i].gt(models::end_token).sum().item<std::int64_t>();
    const std::int64_t place = words - target.size(1);  // the first token is <bos>
    next[i] = place >= 0 ? source[i][place].item<std::int64_t>() : models::end_token;
  }
  return next;
}

TEST_CASE("BLEU equals sacrebleu 2.6.0: unknown words of a reference match no word") {
  BleuSums sums;
  for (const auto& [candidate, reference] : corpus) sums.add(tokens_of(candidate), tokens_of(reference));
  CHECK(sums.matched == std::array<std::int64_t, 4>{57, 42, 32, 25});
  CHECK(sums.candidates == std::array<std::int64_t, 4>{69, 63, 58, 53});
  CHECK(sums.candidate_length == 69);
  CHECK(sums.reference_length == 71);
  CHECK(score(sums) == doctest::Approx(59.77119126264859).epsilon(1e-12));
}

TEST_CASE("BLEU has no brevity penalty if translations are longer than references, as in sacrebleu") {
  BleuSums sums;
  for (const std::size_t i : {0, 2}) sums.add(tokens_of(corpus[i].first), tokens_of(corpus[i].second));
  CHECK(sums.matched == std::array<std::int64_t, 4>{21, 16, 11, 7});
  CHECK(sums.candidates == std::array<std::int64_t, 4>{24, 22, 20, 18});
  CHECK(score(sums) == doctest::Approx(60.739805209295106).epsilon(1e-12));
}

TEST_CASE(
    "a translation is the most likely token at each step, until it ends or reaches its maximum length") {
  const at::Tensor source =
      at::tensor({11, 12, 13, 3, 14, 3, 0, 0, 3, 0, 0, 0, 15, 16, 3, 0}, at::kLong).view({4, 4});
  CHECK(translate(source, backwards) == std::vector<Tokens>{{13, 12, 11}, {14}, {}, {16, 15}});
  const auto endless =
      translate(source, [](const auto& inputs) { return at::full({inputs[0].size(0)}, 9, at::kLong); });
  REQUIRE(endless.size() == 4);
  CHECK(endless[0] == Tokens(10, 9));
  CHECK(endless[1] == Tokens(6, 9));
  CHECK(endless[2] == Tokens(4, 9));
  CHECK(longest_translation(24) == 50);
  CHECK(longest_translation(25) == 50);
}

TEST_CASE("sentences that have ended are not continued") {
  const at::Tensor source = at::tensor({11, 12, 13, 3, 14, 3, 0, 0}, at::kLong).view({2, 4});
  std::vector<std::int64_t> batches;
  translate(source, [&](const networks::Activations& inputs) {
    CHECK(inputs[0].size(0) == inputs[1].size(0));
    batches.push_back(inputs[0].size(0));
    return backwards(inputs);
  });
  CHECK(batches == std::vector<std::int64_t>{2, 2, 1, 1});
}

TEST_CASE("the most likely next token is that of the last position") {
  const at::Tensor logits = at::tensor({1., 5., 2., 3., 1., 0., 0., 9., 0., 0., 1., 2.}).view({2, 2, 3});
  CHECK(at::equal(last_tokens(logits), at::tensor({0, 2}, at::kLong)));
}

TEST_CASE("BLEU adds up over batches and is recorded as the matched n-grams of all") {
  // The source backwards is the first target, and it shares 2 words with the second.
  const models::TextPairs pairs{
      .source = {.tokens = {11, 12, 13, 14, 3, 15, 16, 17, 3}, .offsets = {0, 5, 9}},
      .target = {.tokens = {2, 14, 13, 12, 11, 3, 2, 17, 18, 15, 19, 20, 3}, .offsets = {0, 6, 13}}};
  const PairSplit split(pairs);
  MetricSums sums(find_task("translation"));
  add_bleu(sums, split, at::tensor({1}, at::kLong), backwards);
  add_bleu(sums, split, at::tensor({0}, at::kLong), backwards);
  std::string rows;
  for (const auto& row : sums.further()) {
    rows += row.name + " " + std::to_string(std::llround(row.sum)) + "/" + std::to_string(row.weight) + " ";
  }
  CHECK(rows == "bleu_1 6/7 bleu_2 3/5 bleu_3 2/3 bleu_4 1/1 bleu_length 7/9 ");
}

}  // namespace trainyard::runner::translation_test
