// Mark of an error of the disk: it is full or fails, or a file has reached the limit of `ulimit -f`.
// The command was right, so `trainyard` exits with 1, and with 2 for any other UserError.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/error.h"

namespace trainyard {

class DiskFailure {
 public:
  virtual ~DiskFailure() = default;
};

// An error of class `Error` with the mark.
template <class Error>
class OfDisk : public Error, public DiskFailure {
 public:
  using Error::Error;
};

// Whether `error`, an errno, is a failure of the disk.
inline bool is_disk_failure(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO;
}

// Throw the UserError "WHAT: reason of `error`" for something that cannot be written, marked if the disk is the
// reason.
[[noreturn]] inline void throw_unwritten(const std::string& what, const std::string& advice,
                                         int error = errno) {
  const std::string message = what + ": " + std::generic_category().message(error);
  if (is_disk_failure(error)) throw OfDisk<UserError>(message, advice);
  throw UserError(message, advice);
}

// The same for a file that was opened. Then always the disk is the reason. Call it directly after the file is
// closed, because a stream does not keep the errno.
[[noreturn]] inline void throw_incomplete(const std::string& what, const std::string& advice) {
  throw_unwritten(what, advice, is_disk_failure(errno) ? errno : EIO);
}

}  // namespace trainyard
