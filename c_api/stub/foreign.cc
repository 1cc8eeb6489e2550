// A LibTorch that no build of Addend serves, as far as tests need one: its name and its version.
#include <map>
#include <string>

namespace caffe2 {
const std::map<std::string, std::string>& GetBuildOptions() {
  static const std::map<std::string, std::string> options = {{"BLAS_INFO", "none"}, {"TORCH_VERSION", "0.99.0"}};
  return options;
}
}  // namespace caffe2
