// Replays damaged tensor files: whatever the bytes, reading gives tensors or one of our errors. The damage is drawn
// from a fixed seed, so that a failure can be repeated. ADDEND_FUZZ_ROUNDS sets how many files are tried.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

std::string NpyHeader(const std::string& descr, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize((header.size() + 10) / 64 * 64 + 64 - 10 - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

std::vector<std::string> Seeds() {
  TensorFile file;
  file.tensors = {{"input", at::rand({2, 3})}, {"label", at::arange(4)}, {"flag", at::ones({3}, at::kBool)}};
  file.metadata = {{"kind", "table"}, {"names", "[\"a\", \"b\"]"}};
  return {EncodeSafetensors(file), NpyHeader("<f4", "(2, 3)", std::string(24, '\1')),
          NpyHeader("<i8", "(3,)", std::string(24, '\2')), NpyHeader("|b1", "()", std::string(1, '\1'))};
}

std::string Damage(std::string bytes, std::mt19937& random) {
  const auto at_random = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n)(random); };
  const int times = 1 + static_cast<int>(at_random(3));
  for (int k = 0; k < times && !bytes.empty(); ++k) {
    const size_t where = at_random(bytes.size() - 1);
    switch (at_random(6)) {
      case 0:
        bytes[where] = static_cast<char>(at_random(255));
        break;
      case 1:
        bytes.resize(where);
        break;
      case 2:
        bytes.insert(where, std::string(1 + at_random(8), static_cast<char>(at_random(255))));
        break;
      case 3:
        bytes.erase(where, 1 + at_random(8));
        break;
      case 4:
        bytes[where] = "0123456789-[]{},:\"'"[at_random(18)];
        break;  // digits and punctuation of headers
      case 5:
        bytes += bytes.substr(where);
        break;
      default:
        bytes[at_random(std::min<size_t>(bytes.size() - 1, 9))] = static_cast<char>(at_random(255));
        break;
    }
  }
  return bytes;
}

TEST(TensorFileFuzz, DamagedFilesAreReadOrRefused) {
  const char* text = std::getenv("ADDEND_FUZZ_ROUNDS");
  const int rounds = text != nullptr ? std::atoi(text) : 20000;
  const std::vector<std::string> seeds = Seeds();
  for (const std::string& seed : seeds) ASSERT_NO_THROW(DecodeTensorFile(seed, "seed"));
  std::mt19937 random(20260101);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string bytes = Damage(seeds[round % seeds.size()], random);
    try {
      for (const auto& entry : DecodeTensorFile(bytes, "damaged").tensors) {
        // Tensors are read whole: every element can be touched.
        ASSERT_EQ(entry.second.to(at::kDouble).numel(), entry.second.numel());
        ASSERT_LE(entry.second.nbytes(), bytes.size());
      }
    } catch (const Error& e) {
      ++refused;
      ASSERT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    }
  }
  // Damage that nobody notices would mean that nothing was damaged.
  EXPECT_GT(refused, rounds / 4);
}

}  // namespace
}  // namespace addend
