// The values of an exported graph: their names, what the file says of their tensors, and their numbers in `Graph`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/exported/json.h"
#include "models/graph.h"

namespace trainyard::models::pt2 {

// A tensor as the file describes it.
struct Description {
  std::optional<Dtype> dtype;        // empty if `Dtype` does not have it
  std::vector<std::int64_t> sizes;   // those of the author's example, if they are symbolic
  std::vector<std::string> symbols;  // the symbolic expression of each size, empty for a number
  double items() const;
};

struct Value {
  std::string name;
  bool tensor = true;  // or an integer, a number, a flag
  Description description = {};
};

class Values {
 public:
  // `json`: the graph of the file, which must outlive this object.
  explicit Values(const Json& json) : json_(json) {}

  // A new value. Fault if the name is taken, or the file does not describe the tensor.
  ValueId add(const std::string& name, bool tensor);
  // Another name of a value.
  void add_name(const std::string& name, ValueId value);
  // Fault if no value with this name was made before, or it is a number in place of a tensor, or the reverse.
  ValueId find(const std::string& name, bool tensor) const;
  // What the file says of a tensor. Fault if it says nothing, or the description is impossible.
  Description describe(const std::string& name) const;

  bool has(const std::string& name) const { return ids_.contains(name); }
  std::size_t count() const { return values_.size(); }
  const Value& operator[](ValueId value) const { return values_[value]; }

 private:
  const Json& json_;
  std::map<std::string, ValueId> ids_;
  std::vector<Value> values_;
};

}  // namespace trainyard::models::pt2
