#include "runner/data/text_dataset.h"

#include "base/error.h"
#include "tests/runner/support/doctest_beside_torch.h"

namespace trainyard::runner::text_dataset_test {

at::Tensor indices(std::initializer_list<std::int64_t> numbers) {
  return at::tensor(at::ArrayRef<std::int64_t>(numbers), at::kLong);
}

at::Tensor table(std::initializer_list<std::int64_t> numbers, std::int64_t rows) {
  return indices(numbers).view({rows, -1});
}

const models::Texts texts{.tokens = {.tokens = {5, 6, 7, 8, 9, 10}, .offsets = {0, 3, 4, 6}},
                          .labels = {1, 0, 1}};

// "5 6 <eos>" translates to "<bos> 7 <eos>", and "8 <eos>" to "<bos> 9 10 11 <eos>".
const models::TextPairs pairs{.source = {.tokens = {5, 6, 3, 8, 3}, .offsets = {0, 3, 5}},
                              .target = {.tokens = {2, 7, 3, 2, 9, 10, 11, 3}, .offsets = {0, 3, 8}}};

TEST_CASE("a batch of texts is padded to its longest text, in any order and with repetitions") {
  const TextDataset split(texts);
  CHECK(split.size() == 3);
  CHECK(at::equal(split.length_keys(), indices({3, 1, 2})));
  const Batch all = split.gather(indices({1, 0, 2, 0}));
  CHECK(at::equal(all.inputs.at(0), table({8, 0, 0, 5, 6, 7, 9, 10, 0, 5, 6, 7}, 4)));
  CHECK(at::equal(all.targets, indices({0, 1, 1, 1})));
  CHECK(all.size() == 4);
  CHECK(at::equal(split.gather(indices({1, 2})).inputs.at(0), table({8, 0, 9, 10}, 2)));
  CHECK(split.weight(indices({1, 0, 2, 0})) == 4);
}

TEST_CASE("parts of a step are padded like the whole step, if a network reads padding") {
  CHECK(TextDataset(texts).in_step(indices({0})) == nullptr);
  CHECK(PairSplit(pairs).in_step(indices({0})) == nullptr);
  const TextDataset split(texts, models::TextForm{});
  CHECK(at::equal(split.inputs(indices({1, 2})).at(0), table({8, 0, 9, 10}, 2)));
  const auto padded = split.in_step(indices({0, 1, 2}));
  CHECK(at::equal(padded->inputs(indices({1, 2})).at(0), table({8, 0, 0, 9, 10, 0}, 2)));
  CHECK(padded->shape(indices({1})) == std::vector<std::int64_t>{1, 3});
  CHECK(padded->inputs(indices({})).at(0).size(0) == 0);
  const PairSplit translations(pairs, /*reads_padding=*/true);
  const auto as_second = translations.in_step(indices({0, 1}));
  CHECK(at::equal(as_second->inputs(indices({1})).at(0), table({8, 3, 0}, 1)));
  CHECK(at::equal(as_second->inputs(indices({0})).at(1), table({2, 7, 0, 0}, 1)));
  CHECK(as_second->weight(indices({0})) == 2);
}

TEST_CASE("texts have the length of the network, or at most its longest, and masks and types beside them") {
  const TextDataset fixed(texts, models::TextForm{.length = 2});
  CHECK(at::equal(fixed.inputs(indices({0, 1})).at(0), table({5, 6, 8, 0}, 2)));
  CHECK(fixed.in_step(indices({0})) == nullptr);
  const TextDataset cut(texts, models::TextForm{.most = 2});
  CHECK(at::equal(cut.inputs(indices({0, 1})).at(0), table({5, 6, 8, 0}, 2)));
  CHECK(at::equal(cut.inputs(indices({1})).at(0), table({8}, 1)));
  models::TextForm form;
  form.beside = {{.mask = true, .dtype = models::Dtype::float32},
                 {.mask = false, .dtype = models::Dtype::int64}};
  const auto inputs = TextDataset(texts, form).inputs(indices({0, 1}));
  REQUIRE(inputs.size() == 3);
  CHECK(at::equal(inputs[1], table({1, 1, 1, 1, 0, 0}, 2).to(at::kFloat)));
  CHECK(at::equal(inputs[2], table({0, 0, 0, 0, 0, 0}, 2)));
}

TEST_CASE("an empty part of a batch of texts has no rows and no weight") {
  const TextDataset split(texts);
  CHECK(split.gather(indices({})).inputs.at(0).size(0) == 0);
  CHECK(split.weight(indices({})) == 0);
}

TEST_CASE("the network gets all target tokens but the last, and its targets are all but the first") {
  const PairSplit split(pairs);
  const Batch batch = split.gather(indices({0, 1}));
  CHECK(at::equal(batch.inputs.at(0), table({5, 6, 3, 8, 3, 0}, 2)));
  CHECK(at::equal(batch.inputs.at(1), table({2, 7, 0, 0, 2, 9, 10, 11}, 2)));
  CHECK(at::equal(batch.targets, table({7, 3, 0, 0, 9, 10, 11, 3}, 2)));
}

TEST_CASE("a network reads a window without its last token, and predicts it without its first") {
  const models::Windows windows{.tokens = {.tokens = {4, 5, 6, 6, 7, 8}, .offsets = {0, 3, 6}}};
  const WindowSplit split(windows);
  const Batch batch = split.gather(indices({1, 0, 1}));
  CHECK(at::equal(batch.inputs.at(0), table({6, 7, 4, 5, 6, 7}, 3)));
  CHECK(at::equal(batch.targets, table({7, 8, 5, 6, 7, 8}, 3)));
  CHECK(split.shape(indices({1, 0, 1})) == std::vector<std::int64_t>{3, 2});
  CHECK(split.weight(indices({1, 0, 1})) == 6);
  CHECK(split.weight(indices({})) == 0);
  CHECK(split.gather(indices({})).inputs.at(0).size(0) == 0);
  CHECK_FALSE(split.length_keys().defined());
  CHECK(split.padded_like(indices({0})) == nullptr);
  const models::Splits splits{windows, windows, windows};
  CHECK(make_parts(splits, find_task("language-model"), at::kFloat, false).test->size() == 2);
  CHECK_THROWS_AS(make_parts(splits, find_task("translation"), at::kFloat, false), UserError);
}

TEST_CASE("the shape of a batch of texts is the concatenated shape of its inputs") {
  const TextDataset split(texts);
  CHECK(split.shape(indices({1, 2})) == std::vector<std::int64_t>{2, 2});
  CHECK(split.shape(indices({1, 0, 2, 0})) == std::vector<std::int64_t>{4, 3});
  CHECK(split.shape(indices({})) == std::vector<std::int64_t>{0, 1});
  CHECK(PairSplit(pairs).shape(indices({1, 0})) == std::vector<std::int64_t>{2, 3, 2, 4});
  CHECK(PairSplit(pairs).shape(indices({0})) == std::vector<std::int64_t>{1, 3, 1, 2});
}

TEST_CASE("the weight of a batch of translations is its number of target tokens without <bos> and padding") {
  const PairSplit split(pairs);
  CHECK(split.weight(indices({0})) == 2);
  CHECK(split.weight(indices({1})) == 4);
  CHECK(split.weight(indices({1, 0, 1})) == 10);
  CHECK(split.weight(indices({1, 0, 1})) ==
        split.targets(indices({1, 0, 1})).ne(0).sum().item<std::int64_t>());
}

TEST_CASE("pairs are ordered by target length, then by source length, ascending and descending in turn") {
  // Lengths of source and target: 1 4, 2 4, 3 3, 1 3, 2 3.
  const models::TextPairs some{
      .source = {.tokens = {3, 5, 3, 5, 5, 3, 3, 5, 3}, .offsets = {0, 1, 3, 6, 7, 9}},
      .target = {.tokens = {2, 5, 5, 3, 2, 5, 5, 3, 2, 5, 3, 2, 5, 3, 2, 5, 3},
                 .offsets = {0, 4, 8, 11, 14, 17}}};
  CHECK(at::equal(PairSplit(some).length_keys().argsort(), indices({3, 4, 2, 1, 0})));
}

TEST_CASE("repeated lengths are multiples of four, and never longer than the longest of all data") {
  std::vector<std::int64_t> lengths;
  for (const std::int64_t length : {1, 3, 4, 5, 8, 9, 10}) lengths.push_back(repeated_length(length, 10));
  CHECK(lengths == std::vector<std::int64_t>{4, 4, 4, 8, 8, 10, 10});
  CHECK(repeated_length(2, 3) == 3);
}

TEST_CASE("pairs padded like others, rounded up, have repeated shapes and the same weight") {
  // Sources of 1, 5 and 9 tokens, and targets of 2, 3 and 7.
  const models::TextPairs some{
      .source = {.tokens = std::vector<std::int32_t>(15, 6), .offsets = {0, 1, 6, 15}},
      .target = {.tokens = {2, 3, 2, 8, 3, 2, 9, 8, 7, 6, 5, 3}, .offsets = {0, 2, 5, 12}}};
  const PairSplit split(some);
  const auto as_second = split.padded_like(indices({1, 0}));
  CHECK(as_second->shape(indices({0})) == std::vector<std::int64_t>{1, 8, 1, 4});
  CHECK(as_second->shape(indices({0, 1})) == std::vector<std::int64_t>{2, 8, 2, 4});
  CHECK(split.padded_like(indices({2}))->shape(indices({0})) == std::vector<std::int64_t>{1, 9, 1, 6});
  CHECK(split.padded_like(indices({2}))->padded_like(indices({0}))->shape(indices({0})) ==
        std::vector<std::int64_t>{1, 4, 1, 4});
  const Batch batch = as_second->gather(indices({0, 1}));
  CHECK(at::equal(batch.inputs.at(0), table({6, 0, 0, 0, 0, 0, 0, 0, 6, 6, 6, 6, 6, 0, 0, 0}, 2)));
  CHECK(at::equal(batch.inputs.at(1), table({2, 0, 0, 0, 2, 8, 0, 0}, 2)));
  CHECK(at::equal(batch.targets, table({3, 0, 0, 0, 8, 3, 0, 0}, 2)));
  CHECK(as_second->weight(indices({0, 1})) == split.weight(indices({0, 1})));
  CHECK(split.shape(indices({0})) == std::vector<std::int64_t>{1, 1, 1, 1});  // unchanged
  CHECK(TextDataset(texts).padded_like(indices({0})) == nullptr);
}

TEST_CASE("texts cannot be augmented") {
  CHECK_THROWS_WITH_AS(PairSplit(pairs).augmented(find_augmentation("flip"), 1, 1),
                       doctest::Contains("is for images"), UserError);
}

TEST_CASE("data of another kind than that of the task is refused") {
  const models::Splits splits{texts, texts, texts};
  CHECK(make_parts(splits, find_task("classification"), at::kFloat, false).test->size() == 3);
  CHECK_THROWS_WITH_AS(make_parts(splits, find_task("translation"), at::kFloat, false),
                       doctest::Contains("the data set is not for the task translation"), UserError);
}

}  // namespace trainyard::runner::text_dataset_test
