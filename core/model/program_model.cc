#include "core/model/program_model.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/replay.h"
#include "core/program/replay_notes.h"

namespace addend {
namespace {

class ProgramModel : public Model {
 public:
  explicit ProgramModel(std::shared_ptr<const RecordedProgram> program) : replay_(std::move(program)) {}

  c10::IValue Run(const std::vector<c10::IValue>& inputs) override {
    ReplayOptions options;
    options.wider = ComputedInHere() != at::ScalarType::Undefined;
    return replay_.Run(inputs, options).output;
  }

  std::vector<std::pair<std::string, at::Tensor>> NamedTensors() const override {
    std::vector<std::pair<std::string, at::Tensor>> named;
    for (const RecordedValue& value : replay_.program().values) {
      if (value.kind != ValueKind::kParameter && value.kind != ValueKind::kBuffer) continue;
      const at::Tensor& initial = replay_.program().storages[value.storage].initial;
      if (!initial.defined()) continue;
      named.emplace_back(value.name, at::empty({0}, initial.options().dtype(value.dtype))
                                         .set_(initial.storage(), value.geometry.offset, value.geometry.sizes,
                                               value.geometry.strides));
    }
    return named;
  }

  std::vector<std::string> BufferNames() const override {
    std::vector<std::string> names;
    for (const RecordedValue& value : replay_.program().values) {
      if (value.kind == ValueKind::kBuffer) names.push_back(value.name);
    }
    return names;
  }

  std::vector<std::string> ModulePaths() const override { return replay_.program().module_paths; }

  std::vector<std::string> Notes() const override {
    std::vector<std::string> notes;
    const std::string other = OtherLibTorch(replay_.program());
    if (!other.empty()) {
      notes.push_back(absl::StrCat("the model is a program; ", other, ", whose operators may compute otherwise"));
    }
    const std::string saved = NoteOnSaved(replay_.program());
    if (!saved.empty()) notes.push_back(saved);
    return notes;
  }

 private:
  Replay replay_;
};

}  // namespace

std::shared_ptr<Model> FromProgram(std::shared_ptr<const RecordedProgram> program) {
  return std::make_shared<ProgramModel>(std::move(program));
}

}  // namespace addend
