// A device that is none: its tensors lie in host memory and are computed by the CPU's operations, but they
// are not the CPU's, as those of a GPU are not. What mixes the two is an error, as it is on a GPU, and so is
// what asks for a value where nobody may. So the way of a training off the CPU is tested where there is no
// GPU.
#pragma once

#include <memory>
#include <string>

#include <c10/core/Device.h>

namespace trainyard::runner::testing {

at::Device pretend_device();

// While it lives, no operation on the device may give the host a number, nor one whose size the host would
// have to learn. Of all threads.
class NoQuestions {
 public:
  NoQuestions();
  ~NoQuestions();
  NoQuestions(const NoQuestions&) = delete;
  NoQuestions& operator=(const NoQuestions&) = delete;
};

}  // namespace trainyard::runner::testing
