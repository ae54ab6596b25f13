// Runs that begin with the weights of a file: what they compute, and what is refused.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "tests/support/contains.h"
#include "tests/support/program.h"

using namespace trainyard;
using namespace trainyard::e2e;

namespace {

namespace fs = std::filesystem;

std::string weights_experiment(const std::string& name, const std::string& keys,
                               const std::string& model = "mlp") {
  return "name = \"" + name + "\"\n[matrix]\nmodel = [\"" + model +
         "\"]\nstrategy = [\"single\", \"ddp\", \"pipeline\"]\nseed = [0, 1, 2]\n[defaults]\n"
         "dataset = \"synthetic-digits\"\nepochs = 1\ntrain_samples = 400\n" +
         keys + "\n";
}

// A safetensors file with these tensors of 0.
std::string weights_of(const nlohmann::ordered_json& shapes) {
  nlohmann::ordered_json header;
  std::size_t bytes = 0;
  for (const auto& [name, shape] : shapes.items()) {
    std::size_t count = sizeof(float);
    for (const auto& size : shape) count *= size.get<std::size_t>();
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {bytes, bytes + count}}};
    bytes += count;
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::string content(sizeof length, '\0');
  std::memcpy(content.data(), &length, sizeof length);
  return content + text + std::string(bytes, '\0');
}

const nlohmann::ordered_json mlp_shapes{{"1.weight", {250, 784}}, {"1.bias", {250}},
                                        {"3.weight", {100, 250}}, {"3.bias", {100}},
                                        {"5.weight", {10, 100}},  {"5.bias", {10}}};

}  // namespace

TEST_CASE(
    "runs begin with the weights of `initial`, under each strategy, and the report says that seeds share "
    "them") {
  const Scratch scratch;
  scratch.write("first.toml", weights_experiment("first", "save = \"last\""));
  REQUIRE(scratch.at({"run", "first.toml", "--no-report"}).code == 0);
  const auto key = scratch
                       .at({"sql", "SELECT run_key FROM run_summary WHERE strategy = 'single' AND seed = 0",
                            "--format", "csv"})
                       .out;
  const std::string run = key.substr(key.find('\n') + 1, 12);
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path() / "yard"))
    if (entry.path().filename() == "weights.safetensors" && contains(entry.path().string(), run))
      fs::copy_file(entry.path(), scratch.path() / "first.safetensors");
  REQUIRE(fs::exists(scratch.path() / "first.safetensors"));
  // so small a step changes no weight
  scratch.write("second.toml",
                weights_experiment("second", "initial = \"first.safetensors\"\nlearning_rate = 1e-30"));
  checked_output(scratch.at({"run", "second.toml"}), 0, "9 runs finished");
  const auto count = [&](const std::string& what, const std::string& where) {
    return scratch
        .at({"sql", "SELECT COUNT(" + what + ") AS n FROM epoch_average WHERE " + where, "--format", "csv"})
        .out;
  };
  CHECK(count("DISTINCT ROUND(validation_loss, 4)", "experiment = 'first'") == "n\n3\n");  // of three seeds
  CHECK(count("*",
              "experiment = 'second' AND ABS(validation_loss - (SELECT validation_loss FROM epoch_average "
              "WHERE experiment = 'first' AND strategy = 'single' AND seed = 0)) < 1e-5") == "n\n9\n");
  const std::string page = tests::read_text(scratch.path() / "yard/reports/second/index.html");
  CHECK(contains(page, "Seeds of MLP: all begin with the same weights"));
  CHECK_FALSE(contains(page, "--seeds` writes weights for each seed"));
  CHECK(contains(scratch.at({"show", "last"}).out, "first.safetensors"));
  // other weights under the same name make other runs
  scratch.write("first.safetensors", weights_of(mlp_shapes));
  checked_output(scratch.at({"plan", "second.toml"}), 0, "9 to run");
}

TEST_CASE("weights that are missing, damaged or of another network are refused before anything starts") {
  const Scratch scratch;
  const auto refused = [&](const std::string& value, const std::string& text,
                           const std::string& model = "mlp") {
    scratch.write("x.toml", weights_experiment("x", "initial = " + value, model));
    const auto output = checked_error(scratch.at({"run", "x.toml"}), 2, text);
    CHECK(output.out.empty());
    CHECK_FALSE(fs::exists(scratch.path() / "yard"));
  };
  const auto wrong = [&](const nlohmann::ordered_json& shapes, const std::string& text) {
    scratch.write("w.safetensors", weights_of(shapes));
    refused("\"w.safetensors\"", text);
  };
  refused("\"w.pt\"", "initial must be the name of a .safetensors file, but is \"w.pt\"");
  refused("\"w.safetensors\"", "w.safetensors: cannot be read: No such file or directory");
  scratch.write("w.safetensors", "short");
  refused("\"w.safetensors\"",
          "w.safetensors is not a complete safetensors file: it ends in its first 8 bytes");
  scratch.write("w.safetensors", weights_of(mlp_shapes).substr(0, 4000));
  refused("\"w.safetensors\"", "its values are not where the header says");
  auto shapes = mlp_shapes;
  shapes.erase("5.bias");
  wrong(shapes,
        "w.safetensors does not fit model \"mlp\": it has 1000 values for layer 5 (linear), but the network "
        "has 1010");
  shapes = mlp_shapes;
  shapes["7.weight"] = {10, 10};
  wrong(shapes, "the network has no layer 7");
  wrong({{"net.weight", {10, 784}}}, "it has 0 values for layer 1 (linear), but the network has 196250");
  shapes = mlp_shapes;
  shapes["1.weight"] = {784, 250};  // as many values, but transposed
  wrong(shapes,
        "w.safetensors does not fit model \"mlp\": 1.weight is [784, 250], but its first size must be 250");
}
