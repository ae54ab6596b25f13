// A pretended device, to test training off the CPU on machines without a GPU. Its tensors are in host memory,
// and operations of the CPU compute them. As on a GPU, an operation that mixes its tensors with the CPU's is
// an error. So is reading a value while a NoQuestions object exists.
#pragma once

#include <c10/core/Device.h>

namespace trainyard::runner::testing {

at::Device pretend_device();

// During its lifetime, no operation on the device may return a value or a data-dependent size to the host.
// It applies to all threads.
class NoQuestions {
 public:
  NoQuestions();
  ~NoQuestions();
  NoQuestions(const NoQuestions&) = delete;
  NoQuestions& operator=(const NoQuestions&) = delete;
};

}  // namespace trainyard::runner::testing
