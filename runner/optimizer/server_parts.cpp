#include "runner/optimizer/server_parts.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "runner/gradients/reducer.h"
#include "runner/gradients/sparse_gradient.h"

namespace trainyard::runner {

namespace {

ShardLayout layout_of(const std::vector<networks::NamedParameter>& parameters, bool whole) {
  for (const networks::NamedParameter& parameter : parameters)
    if (parameter.value.scalar_type() != parameters.front().value.scalar_type())
      throw UserError("parameter " + parameter.name + " has another type than " + parameters.front().name +
                          ", and servers need one type",
                      "train this model with ddp");
  const std::vector<at::Tensor> values = values_of(parameters);
  return {values, cut_into_buckets(values, whole ? 0 : default_bucket_bytes),
          whole ? Division::whole : Division::numbers};
}

}  // namespace

void wait_for(Works& works) {
  for (auto& work : works) work->wait();
  works.clear();
}

ServerParts::ServerParts(const std::vector<networks::NamedParameter>& parameters,
                         const experiments::Strategy& strategy)
    : layout_(layout_of(parameters, strategy.placement == "whole")),
      servers_(static_cast<int>(strategy.servers)),
      options_(parameters.front().value.detach().options().requires_grad(false)) {}

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

at::Tensor ServerParts::of(const at::Tensor& memory, std::size_t bucket, int server) const {
  const MemoryRange range = layout_.range(bucket, server, servers_);
  return memory.slice(0, range.begin, range.end);
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
