// Writes a log of decisions, record by record the same as in every other language, and verifies logs that others wrote.
//
// usage: write_records write LOG COUNT KEEP_INPUTS
//        write_records endless LOG
//        write_records context LOG JSON
//        write_records verify LOG COUNT
#include <addend/addend.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using addend::api::Attribution;
using addend::api::AuditLog;
using addend::api::Model;
using addend::api::Request;
using addend::api::Tensor;
using addend::api::TensorFile;

constexpr char kFolder[] = "docs/examples/models/breast_cancer/";
constexpr int64_t kRows = 200;
constexpr int64_t kColumns = 30;

// Options of record k, in place of random numbers and the clock.
std::string OptionsOf(int64_t k) {
  char text[256];
  std::snprintf(
      text, sizeof(text),
      "{\"salt\": \"%064llx\", \"time\": \"2026-01-01T00:00:00.%06lldZ\", \"context\": {\"application\": %lld}}",
      static_cast<unsigned long long>(k), static_cast<long long>(k), static_cast<long long>(k));
  return text;
}

// `tell`: prints each record as soon as it is acknowledged.
void Write(const std::string& path, int64_t count, bool keep, bool tell) {
  const std::string folder = kFolder;
  const Model model = Model::Load(folder + "model.pt");
  const std::vector<float> rows = TensorFile::Read(folder + "heldout.safetensors").tensor("input").To<float>();
  const Tensor baseline = TensorFile::Read(folder + "baseline.npy").tensor("");
  const AuditLog log(path, keep ? "{\"keep_inputs\": true}" : "{}");
  for (int64_t k = 0; k < count; ++k) {
    const auto first = rows.begin() + (k % kRows) * kColumns;
    Request request;
    request.Input(Tensor::Copy(std::vector<float>(first, first + kColumns), {1, kColumns}));
    request.SplitAlong({1}).Baseline(baseline);
    const std::string line = log.Append(model.Attribute(request), OptionsOf(k));
    if (tell) {
      std::puts(line.c_str());
      std::fflush(stdout);
    }
  }
}

// One record with a context.
void WriteContext(const std::string& path, const std::string& context) {
  const std::string folder = kFolder;
  Request request;
  request.Input(TensorFile::Read(folder + "sample.safetensors").tensor("input")).SplitAlong({1}).Baseline(0.0);
  AuditLog(path).Append(Model::Load(folder + "model.pt").Attribute(request), "{\"context\": " + context + "}");
}

int Verify(const std::string& path, const std::string& count) {
  const std::string found = AuditLog::Verify(path);
  const bool whole = found.find("\"verified\":true") != std::string::npos &&
                     found.find("\"records\":" + count + ",") != std::string::npos;
  if (!whole) std::fprintf(stderr, "%s\n", found.c_str());
  return whole ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    addend::api::SetNumThreads(1);
    if (what == "write" && argc == 5) {
      Write(argv[2], std::atoll(argv[3]), std::string(argv[4]) == "1", false);
      return 0;
    }
    if (what == "endless" && argc == 3) {
      Write(argv[2], std::numeric_limits<int64_t>::max(), false, true);
      return 0;
    }
    if (what == "context" && argc == 4) {
      WriteContext(argv[2], argv[3]);
      return 0;
    }
    if (what == "verify" && argc == 4) return Verify(argv[2], argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: %s write LOG COUNT KEEP_INPUTS | endless LOG | context LOG JSON | verify LOG COUNT\n",
               argv[0]);
  return 2;
}
