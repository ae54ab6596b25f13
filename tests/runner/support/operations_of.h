// The names of all tensor operations that `work` calls on this thread.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include <ATen/record_function.h>

namespace trainyard::runner::testing {

inline std::set<std::string> operations_of(const std::function<void()>& work) {
  static thread_local std::set<std::string>* names = nullptr;
  std::set<std::string> called;
  names = &called;
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(
      [](const at::RecordFunction& function) -> std::unique_ptr<at::ObserverContext> {
        names->insert(function.name());
        return nullptr;
      }));
  work();
  at::removeCallback(handle);
  return called;
}

}  // namespace trainyard::runner::testing
