// The parts of the parameters that servers have, and the messages about them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "experiments/run/run.h"
#include "models/graph.h"
#include "models/networks/network.h"
#include "runner/communicator/communicator.h"
#include "runner/gradients/sharded_reducer.h"
#include "runner/optimizer/optimizer.h"
#include "runner/optimizer/update.h"

namespace trainyard::runner {

using Works = std::vector<std::unique_ptr<Communicator::Work>>;
void wait_for(Works& works);  // and clears them

// The layout of parameters in these buckets. UserError if they have different types, which `who` cannot have.
ShardLayout layout_of_one_type(const std::vector<networks::NamedParameter>& parameters, Buckets buckets,
                               const std::string& who, Division division = Division::lines);

// All parameters in one memory, bucket after bucket. Each bucket is divided equally among the servers, or with the
// placement "whole" each parameter belongs to one server, in turn.
class ServerParts {
 public:
  // UserError if the parameters have different types.
  ServerParts(const std::vector<networks::NamedParameter>& parameters, const experiments::Strategy& strategy);

  int servers() const { return servers_; }
  std::size_t buckets() const { return layout_.buckets().size(); }
  const ShardLayout& layout() const { return layout_; }
  at::Tensor new_memory() const;  // zeros
  // Moves the parameters to a new memory, which is returned.
  at::Tensor moved(const std::vector<networks::NamedParameter>& parameters) const;
  // A copy of the parts of a server, one after the other.
  at::Tensor copied(const std::vector<networks::NamedParameter>& parameters, int server) const;
  std::vector<at::Tensor> wholes_in(const at::Tensor& memory) const { return layout_.wholes_in(memory); }
  // Writes one gradient per parameter, sparse or dense.
  void write(const std::vector<at::Tensor>& gradients, const at::Tensor& memory) const;

  // The part of a bucket that a server has, in a memory of all parts or of those of this server. May be empty.
  at::Tensor of(const at::Tensor& memory, std::size_t bucket, int server) const;
  // The same cut at the parameters, in all buckets.
  std::vector<at::Tensor> slices_in(const at::Tensor& memory, int server) const;
  // The optimizer of these slices of the parameters. `factors`: as of `make_optimizer`.
  std::unique_ptr<Optimizer> optimizer_of(const experiments::Optimizer& settings, const at::Tensor& memory,
                                          const std::vector<models::GroupFactors>& factors,
                                          int server) const {
    return make_optimizer(settings, slices_in(memory, server), layout_.of_slices(factors, server, servers_));
  }

 private:
  ShardLayout layout_;
  int servers_;
  std::vector<std::vector<std::int64_t>>
      begins_;  // by server and bucket: in a memory of the parts of this server
  at::TensorOptions options_;
};

// Messages of a rank with servers. `ranks` has the replicas, then the servers.
class ServerMessages {
 public:
  ServerMessages(const ServerParts& parts, Communicator& ranks)
      : parts_(parts), ranks_(ranks), replicas_(ranks.size() - parts.servers()) {}

  int replicas() const { return replicas_; }
  int server() const { return ranks_.rank() - replicas_; }  // negative: this rank is a replica
  Communicator& ranks() const { return ranks_; }
  int rank_of(int server) const { return replicas_ + server; }

  // For a replica: the parts of one bucket to all servers, and all parts from all servers.
  void send_to_servers(const at::Tensor& memory, std::size_t bucket, Works& works) const;
  void receive_from_servers(const at::Tensor& memory) const;
  // For a server: its parts to a replica, and one of them from a replica.
  void send_to(int replica, const at::Tensor& memory, Works& works) const;
  void send_to_replicas(const at::Tensor& memory) const;
  void receive_from(int replica, const at::Tensor& part, std::size_t bucket, Works& works) const;

  static constexpr int free_tags = 2;  // 0 and 1: for messages of others

 private:
  static int tag(std::size_t bucket) { return free_tags + static_cast<int>(bucket); }

  const ServerParts& parts_;
  Communicator& ranks_;
  int replicas_;
};

// A replica or a server, for its reducer and its optimizer. A replica has all parameters in `memory`, a server its parts.
struct ServedRank {
  ServedRank(const std::vector<networks::NamedParameter>& parameters, Communicator& ranks,
             const experiments::Strategy& strategy)
      : parts(parameters, strategy),
        messages(parts, ranks),
        memory(messages.server() < 0 ? parts.moved(parameters)
                                     : parts.copied(parameters, messages.server())) {}
  ServedRank(const ServedRank&) = delete;
  ServedRank& operator=(const ServedRank&) = delete;

  ServerParts parts;
  ServerMessages messages;
  at::Tensor memory;
};

// The network of a server is only for first values and their hashes. It is empty from the first step on.
class FreedNetwork final : public WholeParameters {
 public:
  explicit FreedNetwork(std::vector<networks::NamedParameter> parameters)
      : parameters_(std::move(parameters)) {}
  void begin_step(networks::ForwardContext& of_layers) override;

 private:
  std::vector<networks::NamedParameter> parameters_;
};

}  // namespace trainyard::runner
