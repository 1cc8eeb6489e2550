// Choices drawn from the bytes of a fuzzer: the same bytes give the same choices, and at their end everything is zero.
#ifndef ADDEND_TESTS_FUZZ_BYTES_H_
#define ADDEND_TESTS_FUZZ_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace addend {

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }
  uint8_t Next() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  // A number from 0 to count - 1.
  size_t Below(size_t count) { return (Next() + size_t{256} * Next()) % count; }
  int64_t Word() {
    uint64_t word = 0;
    for (int k = 0; k < 8; ++k) word = word << 8 | Next();
    return static_cast<int64_t>(word);
  }
  // The bytes that are left.
  std::string Rest() {
    std::string rest(reinterpret_cast<const char*>(data_), size_);
    size_ = 0;
    return rest;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace addend

#endif  // ADDEND_TESTS_FUZZ_BYTES_H_
