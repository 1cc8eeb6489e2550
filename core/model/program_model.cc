#include "core/model/program_model.h"

#include <ATen/ops/empty.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/random_state.h"
#include "core/program/replay.h"
#include "core/program/replay_notes.h"

namespace addend {
namespace {

// State of a program: that of its tensors, and of the generators that its calls were given, which it draws from as the
// recorded model did. A default generator is given to nobody; see RandomState.
class ProgramState : public ModelState {
 public:
  ProgramState(std::shared_ptr<ModelState> tensors, const RecordedProgram& program) : tensors_(std::move(tensors)) {
    for (const at::Generator& generator : GivenGenerators(program)) generators_.Add(generator);
  }

  void Restore() override {
    tensors_->Restore();
    generators_.Restore();
  }

  // Draws are no state that a next run would have to find: notes tell of them.
  std::string Difference() const override { return tensors_->Difference(); }

 private:
  std::shared_ptr<ModelState> tensors_;
  GeneratorStates generators_;
};

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

  std::shared_ptr<ModelState> KeepState() const override {
    return std::make_shared<ProgramState>(Model::KeepState(), replay_.program());
  }

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
