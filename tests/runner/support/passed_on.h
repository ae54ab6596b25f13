// A communicator that forwards everything to another. Test doubles override parts of it.
#pragma once

#include <memory>
#include <utility>

#include "runner/communicator/communicator.h"

namespace trainyard::runner::testing {

class PassedOn : public Communicator {
 public:
  explicit PassedOn(std::unique_ptr<Communicator> through) : through_(std::move(through)) {}
  int rank() const override { return through_->rank(); }
  int size() const override { return through_->size(); }
  const char* transport() const override { return through_->transport(); }
  std::unique_ptr<Work> all_reduce(const at::Tensor& tensor) override { return through_->all_reduce(tensor); }
  std::unique_ptr<Work> send(const at::Tensor& tensor, int to, int tag) override {
    return through_->send(tensor, to, tag);
  }
  std::unique_ptr<Work> receive(const at::Tensor& tensor, int from, int tag) override {
    return through_->receive(tensor, from, tag);
  }
  void broadcast(const at::Tensor& tensor, int root) override { through_->broadcast(tensor, root); }
  void barrier() override { through_->barrier(); }

 private:
  std::unique_ptr<Communicator> through_;
};

}  // namespace trainyard::runner::testing
