// The values that cross a cut of a graph.
#include "models/graph.h"

#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"

using namespace trainyard;
using namespace trainyard::models;

namespace {

using Values = std::vector<ValueId>;

Node node(Values reads, Values makes) {
  return {.path = "", .kind = "", .reads = std::move(reads), .makes = std::move(makes)};
}

StoredTensor stored(ValueId value, StoredTensor::Role role) {
  StoredTensor tensor;
  tensor.role = role;
  tensor.value = value;
  return tensor;
}

// 0 → node 0 → 1 → node 1 → 2 → node 2 (reads 1, too) → 3
Graph skip() {
  return {.values = 4, .nodes = {node({0}, {1}), node({1}, {2}), node({2, 1}, {3})}, .outputs = {3}};
}

}  // namespace

TEST_CASE("values cross a cut if they are made before it and read after it") {
  const Graph graph = skip();
  CHECK(crossing(graph, 0) == Values{0});
  CHECK(crossing(graph, 1) == Values{1});     // read by both others, but crosses once
  CHECK(crossing(graph, 2) == Values{1, 2});  // the skip connection
  CHECK(crossing(graph, 3) == Values{3});
  CHECK_THROWS_AS(crossing(graph, 4), InternalError);
}

TEST_CASE("an output crosses all cuts after the node that makes it") {
  Graph graph = skip();
  graph.outputs = {3, 1};
  CHECK(crossing(graph, 3) == Values{1, 3});
  graph.outputs = {0};
  CHECK(crossing(graph, 1) == Values{0, 1});
  CHECK(crossing(graph, 3) == Values{0});
}

TEST_CASE("values that nobody reads cross no cut") {
  Graph graph = skip();
  graph.inputs = 2;
  graph.values = 6;
  graph.nodes = {node({0}, {2, 3}), node({2}, {4}), node({4}, {5})};
  graph.outputs = {5};
  CHECK(crossing(graph, 0) == Values{0});
  CHECK(crossing(graph, 1) == Values{2});
  CHECK(crossing(graph, 2) == Values{4});
}

TEST_CASE("a parameter crosses from the stage that reads it first, constants and buffers do not cross") {
  using Role = StoredTensor::Role;
  for (const Role role : {Role::parameter, Role::buffer, Role::constant}) {
    CAPTURE(static_cast<int>(role));
    Graph graph = skip();
    graph.values = 5;
    graph.tensors = {stored(4, role)};
    graph.nodes[1].reads.push_back(4);  // read once: it belongs to one stage
    for (std::size_t cut = 0; cut <= 3; ++cut) {
      const Values without = crossing(skip(), cut);
      CHECK(crossing(graph, cut) == without);
    }
    graph.nodes[2].reads.push_back(4);  // tied
    const bool crosses = role == Role::parameter;
    CHECK(crossing(graph, 1) == Values{1});
    CHECK(crossing(graph, 2) == (crosses ? Values{1, 2, 4} : Values{1, 2}));
    CHECK(crossing(graph, 3) == Values{3});
  }
}

TEST_CASE("a parameter that nobody reads crosses no cut") {
  Graph graph = skip();
  graph.values = 5;
  graph.tensors = {stored(4, StoredTensor::Role::parameter)};
  for (std::size_t cut = 0; cut <= 3; ++cut) {
    const Values without = crossing(skip(), cut);
    CHECK(crossing(graph, cut) == without);
  }
}

TEST_CASE("a node costs its operations and four operations for each byte") {
  Node costly = node({}, {});
  costly.forward_flops = 1000;
  costly.forward_bytes = 10;
  CHECK(counted_cost(costly) == 1040);
}
