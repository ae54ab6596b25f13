// Nodes of a graph that are operators of PyTorch: `aten.…`, and operators of numbers such as `_operator.mul`.
//
// Values that are not tensors:
// - Integers and other numbers (sizes, results of `item`) are `number_tensor`s: tensors [] on the CPU.
//   They become the type that the operator's schema asks for. A number may arrive on any device.
// - A number that the schema takes as a tensor does not change the type of the result, as in Python.
//   A stage that receives a number from another stage must make it a `number_tensor` again.
//
// Dropout and normalisation do what the arguments of the node say. Evaluation has a graph of its own.
//
// Random numbers:
// - Dropout depends on the run's seed, `Node::path`, step and sample: see dropout.h. Its first dimension is
//   the batch. `feature_dropout` draws once per sample and channel.
// - `scaled_dot_product_attention` with dropout is computed step by step:
//   softmax(q kᵀ · scale + mask) · factors · v. The weights [batch, …, queries, keys] are in memory. Padding
//   behind the queries and keys does not change the factors.
// - Other operators draw from a generator that is seeded with seed, `Node::path` and step before each call.
//   Their numbers therefore depend on the split of a batch. They may reseed LibTorch's default generator.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

#include "models/graph.h"
#include "models/networks/network.h"

namespace trainyard::networks {

using Forward = std::function<Activations(Activations, const ForwardContext&)>;

// Whether the kind of `node` is that of an operator of PyTorch, known or not.
bool is_operator(const models::Node& node);

// The function that executes `node`, an operator.
// - Its inputs are the values of `Node::reads`. Its result is the values of `Node::makes`.
// - If the caller moves an input, the operator has the only reference to it.
// - Several threads may call it at once.
// - `device` stands for `models::RunDevice`. It is also that of new tensors for which the node names none.
// - UserError that names the node if this LibTorch has no such operator, or if an argument does not fit.
// - A call throws LibTorch's errors with the name of the node added. It throws UserError for dropout without
//   the batch as first dimension, and for weights of a recurrent layer with wrong shapes.
Forward operator_forward(const models::Node& node, at::Device device);

// A tensor [] on the CPU with this number: int64, double, bool or complex double.
at::Tensor number_tensor(const at::Scalar& number);

// Batch normalisation in training with the statistics of all replicas. They are computed in float64.
// - `x` [batch, channel, …], the others [channel]. Each of the others may be undefined.
// - `mean` and `variance` are the running statistics, which are changed.
// - `context.sum_over_replicas` must be set. A replica may have no samples.
at::Tensor synchronised_batch_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   const at::Tensor& mean, const at::Tensor& variance, double momentum,
                                   double epsilon, const ForwardContext& context);

}  // namespace trainyard::networks
