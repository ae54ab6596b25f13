// Networks that PyTorch exported, as models of a run: their task and their data.
#include "experiments/run/run_model.h"

#include <doctest/doctest.h>

#include "base/sha256.h"
#include "experiments/file/file.h"
#include "tests/experiments/file/loading.h"
#include "tests/models/exported/pt2_file.h"
#include "tests/support/contains.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/user_error.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

namespace {

constexpr std::int64_t batch = -1;
constexpr std::int64_t any = -2;

// An embedding with `rows` of 3 numbers and a linear layer: logits for `logits` tokens.
Pt2File language_model(std::int64_t length, std::int64_t rows, std::int64_t logits) {
  Pt2File file;
  file.parameter("tokens", {rows, 3});
  file.parameter("head", {logits, 3});
  file.input("x", {batch, length}, int64_code);
  file.node("aten.embedding.default", {{"weight", as_tensor("p_tokens")}, {"indices", as_tensor("x")}},
            "embedding", {batch, length, 3});
  file.node("aten.linear.default", {{"input", as_tensor("embedding")}, {"weight", as_tensor("p_head")}},
            "linear", {batch, length, logits});
  file.output("linear");
  return file;
}

// The problem of an experiment with this network, whose file is net.pt2 in `folder`.
std::string problem_with(const Pt2File& file, const std::string& keys = "",
                         const std::string& task = "language-model",
                         const std::string& dataset = "synthetic-prose") {
  const ScratchFolder folder;
  file.write(folder / "net.pt2");
  Loaded loaded = load_text(
      "name = \"x\"\n[matrix]\nmodel = [\"net\"]\nstrategy = [\"single\", \"ddp\"]\n"
      "[model.net]\nexport = \"net.pt2\"\ntask = \"" +
          task + "\"\ndataset = \"" + dataset + "\"\n" + keys,
      folder / "f.toml");
  std::string problem = texts(loaded.problems);
  if (loaded.experiment) {
    const std::string error = tests::user_error_of([&] { resolve_data(*loaded.experiment, {}); });
    if (!error.empty()) problem = error;
  }
  for (auto at = problem.find(folder.path().string()); at != std::string::npos;
       at = problem.find(folder.path().string()))
    problem.erase(at, folder.path().string().size() + 1);
  return problem;
}

}  // namespace

TEST_CASE("a language model fits windows if it has at least as many logits and rows as the data has tokens") {
  CHECK(problem_with(language_model(any, 69, 69)) == "");
  CHECK(problem_with(language_model(any, 69, 100)) == "");
  const std::string advice = "; export a network for this data, or choose another data set";
  CHECK(contains(
      problem_with(language_model(any, 69, 10)),
      "the network of net.pt2 does not fit the data: it has logits for 10 tokens, but the data has "));
  CHECK(contains(problem_with(language_model(any, 10, 69)), "its net.tokens has 10 rows, but the data has "));
  CHECK(problem_with(language_model(any, 10, 69)).ends_with("tokens" + advice));
}

TEST_CASE("the windows of a language model have a length that the network accepts") {
  const std::string advice = "; export a network for this data, or choose another data set";
  CHECK(problem_with(language_model(8, 69, 69), "window_length = 8") == "");
  for (const char* length : {"7", "9"})
    CHECK(problem_with(language_model(8, 69, 69), "window_length = " + std::string(length)) ==
          "the network of net.pt2 does not fit the data: it reads exactly 8 tokens, but window_length is " +
              (length + advice));
  Pt2File bounded = language_model(any, 69, 69);
  bounded.entries["extra/trainyard.json"] = R"({"sizes": {"length": {"least": 1, "most": 16}}})";
  CHECK(problem_with(bounded, "window_length = 16") == "");
  CHECK(problem_with(bounded, "window_length = 1") == "");
  CHECK(problem_with(bounded) ==
        "the network of net.pt2 does not fit the data: it reads at most 16 tokens, but window_length is 64" +
            advice);
  bounded.entries["extra/trainyard.json"] = R"({"sizes": 1})";
  CHECK(problem_with(bounded) == "");  // no bound is known
}

TEST_CASE("a network whose inputs or outputs are not those of a language model is refused in one line") {
  const std::string start =
      "f.toml:6:10: error: the network of net.pt2 does not fit the task language-model: ";
  const std::string advice = "; export a network that does, or correct `task`";
  CHECK(
      contains(problem_with(mlp()), start + "a language-model reads int64 tokens [batch, length]" + advice));
  Pt2File flat = language_model(any, 69, 69);
  flat.graph()["tensor_values"]["linear"]["sizes"].erase(1);
  CHECK(contains(problem_with(flat),
                 start + "a language-model gives logits [batch, length, vocabulary]" + advice));
  Pt2File shorter = language_model(8, 69, 69);
  shorter.graph()["tensor_values"]["linear"]["sizes"][1]["as_int"] = 7;
  CHECK(contains(problem_with(shorter), "a language-model gives logits [batch, length, vocabulary]"));
  CHECK(contains(problem_with(language_model(any, 69, 69), "", "classification"),
                 "a classification gives logits [batch, classes]"));
  CHECK(contains(problem_with(language_model(any, 69, 69), "", "lm"),
                 "task must be one of \"classification\", \"regression\", \"reconstruction\", "
                 "\"translation\", \"language-model\""));
}

TEST_CASE("windows have their own keys, and keys of words only for tokens that are words") {
  const Pt2File net = language_model(any, 69, 69);
  CHECK(contains(problem_with(net, "window_lenght = 8"), "did you mean \"window_length\"?"));
  CHECK(contains(problem_with(net, "window_length = 0"),
                 "window_length must be an integer in [1, 1000000], but is 0"));
  CHECK(contains(problem_with(net, "vocabulary_max_size = 50"),
                 "vocabulary_max_size is a key of texts and of tokens = \"words\"; data set "
                 "\"synthetic-prose\" has windows of a text"));
  CHECK(problem_with(net, "tokens = \"words\"\nvocabulary_max_size = 50") == "");
  CHECK(contains(problem_with(net, "tokens = \"bytes\""),
                 "tokens must be one of \"characters\", \"words\", \"bpe\""));
  CHECK(contains(problem_with(net, "tokens = \"bpe\""), "tokens = \"bpe\" needs bpe_file = \"merges.txt\""));
  CHECK(contains(problem_with(net, "source_language = \"de\""),
                 "source_language is a key of \"text-pairs\"; data set \"synthetic-prose\" has windows"));
  CHECK(contains(problem_with(net, "augmentation = \"flip\""),
                 "augmentation is a key of images; data set \"synthetic-prose\" has windows of a text"));
  CHECK(contains(problem_with(net, "window_length = 100000"), "synthetic-prose: the validation part has "));
}

TEST_CASE("the vocabularies of a translation are those of the data, not the largest ones") {
  models::DataChoice choice;
  choice.dataset = choice.source = "synthetic-phrases";
  const auto words = models::facts(models::find_dataset(choice.source), {}, choice).input;
  const auto translation = [&](std::int64_t logits) {
    Pt2File file;
    file.parameter("words", {words.vocabulary, 3});
    file.parameter("tokens", {words.target_vocabulary, 3});
    file.parameter("head", {logits, 3});
    file.input("x", {batch, any}, int64_code);
    file.input("y", {batch, any}, int64_code);
    file.node("aten.embedding.default", {{"weight", as_tensor("p_words")}, {"indices", as_tensor("x")}},
              "words", {batch, any, 3});
    file.node("aten.embedding.default", {{"weight", as_tensor("p_tokens")}, {"indices", as_tensor("y")}},
              "tokens", {batch, any, 3});
    file.node("aten.linear.default", {{"input", as_tensor("tokens")}, {"weight", as_tensor("p_head")}},
              "linear", {batch, any, logits});
    file.output("linear");
    return problem_with(file, "", "translation", "synthetic-phrases");
  };
  CHECK(translation(words.target_vocabulary) == "");
  CHECK(translation(words.target_vocabulary + 1) == "");
  CHECK(contains(translation(words.target_vocabulary - 1), "target tokens, but the data has "));
}

TEST_CASE(
    "initial = \"program\" gives each seed the weights of its file, which run.json and the run key name") {
  const ScratchFolder folder;
  Pt2File net = language_model(any, 69, 69);
  net.write(folder / "net.pt2");
  const std::string sha256 = sha256_hex(read_text(folder / "net.pt2"));
  const auto weights = [&](const std::string& network, char fill) {
    const Json header{{"__metadata__", {{"network", network}}},
                      {"net.tokens", {{"dtype", "F32"}, {"shape", {69, 3}}, {"data_offsets", {0, 828}}}},
                      {"net.head", {{"dtype", "F32"}, {"shape", {69, 3}}, {"data_offsets", {0, 828}}}}};
    return safetensors(header, std::string(828, fill));
  };
  const auto load = [&](const std::string& initial) {
    return load_text(
        "name = \"x\"\nmatrix = { model = [\"net\"], strategy = [\"single\", \"ddp\"], seed = [0, 7] }\n"
        "[model.net]\nexport = \"net.pt2\"\ntask = \"language-model\"\n"
        "dataset = \"synthetic-prose\"\n" +
            initial,
        folder / "f.toml");
  };
  write_text(folder / "net.seed-0.safetensors", weights(sha256, 1));
  const std::string missing = texts(load("initial = \"program\"").problems);
  CHECK_MESSAGE(
      contains(missing,
               "net.seed-7.safetensors: no weights for seed 7; export again with `trainyard export … "
               "--seeds 8`, or write initial = \"seed\""),
      missing);
  write_text(folder / "net.seed-7.safetensors", weights("another", 2));
  CHECK(contains(texts(load("initial = \"program\"").problems),
                 "net.seed-7.safetensors: it belongs to another version of the .pt2 file beside it"));
  write_text(folder / "net.seed-7.safetensors", weights(sha256, 2));
  const Loaded of_program = load("initial = \"program\"");
  REQUIRE_MESSAGE(of_program.experiment, texts(of_program.problems));
  for (const Run& run : of_program.experiment->runs) {
    const std::string content = weights(sha256, run.seed == 0 ? 1 : 2);
    CHECK(run.exported->weights == sha256_hex(content));
    for (const models::StoredTensor& stored : model_of(run).graph(run.hyperparameters, {}).tensors)
      CHECK(*stored.storage == content.substr(content.size() - 828));
  }
  const Run first = of_program.experiment->runs.front();
  write_text(folder / "net.seed-0.safetensors", weights(sha256, 3));
  CHECK(contains(user_error_of([&] { model_of(first); }),
                 "net.seed-0.safetensors has changed since the run was planned; put the file back"));
  const Loaded of_file = load("");
  REQUIRE(of_file.experiment);
  for (const Run& run : of_file.experiment->runs) CHECK(run.exported->weights.empty());
  CHECK(contains(
      texts(load("initial = \"new\"").problems),
      "initial must be \"exported\" (the weights of the .pt2 file), \"seed\" (drawn for each seed), "
      "\"program\" (of `trainyard export --seeds`) or the name of a .safetensors file, but is \"new\""));
}
