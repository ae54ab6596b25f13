// A user who may not: what root may always do is forbidden to the process for a while.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

// Acts as a user without rights for as long as it lives, where the test runs as root.
class WithoutRights {
 public:
  WithoutRights() : was_root_(::geteuid() == 0) {
    if (was_root_) REQUIRE(::seteuid(65534) == 0);
  }
  ~WithoutRights() {
    if (was_root_) CHECK(::seteuid(0) == 0);
  }
  WithoutRights(const WithoutRights&) = delete;
  WithoutRights& operator=(const WithoutRights&) = delete;

 private:
  bool was_root_;
};
