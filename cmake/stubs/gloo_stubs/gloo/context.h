// Only the declarations that the headers of LibTorch use. The library has the real classes.
#pragma once

#include <chrono>
#include <memory>

#include <gloo/transport/device.h>

namespace gloo {
namespace transport {
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = default;
};
}  // namespace transport

class Context {
 public:
  void setTimeout(std::chrono::milliseconds);
};
}  // namespace gloo
