#include "core/base/crc32.h"

#include <gtest/gtest.h>

#include <string>

namespace addend {
namespace {

// The value that every description of CRC-32 gives as its check.
TEST(Crc32, IsThatOfZipArchives) {
  const std::string digits = "123456789";
  EXPECT_EQ(Crc32(digits.data(), digits.size()), 0xcbf43926u);
  EXPECT_EQ(Crc32(digits.data(), 0), 0u);
}

TEST(Crc32, GoesOnBehindOtherBytes) {
  const std::string digits = "123456789";
  for (size_t k = 0; k <= digits.size(); ++k) {
    EXPECT_EQ(Crc32(digits.data() + k, digits.size() - k, Crc32(digits.data(), k)), 0xcbf43926u);
  }
}

TEST(Crc32, EveryFlippedBitChangesIt) {
  std::string bytes(257, 'x');
  const uint32_t whole = Crc32(bytes.data(), bytes.size());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(Crc32(bytes.data(), bytes.size()), whole) << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace
}  // namespace addend
