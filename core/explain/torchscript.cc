// TorchScript files as models.
#include <c10/core/GradMode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/explain/model.h"

namespace addend {
namespace {

namespace jit = torch::jit;

// Nodes outside the dispatcher that only move values about, hand out parameters, or make constants.
bool OnlyMovesValues(const std::string& kind) {
  static const auto& kinds = *new absl::flat_hash_set<std::string>{
      "prim::Constant",       "prim::GetAttr",        "prim::SetAttr",      "prim::If",
      "prim::Loop",           "prim::TupleConstruct", "prim::TupleUnpack",  "prim::TupleIndex",
      "prim::TupleSlice",     "prim::ListConstruct",  "prim::ListUnpack",   "prim::DictConstruct",
      "prim::DictIndex",      "prim::CallMethod",     "prim::CallFunction", "prim::Uninitialized",
      "prim::unchecked_cast", "prim::NumToTensor",    "prim::fork",         "prim::unchecked_unwrap_optional",
      "prim::CreateObject",   "prim::EnumValue",      "prim::Enter",        "prim::Exit",
      "prim::data",           "prim::Store",          "prim::Load",         "prim::Drop",
      "prim::Closure",        "prim::Guard",          "prim::min",          "prim::max"};
  return kinds.contains(kind);
}

struct GraphFacts {
  std::string unseen;  // a tensor operation that tracing cannot see
  bool fused_attention = false;
};

void Scan(const jit::Block* block, GraphFacts& facts) {
  for (const jit::Node* node : block->nodes()) {
    const std::string kind = node->kind().toQualString();
    facts.fused_attention |=
        kind == "aten::_transformer_encoder_layer_fwd" || kind == "aten::_native_multi_head_attention";
    if (facts.unseen.empty() && absl::StartsWith(kind, "prim::") && !OnlyMovesValues(kind)) {
      for (const jit::Value* output : node->outputs()) {
        if (output->type()->isSubtypeOf(*c10::TensorType::get())) facts.unseen = kind;
      }
    }
    for (const jit::Block* inner : node->blocks()) Scan(inner, facts);
  }
}

class ScriptModel : public Model {
 public:
  explicit ScriptModel(jit::Module module) : module_(std::move(module)) {
    for (const jit::Module& inner : module_.modules()) {
      for (const jit::Method& method : inner.get_methods()) Scan(method.graph()->block(), facts_);
    }
    if (!facts_.unseen.empty()) {
      throw Unimplemented(absl::StrCat("the model holds the compiled operation ", facts_.unseen,
                                       ", which tracing cannot see; save it before optimizing or freezing it"));
    }
  }

  c10::IValue Run(const std::vector<c10::IValue>& inputs) override {
    // Optimized graphs fuse operators into kernels of their own, which no dispatcher sees.
    jit::GraphOptimizerEnabledGuard no_fusion(false);
    // LibTorch's modules take their fused attention only without gradients; its parts are what rules cover.
    c10::AutoGradMode grad(facts_.fused_attention);
    return module_.forward(inputs);
  }

  std::vector<std::pair<std::string, at::Tensor>> NamedTensors() const override {
    std::vector<std::pair<std::string, at::Tensor>> named;
    for (const auto& item : module_.named_parameters()) named.emplace_back(item.name, item.value);
    for (const auto& item : module_.named_buffers()) named.emplace_back(item.name, item.value);
    return named;
  }

  std::vector<std::string> ModulePaths() const override {
    std::vector<std::string> paths;
    for (const auto& item : module_.named_modules()) {
      if (!item.name.empty()) paths.push_back(item.name);
    }
    return paths;
  }

 private:
  jit::Module module_;
  GraphFacts facts_;
};

}  // namespace

std::shared_ptr<Model> LoadTorchScript(const std::string& path, const ScriptOptions& options) {
  {
    std::ifstream probe(path, std::ios::binary);
    char byte = 0;
    if (!probe) throw NotFound(absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
    if (!probe.get(byte))
      throw InvalidArgument(absl::StrCat(path, " is not a TorchScript file (it is empty or a folder)"));
  }
  try {
    jit::Module module = jit::load(path, at::Device(at::kCPU));
    module.eval();
    if (options.dtype) module.to(*options.dtype);
    return std::make_shared<ScriptModel>(std::move(module));
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    // What LibTorch says here is a page of its own sources; nobody can act on it.
    throw InvalidArgument(absl::StrCat(path,
                                       " is not a TorchScript file; save one with torch.jit.script(model).save(path)"
                                       " or torch.jit.trace"));
  }
}

}  // namespace addend
