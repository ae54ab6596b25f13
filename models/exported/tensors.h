// Tensors of an exported file: dtypes, and the weights and constants with their storages.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/exported/archive.h"
#include "models/exported/json.h"
#include "models/graph.h"

namespace trainyard::models::pt2 {

inline constexpr std::size_t most_dimensions = 32;
inline constexpr std::int64_t strided_layout = 7;  // code of dense tensors

// The dtype of a code of torch.export. Empty for those that `Dtype` does not have: complex numbers and others.
std::optional<Dtype> dtype_of(std::int64_t code);
// The same. Fault if it is empty.
Dtype supported_dtype(std::int64_t code);
bool is_floating(Dtype dtype);
std::int64_t item_bytes(Dtype dtype);

// How many items a tensor of these sizes has. Empty if it is negative or above 2^48.
std::optional<std::int64_t> number_of_items(const std::vector<std::int64_t>& sizes);

// The tensors of one folder of the archive ("data/weights/"), by name. `config` names its list.
// - Tensors of one file of the archive have one storage.
// - Role, value and (for parameters only) `requires_grad` are those of the file or not yet set.
// Fault if a tensor is pickled, has an unknown dtype or layout, or goes beyond its storage, or if all together have
// more than 2 GiB.
std::map<std::string, StoredTensor> read_tensors(const Entries& entries, const std::string& folder,
                                                 const std::string& config);

// Fault if items of a tensor of `changed` share memory with each other, or with another of `tensors`.
// `changed` points into `tensors`.
void check_own_memory(const std::vector<StoredTensor>& tensors,
                      const std::vector<const StoredTensor*>& changed);

}  // namespace trainyard::models::pt2
