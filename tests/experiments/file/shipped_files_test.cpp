// The files in experiments/, and the one that `trainyard new` writes.
#include <map>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "experiments/file/file.h"
#include "experiments/run/strategies.h"
#include "tests/experiments/file/loading.h"
#include "tests/support/scratch_folder.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

namespace {

// Values that are read from a publication, with their lines in experiments/published-*.toml.
struct Stated {
  std::string key;       // "[model.mlp] epochs"
  std::string sentence;  // in published-results.toml or published-parallel-ml.toml
};

const std::vector<Stated> stated_by_study{
    {"[model.vgg11] epochs", "[stifi-2025.vgg11]           # figures 3.2 - 3.4, 3 epochs\nepochs = 3\n"},
    {"[model.nbow] epochs",
     "[stifi-2025.nbow]            # figures 3.5 - 3.7, 5 epochs; [first, last]\nepochs = 5\n"},
    {"[model.seq2seq] epochs", "[stifi-2025.seq2seq]         # figures 3.8 - 3.9, 10 epochs\nepochs = 10\n"},
    {"[model.cnn] epochs", "[stifi-2025.cnn]             # figures 3.12 - 3.14, 20 epochs\nepochs = 20\n"},
    {"[model.mlp] epochs", "[stifi-2025.mlp]             # figures 3.15 - 3.17, 10 epochs\nepochs = 10\n"},
    {"[strategy.ddp] replicas", "hardware.ddp    = \"two Tesla P100 (Kaggle)\""}};
const std::vector<Stated> stated_by_parameter_study{
    {"[[matrix.zip]] threads", "axis   = \"threads\"\nvalues = [1, 2, 3, 4]\n"},
    {"[[matrix.zip]] hidden", "axis   = \"hidden\"\nvalues = [[32], [128], [256], [512]]\n"},
    {"[[matrix.zip]] hidden", "[parallel-ml.tables.hidden-layers]      # 1, 4, 8\n"},
    {"[[matrix.zip]] epochs", "axis   = \"epochs\"\nvalues = [1, 5, 10, 20]\n"},
    {"[defaults] dataset", "[parallel-ml]\ndataset = \"fashion-mnist\"\n"}};
const std::vector<Stated> stated_by_hybrid{
    {"[defaults] dataset", "[brac-hybrid]                # MobileNetV2 on CIFAR-10"},
    {"[defaults] epochs",
     "epochs = 10\nsingle = { train_seconds = 7250, validation_accuracy_last = 0.82 }\n"
     "hybrid = { train_seconds = 1451, validation_accuracy_last = 0.83 }"},
    {"[defaults] optimizer", "optimizer = \"Adam, learning rate 0.001, step schedule\""},
    {"[defaults] learning_rate", "optimizer = \"Adam, learning rate 0.001, step schedule\""},
    {"[defaults] learning_rate_schedule", "optimizer = \"Adam, learning rate 0.001, step schedule\""},
    {"[defaults] augmentation", "augmentation = [\"normalisation\", \"horizontal flip\", \"random crop\"]"},
    {"[strategy.hybrid] kind", "DDP x model partition on four CPU nodes"}};

// The keys of a file that are marked as stated, and their values: "[model.mlp] epochs" → "10".
std::map<std::string, std::string> marked_as_stated(const std::string& toml) {
  std::map<std::string, std::string> marked;
  std::istringstream lines(toml);
  std::string table;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[")) table = line.substr(0, line.find_last_of(']') + 1);
    const auto mark = line.find("# stated");
    if (mark == std::string::npos) continue;
    const auto equals = line.find('=');
    const auto trimmed = [](std::string text) { return text.substr(0, text.find_last_not_of(' ') + 1); };
    marked[table + " " + trimmed(line.substr(0, equals))] =
        trimmed(line.substr(equals + 2, mark - equals - 2));
  }
  return marked;
}

}  // namespace

TEST_CASE("the shipped files are valid") {
  struct Shipped {
    std::string file, name;
    std::size_t runs, comparisons;
  };
  for (const Shipped& shipped : {Shipped{"demo", "demo", 80, 1},
                                 {"mnist", "mnist", 6, 1},
                                 {"cluster", "cluster", 20, 1},
                                 {"six-models", "six models", 366, 1},
                                 {"published-study", "published study", 105, 2},
                                 {"published-study-fair", "published study fair", 105, 2},
                                 {"gpt-shakespeare", "gpt shakespeare", 10, 1},
                                 {"brac-hybrid", "brac hybrid", 9, 1},
                                 {"parallel-ml", "parallel ml", 60, 3},
                                 {"parallel-ml-two-cores", "parallel ml two cores", 50, 3},
                                 {"parallel-ml-flowers", "parallel ml flowers", 25, 1},
                                 {"parallel-ml-cloud", "parallel ml cloud", 20, 1},
                                 {"tensor", "tensor", 48, 1},
                                 {"zero", "zero", 20, 1},
                                 {"parameter-servers", "parameter servers", 80, 1},
                                 {"elastic", "elastic", 6, 1}}) {
    CAPTURE(shipped.file);
    const Loaded result = load("experiments/" + shipped.file + ".toml");
    CHECK_MESSAGE(result.problems.empty(), texts(result.problems));
    REQUIRE(result.experiment.has_value());
    CHECK(result.experiment->name == shipped.name);
    CHECK(result.experiment->compare.size() == shipped.comparisons);
    CHECK(result.experiment->runs.size() == shipped.runs);
  }
}

TEST_CASE("every value of a published protocol is marked as stated or assumed") {
  for (const char* file : {"published-study", "published-study-fair", "parallel-ml", "parallel-ml-two-cores",
                           "parallel-ml-flowers", "parallel-ml-cloud", "brac-hybrid"}) {
    const Loaded result = load(std::string("experiments/") + file + ".toml");
    REQUIRE(result.experiment.has_value());
    std::istringstream lines(result.experiment->toml);
    bool values = false;  // true in a table of values, but not in the matrix or a comparison
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      if (line.starts_with("["))
        values = line.starts_with("[defaults") || line.starts_with("[model.") ||
                 line.starts_with("[strategy.") || line.starts_with("[[matrix.zip");
      const bool marked =
          line.find("# stated") != std::string::npos || line.find("# assumed") != std::string::npos;
      if (values && !line.starts_with("[") && line.find(" = ") != std::string::npos) CHECK(marked);
    }
  }
}

TEST_CASE("exactly the values that a publication states are marked as stated") {
  const std::string facts = read_text("experiments/published-results.toml") +
                            read_text("experiments/published-parallel-ml.toml") +
                            read_text("experiments/brac-hybrid-results.toml");
  const std::map<std::string, std::vector<Stated>> files{
      {"published-study", stated_by_study},
      {"published-study-fair", stated_by_study},
      {"brac-hybrid", stated_by_hybrid},
      {"parallel-ml", stated_by_parameter_study},
      {"parallel-ml-two-cores", stated_by_parameter_study}};
  for (const auto& [file, sentences] : files) {
    CAPTURE(file);
    std::set<std::string> allowed;
    const auto marked = marked_as_stated(read_text("experiments/" + file + ".toml"));
    for (const Stated& each : sentences) {
      CAPTURE(each.key);
      allowed.insert(each.key);
      CHECK(facts.find(each.sentence) != std::string::npos);
      REQUIRE(marked.contains(each.key));
      const bool same_epochs = each.sentence.ends_with("\nepochs = " + marked.at(each.key) + "\n");
      if (each.key.starts_with("[model.")) CHECK(same_epochs);
    }
    for (const auto& [key, value] : marked) CHECK_MESSAGE(allowed.contains(key), key);
  }
}

TEST_CASE("docs/strategies.md claims exactly what the tests check, for the same models") {
  struct Proof {
    std::string claim;  // a row of docs/strategies.md
    std::string test;
    std::vector<std::string> checks;  // parts of the test's source
  };
  const std::string page = read_text("docs/strategies.md");
  CHECK(page.find("| the same for the other six models: not tested | | | |") != std::string::npos);
  for (const Proof& proof :
       {Proof{"| every strategy except `independent`, `in-step` and asynchronous servers trains what one "
              "process "
              "trains, in "
              "float64, also with uneven batches | all eight | 20 | 1e-11 of the loss |",
              "tests/runner/parity/parity_test.cpp",
              {"constexpr int steps = 20;", "<= 1e-11 * std::abs(one.losses[step])",
               "constexpr std::int64_t samples = 3 * global_batch + 1;"}},
        Proof{"| a replay of asynchronous servers gives their parameters | MLP, VGG11, Seq2Seq | 22 | bit by "
              "bit |",
              "tests/runner/training/replay_test.cpp",
              {"async_run(small_vgg11()), async_run(small_seq2seq())", "CHECK(replayed(launch) == weights);",
               "run.data.train_samples = 130;"}},
        Proof{
            "| an attempt with two of three replicas trains what one process trains, in float64 | MLP | one "
            "epoch | 1e-11 of the loss |",
            "tests/runner/training/checkpoints_test.cpp",
            {"doctest::Approx(last_losses(one)[phase]).epsilon(1e-11)", "run.precision = \"float64\";"}},
        Proof{"| `zero` over messages trains what `ddp` trains over shared memory | MLP | 8 | bit by bit |",
              "tests/runner/optimizer/zero_test.cpp",
              {"CHECK(same_bits(zero.parameters, ddp.parameters));", "3 * batch + 1", "epoch <= 2"}},
        Proof{"| two replicas of `zero` over messages train what PyTorch's ZeRO and FSDP train | MLP and CNN "
              "| 12 "
              "| 1e-9 |",
              "tests/runner/trainer/pytorch_test.cpp",
              {"constexpr std::int64_t steps = 12;", "? 1e-5 : 1e-9",
               "for (const char* sharding : {\"optimizer\", \"gradients\", \"parameters\"})"}},
        Proof{"| each network is the network of PyTorch | all eight | 10 | 1e-9 |",
              "tests/runner/parity/pytorch_training_test.cpp",
              {"constexpr std::int64_t steps = 10;", "<= 1e-9 * largest(expected)"}},
        Proof{"| two replicas train what PyTorch's own DDP trains | MLP and CNN | 12 | 1e-9 |",
              "tests/runner/trainer/pytorch_test.cpp",
              {"constexpr std::int64_t steps = 12;", "? 1e-5 : 1e-9",
               "for (const char* model : {\"mlp\", \"cnn\"}) {\n"
               "    all.push_back(make_case(model, {3, 8, 8}, heavy, 2));"}},
        Proof{
            "| two replicas with two servers train what servers over PyTorch's rpc train | MLP | 12 | 1e-9 |",
            "tests/runner/trainer/pytorch_test.cpp",
            {"? 1e-5 : 1e-9", "make_case(\"mlp\", {3, 8, 8}, optimizer, 2)",
             "served.run.strategy.servers = 2;"}},
        Proof{
            "| two tensor parts train what PyTorch's own tensor parallelism trains | MLP | 12 | 1e-9 |",
            "tests/runner/trainer/pytorch_test.cpp",
            {".tensor = 2, .tensor_split = {1, 3}", "constexpr std::int64_t steps = 12;", "1e-5 : 1e-9"}}}) {
    CAPTURE(proof.claim);
    CHECK(page.find(proof.claim) != std::string::npos);
    const std::string test = read_text(proof.test);
    for (const std::string& check : proof.checks) CHECK_MESSAGE(test.find(check) != std::string::npos, check);
  }
}

TEST_CASE("docs/strategies.md has the claim of each strategy") {
  const std::string page = read_text("docs/strategies.md");
  for (const StrategyKind& kind : strategy_kinds()) {
    CAPTURE(kind.name);
    const std::size_t row = page.find("| `" + kind.name + "` |");
    REQUIRE(row != std::string::npos);
    CHECK(page.substr(row, page.find('\n', row) - row).ends_with("| " + kind.claim + " |"));
  }
}

TEST_CASE("the study for two cores is the parameter study without three and four threads") {
  std::vector<Run> study = load("experiments/parallel-ml.toml").experiment.value().runs;
  std::erase_if(study, [](const Run& run) { return run.threads.value() > 2; });
  CHECK(load("experiments/parallel-ml-two-cores.toml").experiment.value().runs == study);
}

TEST_CASE("the study at an equal global batch differs from the published one only in batch and sampler") {
  Experiment published = std::move(load("experiments/published-study.toml").experiment.value());
  const Experiment fair = std::move(load("experiments/published-study-fair.toml").experiment.value());
  REQUIRE(published.runs.size() == fair.runs.size());
  for (std::size_t i = 0; i < fair.runs.size(); ++i) {
    Run& run = published.runs[i];
    CHECK(run.global_batch == 64 * run.strategy.replicas);
    CHECK(fair.runs[i].global_batch == 64);
    CHECK((run.strategy.replicas > 1 || run_key(run) == run_key(fair.runs[i])));
    run.batch_per = fair.runs[i].batch_per;
    run.global_batch = fair.runs[i].global_batch;
    run.sampler = fair.runs[i].sampler;
    CHECK(run == fair.runs[i]);
  }
}

TEST_CASE("the six models need no download, and each of their hybrids has two stages") {
  Experiment experiment = std::move(load("experiments/six-models.toml").experiment.value());
  resolve_data(experiment, {});
  CHECK(experiment.expect.size() == 6);
  for (const Run& run : experiment.runs) {
    CAPTURE(label(run));
    CHECK(run.data.source.starts_with("synthetic-"));
    CHECK(run.strategy.boundaries.size() == (run.strategy.kind == "mp-ddp" ? 1 : 0));
  }
}

TEST_CASE("the file of `trainyard new` is valid and needs no download") {
  Experiment experiment = loaded(template_file("my sweep"));
  CHECK(load_text(template_file("my sweep"), "f.toml").problems.empty());
  CHECK(experiment.name == "my sweep");
  CHECK(experiment.compare.size() == 1);
  resolve_data(experiment, {});
  for (const Run& run : experiment.runs) CHECK(run.data.source == "synthetic-digits");
}

TEST_CASE("`trainyard new` makes a valid experiment name from any file name") {
  CHECK(loaded(template_file("a+b\"c")).name == "a-b-c");
  CHECK(loaded(template_file("..")).name == "experiment");
  CHECK(loaded(template_file("")).name == "experiment");
  CHECK(loaded(template_file(std::string(200, 'n'))).name == std::string(80, 'n'));
}
