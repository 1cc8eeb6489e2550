// Headers of most tests: precompiled_library.h and what follows.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/bazel/precompiled_library.h"
