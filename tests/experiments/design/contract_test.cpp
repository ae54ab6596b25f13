// The fair-comparison contract: stated terms, differences, and declared differences.
#include "experiments/design/contract.h"

#include <doctest/doctest.h>

#include "experiments/file/file.h"
#include "tests/support/contains.h"

namespace trainyard::experiments {
namespace {

const std::string head = R"(
name = "contract"
[matrix]
model = ["mlp"]
strategy = ["single", "ddp"]
seed = { count = 3 }
)";

std::vector<std::string> warnings(const std::string& rest) {
  std::vector<std::string> texts;
  const Loaded loaded = load_text(head + rest, "contract.toml");
  REQUIRE(loaded.experiment.has_value());
  for (const Problem& problem : loaded.problems)
    if (problem.message.find("NOT COMPARABLE") != std::string::npos) texts.push_back(to_text(problem));
  return texts;
}

TEST_CASE("arms with different global batches are NOT COMPARABLE, which is reported once, before launch") {
  const auto found = warnings(R"([defaults]
batch = { size = 64, per = "replica" }
[compare]
axis = "strategy"
baseline = "single"
)");
  REQUIRE(found.size() == 1);
  CHECK(
      contains(found[0], "contract.toml:9:1: warning: NOT COMPARABLE: mlp ddp against single: global batch"));
  CHECK(contains(found[0], "128 against 64"));
  CHECK(contains(found[0], "differs = [\"global_batch\"]"));
}

TEST_CASE("a declared difference gives no warning") {
  CHECK(warnings(R"([defaults]
batch = { size = 64, per = "replica" }
[compare]
axis = "strategy"
baseline = "single"
differs = ["batch"]
)")
            .empty());
}

TEST_CASE("strategies with the same batch are comparable, whatever their meshes are") {
  CHECK(warnings("[strategy.ddp]\nreplicas = 4\n").empty());
}

TEST_CASE("a learning rate, number of epochs or sampler of only one arm is reported") {
  const auto found = warnings("[strategy.ddp]\nlearning_rate = 0.1\nepochs = 2\nsampler = \"distributed\"\n");
  REQUIRE(found.size() == 3);
  std::string all;
  for (const std::string& text : found) all += text + "\n";
  for (const char* title :
       {"learning rate 0.1 against 0.05", "epochs 2 against 10", "sampler distributed against exact"})
    CHECK_MESSAGE(contains(all, title), title);
}

TEST_CASE("the compared axis is not a difference, but a value that varies with it is") {
  const std::string zipped = R"(zip = [ { learning_rate = [0.1, 0.01], batch = [128, 64] } ]
[compare]
axis = "batch"
baseline = 128
pair = ["seed"]
)";
  // Each batch has its own learning rate. The two are different cells, so nothing is compared.
  CHECK(warnings(zipped).empty());
}

TEST_CASE("terms that only records contain can be declared, and unknown ones get advice") {
  CHECK(warnings("[compare]\naxis = \"strategy\"\nbaseline = \"single\"\ndiffers = [\"initial_weights\", "
                 "\"versions\"]\n")
            .empty());
  const Loaded wrong =
      load_text(head + "[compare]\naxis = \"strategy\"\nbaseline = \"single\"\ndiffers = [\"version\"]\n",
                "wrong.toml");
  CHECK_FALSE(wrong.experiment.has_value());
  CHECK(contains(to_text(wrong.problems.front()), "versions"));
}

TEST_CASE("a foreign start record states terms by name, and missing ones are not stated") {
  const StatedTerms terms = stated_by_start({{"epochs", 10},
                                             {"global_batch", 128},
                                             {"optimizer", "sgd momentum 0.9"},
                                             {"learning_rate", 0.05},
                                             {"initial_weights", {{"10.weight", "bb"}, {"2.weight", "aa"}}},
                                             {"something", "else"}});
  CHECK(terms.at("epochs") == "10");
  CHECK(terms.at("learning_rate") == "0.05");
  CHECK(terms.at("initial_weights") == "2.weight aa\n10.weight bb");
  CHECK_FALSE(terms.contains("something"));
  CHECK(not_stated(terms) == std::vector<std::string>{"data fingerprint", "learning rate schedule",
                                                      "precision", "batch normalisation", "threads per rank",
                                                      "kind of device", "data order"});
}

TEST_CASE("a stated number equals the number of a run, whatever its form in JSON is") {
  for (const double rate : {0.0005, 1e-7, 0.05, 1.0, 123456.5}) {
    const std::string own = stated_by({{"learning_rate", rate}}).at("learning_rate");
    CHECK(stated_by_start({{"learning_rate", rate}}).at("learning_rate") == own);
  }
}

TEST_CASE("if data orders differ, the first epoch that both state is named") {
  const StatedTerms one{{"batches", batches_text({{1, "aa"}, {2, "bb"}, {10, "cc"}})}};
  const StatedTerms other{{"batches", batches_text({{2, "dd"}, {10, "ee"}})}};
  CHECK(one.at("batches") == "epoch 1 aa\nepoch 2 bb\nepoch 10 cc");
  const auto differences = differing_terms(one, other, Compare{});
  REQUIRE(differences.size() == 1);
  CHECK(to_text(differences[0]) == "data order epoch 2 dd against epoch 2 bb");
  CHECK_FALSE(differences[0].declared);
  Compare declared;
  declared.differs = {"sampler"};
  CHECK(differing_terms(one, other, declared).at(0).declared);
  CHECK(differing_terms(one, {{"batches", batches_text({{1, "aa"}})}}, Compare{}).empty());
  // Only equal forms of a hash are compared. Own programs have both, recorded ones that of steps.
  const StatedTerms both{{"batches", batches_text({{1, "aa steps:11"}})}};
  const StatedTerms steps{{"batches", batches_text({{1, "steps:22"}})}};
  CHECK(to_text(differing_terms(both, steps, Compare{}).at(0)) ==
        "data order steps of epoch 1 22 against steps of epoch 1 11");
  CHECK(differing_terms(one, steps, Compare{}).empty());
  CHECK(differing_terms(one, both, Compare{}).empty());
  CHECK(differing_terms(both, {{"batches", batches_text({{1, "aa steps:33"}})}}, Compare{})
            .empty());  // other global batch
  CHECK(without_common_part(one, both, Compare{}).empty());
  CHECK(without_common_part(one, steps, Compare{}) ==
        std::vector<std::string>{"data order in a common form"});
  CHECK(without_common_part(one, {}, Compare{}).empty());
  Compare as_declared;
  as_declared.differs = {"batches"};
  CHECK(without_common_part(one, steps, as_declared).empty());
  CHECK(have_same_first_order(one, both));
  CHECK_FALSE(have_same_first_order(one, steps));
  CHECK(differing_terms(one, {}, Compare{}).empty());
}

TEST_CASE("if initial weights differ, the first layer is named") {
  const StatedTerms one{
      {"initial_weights", weights_text({{"0.weight", "aa"}, {"2.weight", "cc"}, {"10.weight", "dd"}})}};
  const StatedTerms other{
      {"initial_weights", weights_text({{"0.weight", "aa"}, {"2.weight", "ee"}, {"10.weight", "ff"}})}};
  const auto differences = differing_terms(one, other, Compare{});
  REQUIRE(differences.size() == 1);
  CHECK(to_text(differences[0]) == "initial weights 2.weight ee against 2.weight cc");
  CHECK_FALSE(differences[0].declared);
  CHECK(differing_terms(one, one, Compare{}).empty());
}

}  // namespace
TEST_CASE("asynchronous servers are said to be another algorithm, whichever arm has them") {
  using Values = std::map<std::string, Value>;
  const Values single{{"mode", std::string("sync")}};
  const Values unbounded{{"mode", std::string("async")}, {"replicas", std::int64_t{3}}};
  Values bounded = unbounded;
  bounded["staleness"] = std::int64_t{2};
  const std::string other = "another algorithm, with stale parameters: 3 replicas ";
  CHECK(declared_mesh_difference(single, unbounded) ==
        "asynchronous servers are " + other + "without a bound");
  CHECK(declared_mesh_difference(bounded, single) ==
        "asynchronous servers of the baseline are " + other + "with the bound 2");
  CHECK(declared_mesh_difference(unbounded, bounded) ==
        "asynchronous servers have parameters of another staleness: 3 replicas with the bound 2 against 3 "
        "replicas "
        "without a bound");
  CHECK(declared_mesh_difference(bounded, bounded).empty());
  CHECK(declared_mesh_difference(single, single).empty());
}

}  // namespace trainyard::experiments
