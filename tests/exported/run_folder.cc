// Runs every exported program of some folders, as tests/exported/write.py writes them, and prints what became of each:
// the largest difference from what the writer's PyTorch gave, or why the program is refused.
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "tests/exported/written.h"

int main(int argc, char** argv) {
  using namespace addend;  // NOLINT
  const c10::AutoGradMode no_grad(false);
  int ran = 0;
  int refused = 0;
  int wrong = 0;
  double worst = 0;
  for (int a = 1; a < argc; ++a) {
    for (const std::string& path : ExportedProgramsIn(argv[a])) {
      const std::string name = std::filesystem::path(path).filename().string();
      const WrittenResult result = RunWritten(path);
      if (!result.refusal.empty()) {
        ++refused;
        std::printf("%-28s refused: %s\n", name.c_str(), result.refusal.c_str());
        continue;
      }
      const bool good = result.difference < 1e-5;
      ++(good ? ran : wrong);
      if (good) worst = std::max(worst, result.difference);
      std::printf("%-28s %s %.1e, loaded in %.0f ms, run in %.1f ms%s\n", name.c_str(), good ? "ran  " : "WRONG",
                  result.difference, result.load_ms, result.run_ms, result.note.c_str());
    }
  }
  std::printf("%d ran (worst difference %.1e), %d refused, %d wrong\n", ran, worst, refused, wrong);
  return wrong == 0 ? 0 : 1;
}
