// A shared library that is loaded when it is first needed: programs start and fork faster without it.
#pragma once

#include <string>

namespace trainyard {

// Stays loaded until the process ends. The header of the library must belong to the version in `name`.
class LoadedLibrary {
 public:
  // For example "libcurl.so.4", "that downloads files" and Debian's package "libcurl4". UserError if it cannot be loaded.
  LoadedLibrary(std::string name, const std::string& use, const std::string& package);

  // The address of a function, which converts to a pointer to any function type.
  struct Function {
    void* address;
    template <typename Type>
    operator Type*() const {  // NOLINT(google-explicit-constructor)
      return reinterpret_cast<Type*>(address);
    }
  };

  // UserError if the library has no such function.
  Function function(const char* name) const;

 private:
  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace trainyard
