#include "models/datasets/synthetic_texts.h"

#include <array>
#include <span>

#include "models/samples/random.h"

namespace trainyard::models {

namespace sentence_pairs {

constexpr std::uint64_t purpose =
    0x7068726173657300;  // so that other generated data has other random numbers

enum class Gender { masculine, feminine, neuter };
using enum Gender;

struct Noun {
  const char* german;
  Gender gender;
  const char* english;
};

struct Verb {
  const char* german;  // third person
  const char* participle;
  const char* infinitive;
  const char* english;  // third person
  const char* english_participle;
  const char* base;
};

struct Phrase {
  const char* german;
  const char* english;
};

struct Pair {
  std::string german;
  std::string english;
};

constexpr Noun subjects[] = {
    {"Mann", masculine, "man"},          {"Frau", feminine, "woman"},       {"Kind", neuter, "child"},
    {"Hund", masculine, "dog"},          {"Katze", feminine, "cat"},        {"Mädchen", neuter, "girl"},
    {"Lehrer", masculine, "teacher"},    {"Ärztin", feminine, "doctor"},    {"Pferd", neuter, "horse"},
    {"Bäcker", masculine, "baker"},      {"Köchin", feminine, "cook"},      {"Tier", neuter, "animal"},
    {"Maler", masculine, "painter"},     {"Königin", feminine, "queen"},    {"Baby", neuter, "baby"},
    {"König", masculine, "king"},        {"Sängerin", feminine, "singer"},  {"Fahrer", masculine, "driver"},
    {"Nachbarin", feminine, "neighbor"}, {"Gärtner", masculine, "gardener"}};

constexpr Noun objects[] = {
    {"Ball", masculine, "ball"},       {"Blume", feminine, "flower"},      {"Buch", neuter, "book"},
    {"Apfel", masculine, "apple"},     {"Lampe", feminine, "lamp"},        {"Brot", neuter, "bread"},
    {"Stuhl", masculine, "chair"},     {"Tasche", feminine, "bag"},        {"Bild", neuter, "picture"},
    {"Brief", masculine, "letter"},    {"Zeitung", feminine, "newspaper"}, {"Fahrrad", neuter, "bicycle"},
    {"Schlüssel", masculine, "key"},   {"Kiste", feminine, "box"},         {"Glas", neuter, "glass"},
    {"Tisch", masculine, "table"},     {"Karte", feminine, "map"},         {"Messer", neuter, "knife"},
    {"Kuchen", masculine, "cake"},     {"Gitarre", feminine, "guitar"},    {"Boot", neuter, "boat"},
    {"Koffer", masculine, "suitcase"}, {"Uhr", feminine, "clock"},         {"Kleid", neuter, "dress"},
    {"Hut", masculine, "hat"},         {"Flasche", feminine, "bottle"},    {"Seil", neuter, "rope"}};

constexpr Phrase adjectives[] = {{"klein", "small"},     {"groß", "big"},      {"alt", "old"},
                                 {"jung", "young"},      {"rot", "red"},       {"grün", "green"},
                                 {"blau", "blue"},       {"weiß", "white"},    {"schwarz", "black"},
                                 {"schön", "beautiful"}, {"neu", "new"},       {"lang", "long"},
                                 {"braun", "brown"},     {"gelb", "yellow"},   {"schwer", "heavy"},
                                 {"schmutzig", "dirty"}, {"bunt", "colorful"}, {"leicht", "light"}};

constexpr Verb verbs[] = {{"sieht", "gesehen", "sehen", "sees", "seen", "see"},
                          {"kauft", "gekauft", "kaufen", "buys", "bought", "buy"},
                          {"findet", "gefunden", "finden", "finds", "found", "find"},
                          {"trägt", "getragen", "tragen", "carries", "carried", "carry"},
                          {"malt", "gemalt", "malen", "paints", "painted", "paint"},
                          {"holt", "geholt", "holen", "brings", "brought", "bring"},
                          {"sucht", "gesucht", "suchen", "seeks", "sought", "seek"},
                          {"verkauft", "verkauft", "verkaufen", "sells", "sold", "sell"},
                          {"nimmt", "genommen", "nehmen", "takes", "taken", "take"},
                          {"wäscht", "gewaschen", "waschen", "washes", "washed", "wash"},
                          {"zeigt", "gezeigt", "zeigen", "shows", "shown", "show"},
                          {"wirft", "geworfen", "werfen", "throws", "thrown", "throw"},
                          {"versteckt", "versteckt", "verstecken", "hides", "hidden", "hide"},
                          {"zieht", "gezogen", "ziehen", "pulls", "pulled", "pull"},
                          {"hält", "gehalten", "halten", "holds", "held", "hold"},
                          {"vergisst", "vergessen", "vergessen", "forgets", "forgotten", "forget"}};

constexpr Phrase modals[] = {{"will", "wants to"}, {"kann", "can"}, {"muss", "must"}, {"soll", "should"}};
constexpr Phrase times[] = {{"heute", "today"},  {"jetzt", "now"},          {"oft", "often"},
                            {"wieder", "again"}, {"manchmal", "sometimes"}, {"gerade", "right now"}};
constexpr Phrase places[] = {{"im Garten", "in the garden"},
                             {"auf der Straße", "on the street"},
                             {"in der Küche", "in the kitchen"},
                             {"am Fluss", "by the river"},
                             {"im Park", "in the park"},
                             {"vor dem Haus", "in front of the house"},
                             {"hinter der Schule", "behind the school"},
                             {"auf dem Markt", "at the market"},
                             {"im Wald", "in the forest"},
                             {"neben dem Bahnhof", "next to the station"},
                             {"unter der Brücke", "under the bridge"},
                             {"am Strand", "on the beach"}};

template <typename Row>
const Row& one_of(SplitMix64& random, std::span<const Row> rows) {
  return rows[random.below(rows.size())];
}

enum class Case { nominative, accusative };

// The article, and the ending of the adjective after it.
Phrase agreement(Gender gender, Case grammatical_case, bool definite) {
  const bool accusative = grammatical_case == Case::accusative;
  if (gender == masculine && accusative) return {definite ? "den" : "einen", "en"};
  if (gender == masculine) return {definite ? "der" : "ein", definite ? "e" : "er"};
  if (gender == feminine) return {definite ? "die" : "eine", "e"};
  return {definite ? "das" : "ein", definite ? "e" : "es"};
}

// "den kleinen Hund", "the small dog": an article, sometimes an adjective, and a noun.
Pair noun_phrase(SplitMix64& random, std::span<const Noun> nouns, Case grammatical_case) {
  const Noun& noun = one_of(random, nouns);
  const bool definite = random.below(3) != 0;
  const Phrase form = agreement(noun.gender, grammatical_case, definite);
  Pair pair{.german = form.german, .english = ""};
  std::string english = noun.english;
  if (random.below(2) == 0) {
    const Phrase& adjective = one_of<Phrase>(random, adjectives);
    pair.german += std::string(" ") + adjective.german + form.english;
    english = std::string(adjective.english) + " " + english;
  }
  pair.german += std::string(" ") + noun.german;
  const bool vowel = std::string_view("aeiou").find(english.front()) != std::string_view::npos;
  pair.english = (definite ? "the " : vowel ? "an " : "a ") + english;
  return pair;
}

// A phrase with a space before it, or an empty text.
Pair perhaps(SplitMix64& random, std::span<const Phrase> phrases) {
  if (random.below(2) == 0) return {};
  const Phrase& phrase = one_of(random, phrases);
  return {.german = std::string(" ") + phrase.german, .english = std::string(" ") + phrase.english};
}

// Subject, verb, object, and optionally time and place. The sentence form orders them.
struct Clause {
  Pair subject, object, time, place;
  Verb verb;
};

Clause random_clause(SplitMix64& random) {
  Clause clause{.subject = noun_phrase(random, subjects, Case::nominative),
                .object = noun_phrase(random, objects, Case::accusative),
                .time = perhaps(random, times),
                .place = perhaps(random, places),
                .verb = one_of<Verb>(random, verbs)};
  return clause;
}

Pair plain(const Clause& c) {
  return {
      c.subject.german + " " + c.verb.german + c.time.german + " " + c.object.german + c.place.german + ".",
      c.subject.english + " " + c.verb.english + " " + c.object.english + c.place.english + c.time.english +
          "."};
}

Pair perfect(const Clause& c) {
  return {c.subject.german + " hat" + c.time.german + c.place.german + " " + c.object.german + " " +
              c.verb.participle + ".",
          c.subject.english + " has " + c.verb.english_participle + " " + c.object.english + c.place.english +
              c.time.english + "."};
}

Pair modal(const Clause& c, const Phrase& auxiliary) {
  return {c.subject.german + " " + auxiliary.german + c.time.german + " " + c.object.german + c.place.german +
              " " + c.verb.infinitive + ".",
          c.subject.english + " " + auxiliary.english + " " + c.verb.base + " " + c.object.english +
              c.place.english + c.time.english + "."};
}

Pair question(const Clause& c) {
  return {"hat " + c.subject.german + " " + c.object.german + c.place.german + " " + c.verb.participle + "?",
          "has " + c.subject.english + " " + c.verb.english_participle + " " + c.object.english +
              c.place.english + "?"};
}

// If the clause has a place, it is first, and the subject follows the verb.
Pair place_first(const Clause& c) {
  if (c.place.german.empty()) return plain(c);
  return {c.place.german.substr(1) + " " + c.verb.german + " " + c.subject.german + c.time.german + " " +
              c.object.german + ".",
          c.place.english.substr(1) + ", " + c.subject.english + " " + c.verb.english + " " +
              c.object.english + c.time.english + "."};
}

Pair because(const Clause& c, const Clause& reason) {
  return {c.subject.german + " " + c.verb.german + " " + c.object.german + ", weil " + reason.subject.german +
              " " + reason.object.german + " " + reason.verb.german + ".",
          c.subject.english + " " + c.verb.english + " " + c.object.english + " because " +
              reason.subject.english + " " + reason.verb.english + " " + reason.object.english + "."};
}

Pair sentence(SplitMix64& random) {
  const Clause clause = random_clause(random);
  const std::uint64_t form = random.below(6);
  if (form == 0) return perfect(clause);
  if (form == 1) return modal(clause, one_of<Phrase>(random, modals));
  if (form == 2) return question(clause);
  if (form == 3) return place_first(clause);
  return form == 4 ? because(clause, random_clause(random)) : plain(clause);
}

RawTexts phrases(std::uint64_t seed, std::uint64_t part, std::uint64_t count) {
  RawTexts texts;
  for (std::uint64_t index = 0; index < count; ++index) {
    SplitMix64 random(mixed_seed({seed, purpose, part, index}));
    Pair pair = sentence(random);
    for (std::string* text : {&pair.german, &pair.english})  // each begins with a lower-case ASCII letter
      text->front() = static_cast<char>(text->front() - ('a' - 'A'));
    texts.source.push_back(std::move(pair.german));
    texts.target.push_back(std::move(pair.english));
  }
  return texts;
}

}  // namespace sentence_pairs

Parts<RawTexts> synthetic_phrases(std::uint64_t seed) {
  return {.train = sentence_pairs::phrases(seed, 0, 2000),
          .validation = sentence_pairs::phrases(seed, 1, 250),
          .test = sentence_pairs::phrases(seed, 2, 250)};
}

std::string synthetic_prose(std::uint64_t seed) {
  const Parts<RawTexts> phrases = synthetic_phrases(seed);
  std::string text;
  for (const RawTexts* part : phrases.all())
    for (const std::string& sentence : part->target) text += sentence + '\n';
  return text;
}

namespace film_reviews {

using Words = std::span<const char* const>;

constexpr std::uint64_t review_purpose =
    0x7265766965777300;  // so that other generated data has other random numbers

constexpr std::array review_subjects{"plot",   "acting",        "music",     "dialogue",  "camera work",
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
constexpr std::array activities{"travels to",           "moves to",           "comes back from",
                                "spends the summer in", "looks for work in",  "meets a stranger in",
                                "opens a shop in",      "writes letters from"};
constexpr std::array review_places{
    "a small town", "the desert",      "new york",     "a village by the sea", "the mountains",
    "paris",        "the countryside", "an old hotel", "the harbor",           "a northern city"};
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
  const std::string subject = one_of(random, review_subjects);
  if (negated) return "The " + subject + " was not " + word + ".";
  const std::string degree = one_of(random, degrees);
  const std::uint64_t form = random.below(3);
  if (form == 0) return "The " + subject + " was " + degree + word + ".";
  if (form == 1) return "I found the " + subject + " " + degree + word + "!";
  return "What a " + word + " " + subject + ".";
}

std::string neutral(SplitMix64& random) {
  if (random.below(3) == 0) return one_of(random, facts);
  std::string person = one_of(random, people);
  person.front() = static_cast<char>(person.front() - ('a' - 'A'));
  return person + " " + one_of(random, activities) + " " + one_of(random, review_places) + ".";
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
    const std::uint64_t own = mixed_seed({seed, review_purpose, part, index});
    // exactly one review of each pair is positive
    const std::uint64_t pair = mixed_seed({seed, review_purpose + 1, part, index / 2});
    const bool positive = (pair + index) % 2 == 1;
    texts.source.push_back(review(own, positive));
    texts.labels.push_back(positive ? 1 : 0);
  }
  return texts;
}

}  // namespace film_reviews

Parts<RawTexts> synthetic_reviews(std::uint64_t seed) {
  return {.train = film_reviews::reviews(seed, 0, 2000),
          .validation = film_reviews::reviews(seed, 1, 500),
          .test = film_reviews::reviews(seed, 2, 500)};
}

}  // namespace trainyard::models
