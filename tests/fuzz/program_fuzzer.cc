// Program files: whatever they hold, they are read or refused with one clear line, and what was read can be printed,
// searched and written again.
//
// The first byte chooses. Odd: what follows are the lengths and the bytes of the two files. Even: a real program is
// taken, and what follows says which of its entries become something hostile.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/model.h"
#include "core/program/code_trace.h"
#include "core/program/graph.h"
#include "core/program/graph_record.h"
#include "core/program/program_file.h"
#include "core/program/replay.h"
#include "core/recording/record_program.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/json_damage.h"

namespace addend {
namespace {

// Views, writes, lists, several results, guards of all kinds, constants, parameters and buffers.
at::Tensor Work(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& buffer) {
  at::Tensor y = at::linear(x, weight) + at::tensor({1.0, 2.0, 3.0}, at::kFloat);
  y.select(0, 0).mul_(2);
  if (y.sum().item<float>() > -1000) y.t_().t_();
  buffer.add_(1);
  const auto [values, indices] = y.max(1);
  const at::Tensor found = (y > 0).nonzero();
  return at::cat({y, at::stack({values, values, values}, 1), buffer.expand({1, 3})}, 0).index({indices}) +
         found.numel();
}

const EncodedProgram& Seed() {
  static const auto& seed = *[] {
    const at::Tensor weight = at::arange(9, at::kFloat).view({3, 3});
    const at::Tensor buffer = at::ones({3});
    const auto model = FromFunction([=](const std::vector<at::Tensor>& in) { return Work(in[0], weight, buffer); },
                                    {{"layer.weight", weight}, {"layer.buffer", buffer}}, {"layer"}, {"layer.buffer"});
    return new EncodedProgram(EncodeProgram(*Record(*model, {at::arange(6, at::kFloat).view({2, 3})}).program));
  }();
  return seed;
}

EncodedProgram Draw(Bytes& bytes) {
  EncodedProgram encoded;
  if (bytes.Next() % 2 == 1) {
    const size_t length = bytes.Below(65536);
    std::string rest = bytes.Rest();
    encoded.graph = rest.substr(0, length);
    encoded.weights = rest.substr(std::min(length, rest.size()));
    return encoded;
  }
  encoded = Seed();
  const uint8_t damage = bytes.Next();
  if (damage % 8 == 7) encoded.graph.resize(bytes.Below(encoded.graph.size()));
  if (damage % 8 == 6) encoded.weights.resize(bytes.Below(encoded.weights.size()));
  if (damage % 8 == 5) encoded.weights[bytes.Below(encoded.weights.size())] = static_cast<char>(bytes.Next());
  if (damage % 8 < 5) {
    Json document = Json::parse(encoded.graph);
    // An edit may copy the document into itself.
    for (int k = 0; k == 0 || (k < 6 && !bytes.empty()); ++k) {
      Json* entry = Choose(document, bytes);
      Edit(document, entry, bytes.Next() % kNumEdits, bytes);
    }
    encoded.graph = document.dump();
  }
  return encoded;
}

// True when the program is refused as it should be.
bool Refused(const Error& e) {
  const std::string text = e.what();
  const bool clear = !text.empty() && text.find('\n') == std::string::npos && e.code() != absl::StatusCode::kInternal;
  if (!clear) std::fprintf(stderr, "unclear: %s\n", text.c_str());
  return clear;
}

}  // namespace
}  // namespace addend

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  addend::Bytes bytes(data, size);
  const addend::EncodedProgram encoded = addend::Draw(bytes);
  std::shared_ptr<const addend::RecordedProgram> program;
  try {
    program = std::make_shared<const addend::RecordedProgram>(addend::DecodeProgram(encoded, "bytes"));
  } catch (const addend::Error& e) {
    return addend::Refused(e) ? 0 : -1;
  }
  try {
    for (size_t c = 0; c < program->calls.size(); ++c) {
      addend::DescribeCall(*program, static_cast<int>(c));
      addend::PositionOf(*program, static_cast<int>(c));
      addend::Dependencies(*program, static_cast<int>(c));
    }
    const addend::Replay replay(program);
    const addend::Graph graph(program);
    addend::GraphRecord(graph);
    addend::GraphDot(graph);
    addend::CodeTrace(*program);
    // A program is written as it was read.
    const addend::EncodedProgram again = addend::EncodeProgram(*program);
    const addend::EncodedProgram twice = addend::EncodeProgram(addend::DecodeProgram(again, "again"));
    if (again.graph != twice.graph || again.weights != twice.weights) return -1;
  } catch (const addend::Error& e) {
    return addend::Refused(e) ? 0 : -1;
  }
  return 0;
}
