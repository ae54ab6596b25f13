#include "base/loaded_library.h"

#include <utility>

#include <dlfcn.h>

#include "base/error.h"

namespace trainyard {

LoadedLibrary::LoadedLibrary(std::string name, const std::string& use, const std::string& package)
    : name_(std::move(name)), handle_(::dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ != nullptr) return;
  const char* why = ::dlerror();
  throw UserError("cannot load the library " + use + ": " + (why == nullptr ? name_ : why),
                  "install the package that contains it, in Debian " + package);
}

LoadedLibrary::Function LoadedLibrary::function(const char* name) const {
  void* const address = ::dlsym(handle_, name);
  if (address == nullptr)
    throw UserError("the library " + name_ + " has no function " + name, "install its current version");
  return {address};
}

}  // namespace trainyard
