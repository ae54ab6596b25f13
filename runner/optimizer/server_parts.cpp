#include "runner/optimizer/server_parts.h"

#include <utility>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "runner/gradients/reducer.h"
#include "runner/gradients/sparse_gradient.h"

namespace trainyard::runner {

namespace {

bool is_whole(const experiments::Strategy& strategy) {
  return strategy.placement == "whole";
}

}  // namespace

ShardLayout layout_of_one_type(const std::vector<networks::NamedParameter>& parameters, Buckets buckets,
                               const std::string& who, Division division) {
  for (const networks::NamedParameter& parameter : parameters)
    if (parameter.value.scalar_type() != parameters.front().value.scalar_type())
      throw UserError("parameter " + parameter.name + " has another type than " + parameters.front().name +
                          ", and " + who + " need one type",
                      "train this model with ddp");
  return {values_of(parameters), std::move(buckets), division};
}

void wait_for(Works& works) {
  for (auto& work : works) work->wait();
  works.clear();
}

ServerParts::ServerParts(const std::vector<networks::NamedParameter>& parameters,
                         const experiments::Strategy& strategy)
    : layout_(layout_of_one_type(
          parameters, cut_into_buckets(values_of(parameters), is_whole(strategy) ? 0 : default_bucket_bytes),
          "servers", is_whole(strategy) ? Division::whole : Division::numbers)),
      servers_(static_cast<int>(strategy.servers)),
      options_(parameters.front().value.detach().options().requires_grad(false)) {
  for (int server = 0; server < servers_; ++server) {
    std::vector<std::int64_t>& begins = begins_.emplace_back();
    std::int64_t begin = 0;
    for (std::size_t bucket = 0; bucket < buckets(); ++bucket) {
      begins.push_back(begin);
      const MemoryRange range = layout_.range(bucket, server, servers_);
      begin += range.end - range.begin;
    }
  }
}

at::Tensor ServerParts::new_memory() const {
  return at::zeros({layout_.numbers()}, options_);
}

at::Tensor ServerParts::moved(const std::vector<networks::NamedParameter>& parameters) const {
  const at::NoGradGuard no_grad;
  at::Tensor memory = new_memory();
  const std::vector<at::Tensor> wholes = wholes_in(memory);
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    wholes[i].copy_(parameters[i].value);
    at::Tensor(parameters[i].value).set_data(wholes[i]);
  }
  return memory;
}

void ServerParts::write(const std::vector<at::Tensor>& gradients, const at::Tensor& memory) const {
  for (std::size_t i = 0; i < gradients.size(); ++i) write_whole(gradients[i], layout_.in(memory, i));
}

at::Tensor ServerParts::copied(const std::vector<networks::NamedParameter>& parameters, int server) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> own{at::empty({0}, options_)};  // a server may have none
  for (const Shard& slice : layout_.slices(server, servers_))
    own.push_back(slice.of(parameters[slice.parameter].value).flatten());
  return at::cat(own);
}

at::Tensor ServerParts::of(const at::Tensor& memory, std::size_t bucket, int server) const {
  const MemoryRange range = layout_.range(bucket, server, servers_);
  const bool of_all = memory.numel() == layout_.numbers();
  const std::int64_t begin = of_all ? range.begin : begins_[static_cast<std::size_t>(server)][bucket];
  return memory.narrow(0, begin, range.end - range.begin);
}

std::vector<at::Tensor> ServerParts::slices_in(const at::Tensor& memory, int server) const {
  std::vector<at::Tensor> slices;
  for (std::size_t bucket = 0; bucket < buckets(); ++bucket) {
    const at::Tensor own = of(memory, bucket, server);
    std::int64_t begin = 0;
    for (const Shard& slice : layout_.slices(bucket, server, servers_)) {
      slices.push_back(own.narrow(0, begin, slice.end - slice.begin));
      begin += slice.end - slice.begin;
    }
  }
  return slices;
}

void FreedNetwork::begin_step(networks::ForwardContext& /*of_layers*/) {
  for (const networks::NamedParameter& parameter : std::exchange(parameters_, {}))
    at::Tensor(parameter.value).set_data(at::empty({0}, parameter.value.options().requires_grad(false)));
}

void ServerMessages::send_to_servers(const at::Tensor& memory, std::size_t bucket, Works& works) const {
  for (int server = 0; server < parts_.servers(); ++server)
    if (const at::Tensor part = parts_.of(memory, bucket, server); part.numel() > 0)
      works.push_back(ranks_.send(part, rank_of(server), tag(bucket)));
}

void ServerMessages::receive_from_servers(const at::Tensor& memory) const {
  const at::NoGradGuard no_grad;
  Works works;
  for (std::size_t bucket = 0; bucket < parts_.buckets(); ++bucket)
    for (int server = 0; server < parts_.servers(); ++server)
      if (const at::Tensor part = parts_.of(memory, bucket, server); part.numel() > 0)
        works.push_back(ranks_.receive(part, rank_of(server), tag(bucket)));
  wait_for(works);
}

void ServerMessages::send_to(int replica, const at::Tensor& memory, Works& works) const {
  for (std::size_t bucket = 0; bucket < parts_.buckets(); ++bucket)
    if (const at::Tensor part = parts_.of(memory, bucket, server()); part.numel() > 0)
      works.push_back(ranks_.send(part, replica, tag(bucket)));
}

void ServerMessages::send_to_replicas(const at::Tensor& memory) const {
  Works works;
  for (int replica = 0; replica < replicas_; ++replica) send_to(replica, memory, works);
  wait_for(works);
}

void ServerMessages::receive_from(int replica, const at::Tensor& part, std::size_t bucket,
                                  Works& works) const {
  works.push_back(ranks_.receive(part, replica, tag(bucket)));
}

}  // namespace trainyard::runner
