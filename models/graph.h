// A network as a graph: nodes in the order of execution, and the values between them. No LibTorch.
// - `models/chain.h` builds the graphs of trainyard's models. `models/exported` reads those of PyTorch.
// - `models/networks` executes a graph, or the consecutive nodes of a pipeline stage.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace trainyard::models {

using ValueId = std::size_t;

enum class Dtype { float32, float64, bfloat16, float16, int64, int32, int16, int8, uint8, boolean };

enum class MemoryOrder { contiguous, channels_last, channels_last_3d, preserve };

// Stands for the device of the run, whatever device the file names.
struct RunDevice {
  bool operator==(const RunDevice&) const = default;
};

// An argument of an operator of PyTorch.
struct Argument {
  struct Read {             // one of the values that the node reads
    std::size_t index = 0;  // into Node::reads
    bool operator==(const Read&) const = default;
  };
  using List = std::vector<Argument>;
  std::string name;  // as in the operator's schema; empty for the items of a list
  // monostate: None.
  std::variant<std::monostate, Read, std::int64_t, double, bool, std::string, std::complex<double>, Dtype,
               MemoryOrder, RunDevice, List>
      value;
  bool operator==(const Argument&) const = default;
};

// What an operator of PyTorch returns: one value, a list of values, or a result that nobody reads.
struct Returned {
  std::size_t values = 1;
  bool list = false;
  bool operator==(const Returned&) const = default;
};

// Which sample has a part of a random node's tensor. `dimension` has outer · batch · inner slices, and slice j belongs to
// sample (j / inner) % batch. `inner` 0: there is no outer, so it is the number of slices of a sample.
struct SampleRule {
  std::int64_t dimension = 0;
  std::int64_t inner = 0;
  bool operator==(const SampleRule&) const = default;
};

// How the first values of a parameter are drawn.
struct InitialRule {
  enum class Kind { constant, uniform, normal };
  Kind kind = Kind::constant;
  double value = 0;  // the constant, the bound of a uniform distribution, or a standard deviation
  double mean = 0;   // of a normal distribution
  std::optional<std::int64_t> zero_row = {};  // that of padding, in an embedding
};

// A part of a dimension with outer · units · inner numbers: the units begin … end − 1 of each outer one.
struct Cut {
  std::int64_t outer = 1;
  std::int64_t units = 1;
  std::int64_t inner = 1;
  std::int64_t begin = 0;
  std::int64_t end = 1;
  std::int64_t dimension = 0;  // of a parameter
  std::int64_t size() const { return outer * (end - begin) * inner; }
};

// A rank's part of a node, if the layer is split over ranks: see models/tensor_split.h.
struct NodePart {
  enum class Kind {
    columns,   // reads a whole value and makes a part of one
    gathered,  // the same, and the parts are put together
    rows,  // reads a part of a value, or has some rows of an embedding; the results of all parts are added up
    passes  // reads and makes a part of a value
  };
  Kind kind = Kind::columns;
  Cut cut = {};  // of the value that it makes; of rows: of the value that it reads, or of the vocabulary
};

// One node: a layer of trainyard, or an operator of PyTorch.
struct Node {
  std::string path;  // "0", "1", …, or the name in the file: part of the names of random streams
  std::string kind;  // "linear", "conv2d", …: see `Chain`; or "aten.linear.default"
  std::map<std::string, std::int64_t> sizes =
      {};              // of a layer of trainyard: {"inputs", 784}, {"outputs", 250}
  double dropout = 0;  // probability; for kinds "dropout" and "causal_attention" only
  // First values of the weight of a layer of trainyard; its bias is then 0. Without a rule they are PyTorch's.
  std::optional<InitialRule> initial = {};
  std::vector<Argument> arguments = {};  // of an operator of PyTorch
  std::vector<Returned> returned = {};   // of an operator of PyTorch
  std::vector<ValueId> reads = {};
  std::vector<ValueId> makes = {};
  std::string module = {};        // the author's name of the module, "layer1.0.conv1"; may be empty
  std::int64_t parameters = 0;    // number of trainable values
  double forward_flops = 0;       // multiply-adds × 2 for one typical sample
  double forward_bytes = 0;       // bytes moved for one typical sample; for embeddings only
  std::int64_t numbers = 0;       // of the first value that a layer of trainyard makes for one typical sample
  bool may_begin_stage = true;    // false if a stage must not begin here: see models/exported/cuts.h
  bool begins_block = true;       // preferred beginning of a stage
  std::size_t in_evaluation = 0;  // a stage that begins here begins at this node of `Graph::evaluation`
  bool draws = false;             // random numbers, other than those of each sample
  std::optional<SampleRule> by_sample = {};  // of a node whose random numbers depend on the sample
  std::optional<NodePart> part = {};         // if the layer is split over ranks
};

// Whether the node makes numbers, such as the size of a batch, and no tensors.
bool makes_number(const Node& node);

// What the optimizer's keys are multiplied by for a parameter, as in the parameter groups of PyTorch.
struct GroupFactors {
  double learning_rate = 1;
  double weight_decay = 1;
  bool operator==(const GroupFactors&) const = default;
};

// Values of a tensor of an exported file, which share `storage` with other tensors.
struct StoredTensor {
  enum class Role { parameter, buffer, constant };
  std::string name;  // "layer1.0.conv1.weight"
  Role role = Role::parameter;
  ValueId value = 0;
  Dtype dtype = Dtype::float32;
  std::vector<std::int64_t> sizes, strides;  // in items
  std::int64_t offset = 0;                   // in items
  bool requires_grad = true;                 // of a parameter
  bool changes = false;                      // it is trained, or a node overwrites it
  std::shared_ptr<const std::string> storage;
  std::optional<InitialRule> initial = {};  // if it is set, values are drawn with the seed of the run
  GroupFactors factors = {};                // of a parameter
};

struct Graph {
  std::size_t inputs = 1;  // they are the values 0 … inputs − 1
  std::size_t values = 1;  // number of all values
  std::vector<Node> nodes = {};
  std::vector<ValueId> outputs = {};
  // Parameters, buffers and constants of an exported file. Tied parameters are one tensor. Layers of trainyard
  // make their own parameters.
  std::vector<StoredTensor> tensors = {};
  bool exported() const { return !tensors.empty(); }
  // What an exported network computes in evaluation. Its parameters and buffers are those with the same names.
  // Null if it computes this graph.
  std::shared_ptr<const Graph> evaluation = {};
};

// Nodes first … last − 1 of a graph: a pipeline stage.
struct NodeRange {
  std::size_t first = 0;
  std::size_t last = 0;
  bool operator==(const NodeRange&) const = default;
};

// The values that cross the cut before node `node`, ascending: those that are made before it and read after
// it, or are outputs.
// - A parameter belongs to the stage that reads it first. If a later stage reads it too, it crosses.
// - Each stage has its own copies of constants and of buffers.
std::vector<ValueId> crossing(const Graph& graph, std::size_t node);

// Estimated cost of a node, by which stages are balanced: its operations, plus 4 operations per byte moved.
// 4 is the ridge point of a CPU with four cores, rounded: the operations that take as long as moving one byte
// (Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009, section 3).
double counted_cost(const Node& node);

}  // namespace trainyard::models
