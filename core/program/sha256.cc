#include "core/program/sha256.h"

#include <algorithm>
#include <cstring>

namespace addend {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr uint32_t kRound[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

uint32_t Rotated(uint32_t x, int by) { return (x >> by) | (x << (32 - by)); }

// Takes in one block of 64 bytes.
void Compress(const unsigned char* block, std::array<uint32_t, 8>& state) {
  uint32_t w[64];
  for (int t = 0; t < 16; ++t) {
    const unsigned char* b = block + 4 * t;
    w[t] = uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | uint32_t{b[3]};
  }
  for (int t = 16; t < 64; ++t) {
    const uint32_t s0 = Rotated(w[t - 15], 7) ^ Rotated(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t s1 = Rotated(w[t - 2], 17) ^ Rotated(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int t = 0; t < 64; ++t) {
    const uint32_t s1 = Rotated(e, 6) ^ Rotated(e, 11) ^ Rotated(e, 25);
    const uint32_t choice = (e & f) ^ (~e & g);
    const uint32_t t1 = h + s1 + choice + kRound[t] + w[t];
    const uint32_t s0 = Rotated(a, 2) ^ Rotated(a, 13) ^ Rotated(a, 22);
    const uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + s0 + majority;
  }
  const uint32_t added[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += added[i];
}

}  // namespace

void Sha256Digest::Add(const char* data, size_t size) {
  bytes_ += size;
  while (size > 0) {
    if (held_ == 0 && size >= block_.size()) {
      Compress(reinterpret_cast<const unsigned char*>(data), state_);
      data += block_.size();
      size -= block_.size();
      continue;
    }
    const size_t taken = std::min(size, block_.size() - held_);
    std::memcpy(block_.data() + held_, data, taken);
    held_ += taken;
    data += taken;
    size -= taken;
    if (held_ < block_.size()) return;
    Compress(block_.data(), state_);
    held_ = 0;
  }
}

std::string Sha256Digest::Hex() {
  const uint64_t bits = bytes_ * 8;
  // A one, zeros, and the number of bits in the last 8 bytes of a block.
  const char one = static_cast<char>(0x80);
  Add(&one, 1);
  const char zero = 0;
  while (held_ != block_.size() - 8) Add(&zero, 1);
  char length[8];
  for (int i = 0; i < 8; ++i) length[i] = static_cast<char>(bits >> (56 - 8 * i));
  Add(length, 8);
  std::string text;
  for (const uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  }
  return text;
}

std::string Sha256(const std::string& bytes) {
  Sha256Digest digest;
  digest.Add(bytes.data(), bytes.size());
  return digest.Hex();
}

}  // namespace addend
