// Runs a fuzzer without its engine: on the files of a corpus, then on bytes that are drawn, or damaged from those, by a
// fixed seed. usage: replay FILE...; ADDEND_FUZZ_ROUNDS says how many are drawn, ADDEND_FUZZ_FIRST where to begin.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

int Run(const std::string& bytes) {
  return LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::string Draw(std::mt19937& random, const std::vector<std::string>& corpus) {
  const auto below = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  std::string bytes;
  if (!corpus.empty() && below(2) == 0) {
    bytes = corpus[below(corpus.size())];
    for (size_t k = 1 + below(8); k > 0 && !bytes.empty(); --k) {
      const size_t where = below(bytes.size());
      switch (below(3)) {
        case 0:
          bytes[where] = static_cast<char>(below(256));
          break;
        case 1:
          bytes.insert(where, 1 + below(4), static_cast<char>(below(256)));
          break;
        default:
          bytes.erase(where, 1 + below(4));
          break;
      }
    }
    return bytes;
  }
  bytes.resize(below(300));
  for (char& byte : bytes) byte = static_cast<char>(below(256));
  return bytes;
}

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> corpus;
  for (int k = 1; k < argc; ++k) {
    std::ifstream file(argv[k], std::ios::binary);
    std::stringstream content;
    content << file.rdbuf();
    corpus.push_back(content.str());
    if (!file || Run(corpus.back()) != 0) {
      std::fprintf(stderr, "FAILED: %s\n", argv[k]);
      return 1;
    }
  }
  const int64_t rounds = FromEnvironment("ADDEND_FUZZ_ROUNDS", 3000);
  const int64_t first = FromEnvironment("ADDEND_FUZZ_FIRST", 0);
  const char* last = std::getenv("ADDEND_FUZZ_KEEP");  // where to write the bytes before they are run
  for (int64_t round = first; round < first + rounds; ++round) {
    std::mt19937 random(static_cast<uint32_t>(20260101 + round));
    const std::string bytes = Draw(random, corpus);
    if (last != nullptr) std::ofstream(last, std::ios::binary) << bytes;
    if (Run(bytes) != 0) {
      std::fprintf(stderr, "FAILED: round %lld\n", static_cast<long long>(round));
      return 1;
    }
  }
  std::printf("ok: %zu files and %lld drawn\n", corpus.size(), static_cast<long long>(rounds));
  return 0;
}
