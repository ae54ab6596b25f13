// The files that come with trainyard, and the one that `trainyard new` writes.
#include <sstream>

#include <doctest/doctest.h>

#include "experiments/template.h"
#include "loading.h"

using namespace trainyard;
using namespace trainyard::experiments;
using namespace trainyard::tests;

TEST_CASE("the shipped files are right") {
  struct Shipped {
    std::string file, name;
    std::size_t runs, comparisons;
  };
  for (const Shipped& shipped : {Shipped{"demo", "demo", 20, 1},
                                 {"mnist", "mnist", 6, 1},
                                 {"cluster", "cluster", 20, 1},
                                 {"six-models", "six models", 96, 1},
                                 {"published-study", "published study", 105, 2},
                                 {"published-study-fair", "published study fair", 105, 2},
                                 {"parallel-ml", "parallel ml", 60, 3},
                                 {"parallel-ml-two-cores", "parallel ml two cores", 50, 3}}) {
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
  for (const char* file :
       {"published-study", "published-study-fair", "parallel-ml", "parallel-ml-two-cores"}) {
    const Loaded result = load(std::string("experiments/") + file + ".toml");
    REQUIRE(result.experiment.has_value());
    std::istringstream lines(result.experiment->toml);
    bool values = false;  // in a table of values, not in the matrix or a comparison
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      if (line.starts_with("["))
        values =
            line.starts_with("[defaults") || line.starts_with("[model.") || line.starts_with("[strategy.");
      const bool marked =
          line.find("# stated") != std::string::npos || line.find("# assumed") != std::string::npos;
      if (values && !line.starts_with("[") && line.find(" = ") != std::string::npos) CHECK(marked);
    }
  }
}

TEST_CASE("the study for two cores is the parameter study without three and four threads") {
  std::vector<Run> study = load("experiments/parallel-ml.toml").experiment.value().runs;
  std::erase_if(study, [](const Run& run) { return run.threads.value() > 2; });
  CHECK(load("experiments/parallel-ml-two-cores.toml").experiment.value().runs == study);
}

TEST_CASE("the study at an equal global batch differs from the published one in batch and sampler alone") {
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

TEST_CASE("the six models need no download, and each of their hybrids is cut in two") {
  Experiment experiment = std::move(load("experiments/six-models.toml").experiment.value());
  resolve_data(experiment, {});
  CHECK(experiment.expect.size() == 6);
  for (const Run& run : experiment.runs) {
    CAPTURE(label(run));
    CHECK(run.data.source.starts_with("synthetic-"));
    CHECK(run.strategy.boundaries.size() == (run.strategy.kind == "mp-ddp" ? 1 : 0));
  }
}

TEST_CASE("the file of `trainyard new` is right and needs no download") {
  Experiment experiment = loaded(template_file("my sweep"));
  CHECK(load_text(template_file("my sweep"), "f.toml").problems.empty());
  CHECK(experiment.name == "my sweep");
  CHECK(experiment.compare.size() == 1);
  resolve_data(experiment, {});
  for (const Run& run : experiment.runs) CHECK(run.data.source == "synthetic-digits");
}

TEST_CASE("`trainyard new` makes a name of any file's name") {
  CHECK(loaded(template_file("a+b\"c")).name == "a-b-c");
  CHECK(loaded(template_file("..")).name == "experiment");
  CHECK(loaded(template_file("")).name == "experiment");
  CHECK(loaded(template_file(std::string(200, 'n'))).name == std::string(80, 'n'));
}
