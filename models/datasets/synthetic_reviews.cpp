#include <array>
#include <span>

#include "models/datasets/synthetic_texts.h"
#include "models/samples/random.h"

namespace trainyard::models {

namespace {

using Words = std::span<const char* const>;

constexpr std::uint64_t purpose = 0x7265766965777300;  // sets these numbers apart from other data's

constexpr std::array subjects{"plot",   "acting",        "music",     "dialogue",  "camera work",
                              "ending", "story",         "cast",      "script",    "pace",
                              "humor",  "leading actor", "direction", "first half"};
constexpr std::array good{"wonderful", "brilliant",  "moving",   "excellent", "charming",
                          "superb",    "delightful", "gripping", "funny",     "perfect",
                          "touching",  "clever",     "great",    "beautiful", "fresh"};
constexpr std::array bad{"boring", "awful",    "terrible", "weak",      "dull",
                         "clumsy", "annoying", "poor",     "pointless", "predictable",
                         "stupid", "flat",     "ugly",     "tedious",   "lifeless"};
constexpr std::array degrees{"", "really ", "quite ", "simply ", "truly ", "just "};
constexpr std::array people{"a young detective", "an old sailor", "two sisters", "the teacher",
                            "a retired boxer",   "the mayor",     "a nurse",     "three friends",
                            "a taxi driver",     "the inventor"};
constexpr std::array deeds{"travels to",           "moves to",           "comes back from",
                           "spends the summer in", "looks for work in",  "meets a stranger in",
                           "opens a shop in",      "writes letters from"};
constexpr std::array places{"a small town",  "the desert",     "new york",        "a village by the sea",
                            "the mountains", "paris",          "the countryside", "an old hotel",
                            "the harbor",    "a northern city"};
constexpr std::array facts{
    "It was filmed in black and white.",      "The film lasts about two hours.",
    "I saw it on a Sunday with my brother.",  "There is a scene on a train.",
    "It is based on a novel from the 1950s.", "The director has made other films before.",
    "Most of it happens at night.",           "They showed it on television last week.",
    "Some parts were shot in a studio.",      "The book came out a year earlier."};

std::string one_of(SplitMix64& random, Words words) {
  return words[random.below(words.size())];
}

std::string opinion(SplitMix64& random, bool positive) {
  const bool negated = random.below(6) == 0;
  const std::string word = one_of(random, positive != negated ? Words(good) : Words(bad));
  const std::string subject = one_of(random, subjects);
  if (negated) return "The " + subject + " was not " + word + ".";
  const std::string degree = one_of(random, degrees);
  switch (random.below(3)) {
    case 0:
      return "The " + subject + " was " + degree + word + ".";
    case 1:
      return "I found the " + subject + " " + degree + word + "!";
    default:
      return "What a " + word + " " + subject + ".";
  }
}

std::string neutral(SplitMix64& random) {
  if (random.below(3) == 0) return one_of(random, facts);
  std::string person = one_of(random, people);
  person.front() = static_cast<char>(person.front() - ('a' - 'A'));
  return person + " " + one_of(random, deeds) + " " + one_of(random, places) + ".";
}

std::string review(std::uint64_t seed, bool positive) {
  SplitMix64 random(seed);
  const std::uint64_t opinions = 1 + random.below(4);
  const std::uint64_t contradicting = random.below((opinions + 1) / 2);  // fewer than half
  std::vector<std::string> sentences;
  for (std::uint64_t i = 0; i < opinions; ++i)
    sentences.push_back(opinion(random, i < contradicting ? !positive : positive));
  for (std::uint64_t left = random.below(9); left > 0; --left) sentences.push_back(neutral(random));
  std::string text;
  for (const std::int64_t at : permutation(static_cast<std::int64_t>(sentences.size()), random.next()))
    text += (text.empty() ? "" : " ") + sentences[static_cast<std::size_t>(at)];
  return text;
}

RawTexts reviews(std::uint64_t seed, std::uint64_t part, std::uint64_t count) {
  RawTexts texts;
  for (std::uint64_t index = 0; index < count; ++index) {
    const std::uint64_t own = mixed_seed({seed, purpose, part, index});
    // of each two neighbours one is positive
    const std::uint64_t pair = mixed_seed({seed, purpose + 1, part, index / 2});
    const bool positive = (pair + index) % 2 == 1;
    texts.source.push_back(review(own, positive));
    texts.labels.push_back(positive ? 1 : 0);
  }
  return texts;
}

}  // namespace

Parts<RawTexts> synthetic_reviews(std::uint64_t seed) {
  return {
      .train = reviews(seed, 0, 2000), .validation = reviews(seed, 1, 500), .test = reviews(seed, 2, 500)};
}

}  // namespace trainyard::models
