#include "core/program/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace addend {
namespace {

// The examples that NIST publishes beside FIPS 180-4 (SHA256.pdf and "additional examples").
TEST(Sha256Test, PublishedVectors) {
  EXPECT_EQ(Sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                   "mnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(Sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(Sha256("\xbd"), "68325720aabd7c82f30f554b313d0570c95accbb7dc4b5aae11204c08ffe732b");
  EXPECT_EQ(Sha256("\xc9\x8c\x8e\x55"), "7abc22c0ae5af26ce93dbb94433a0e0b2e119d014f8e7f65bd56c61ccccd9504");
}

// Around the end of a block, where the length no longer fits.
TEST(Sha256Test, PublishedVectorsOfZeros) {
  const auto zeros = [](size_t count) { return Sha256(std::string(count, '\0')); };
  EXPECT_EQ(zeros(55), "02779466cdec163811d078815c633f21901413081449002f24aa3e80f0b88ef7");
  EXPECT_EQ(zeros(56), "d4817aa5497628e7c77e6b606107042bbba3130888c5f47a375e6179be789fbb");
  EXPECT_EQ(zeros(57), "65a16cb7861335d5ace3c60718b5052e44660726da4cd13bb745381b235a1785");
  EXPECT_EQ(zeros(64), "f5a5fd42d16a20302798ef6ed309979b43003d2320d9f0e8ea9831a92759fb4b");
  EXPECT_EQ(zeros(1000), "541b3e9daa09b20bf85fa273e5cbd3e80185aa4ec298e765db87742b70138a53");
  EXPECT_EQ(zeros(1'000'000), "d29751f2649b32ff572b5e0a9f541ea660a50f94ff0beedfb0b692b924cc8025");
}

TEST(Sha256Test, PiecesMakeNoDifference) {
  std::string bytes;
  for (int i = 0; i < 500; ++i) bytes += static_cast<char>(i * 37);
  const std::string expected = Sha256(bytes);
  for (size_t piece = 1; piece < 200; ++piece) {
    Sha256Digest digest;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      digest.Add(bytes.data() + at, std::min(piece, bytes.size() - at));
    }
    EXPECT_EQ(digest.Hex(), expected) << piece;
  }
}

}  // namespace
}  // namespace addend
