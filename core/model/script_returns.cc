#include "core/model/script_returns.h"

#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/intercept/tracing_scope.h"

namespace addend {
namespace {

namespace jit = torch::jit;

const ScriptPaths*& PathsHere() {
  thread_local const ScriptPaths* paths = nullptr;
  return paths;
}

// The tensors of a value in the order in which they stand there.
void AddTensors(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) AddTensors(element, tensors);
  } else if (value.isTuple()) {
    for (const c10::IValue& element : value.toTupleRef().elements()) AddTensors(element, tensors);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) AddTensors(entry.value(), tensors);
  }
}

void Tell(jit::Stack& stack) {
  const c10::IValue returned = jit::pop(stack);
  const c10::IValue module = jit::pop(stack);
  const ScriptPaths* paths = PathsHere();
  if (paths == nullptr || !module.isObject()) return;
  const std::string* path = paths->Find(module.toObject().get());
  if (path == nullptr) return;
  std::vector<at::Tensor> tensors;
  AddTensors(returned, tensors);
  if (tensors.empty()) tensors.emplace_back();
  for (size_t k = 0; k < tensors.size(); ++k) TellModuleOutput(*path, static_cast<int64_t>(k), tensors[k]);
}

void Register() {
  static const bool registered = [] {
    // Another copy of this library may have done so.
    if (!jit::getAllOperatorsFor(c10::Symbol::fromQualString(kModuleReturned)).empty()) return false;
    // Conservative: TorchScript keeps calls that have no result. Not an operator of the dispatcher: its arguments are
    // of any type, and it computes nothing.
    jit::registerOperator(jit::Operator(
        std::string(kModuleReturned) + "(Any module, Any returned) -> ()", [](jit::Stack& stack) { Tell(stack); },
        c10::AliasAnalysisKind::CONSERVATIVE));
    return true;
  }();
  static_cast<void>(registered);
}

bool IsModule(const c10::TypePtr& type) {
  if (const auto object = type->cast<c10::ClassType>()) return object->is_module();
  const auto interface = type->cast<c10::InterfaceType>();
  return interface && interface->is_module();
}

// A traced file has a method for each call of a module ("forward", "forward1", ...), a scripted one for each overload
// ("forward__0").
bool IsForward(const std::string& method) {
  absl::string_view number = method;
  if (!absl::ConsumePrefix(&number, "forward")) return false;
  absl::ConsumePrefix(&number, "__");
  return std::all_of(number.begin(), number.end(), [](char c) { return absl::ascii_isdigit(c); });
}

bool CallsModule(const jit::Node& node) {
  return node.kind() == c10::prim::CallMethod && IsModule(node.input(0)->type()) && IsForward(node.s(c10::attr::name));
}

// Whether a call is one that its author wrote. torch.jit.trace() makes calls of modules itself, which stand in no
// source, and gives them the tensors that others use, in the order of their use.
bool IsWritten(const jit::Node& call) {
  const auto original = call.sourceRange().findSourceRangeThatGenerated();
  return original && original->size() > 0;
}

using Types = absl::flat_hash_set<const c10::Type*>;

// The types of modules that give several tensors, of which nobody knows in which order they returned them.
void AddOutOfOrder(const jit::Block* block, Types& types) {
  for (const jit::Node* node : block->nodes()) {
    for (const jit::Block* inner : node->blocks()) AddOutOfOrder(inner, types);
    if (!CallsModule(*node) || IsWritten(*node)) continue;
    if (!node->output()->type()->isSubtypeOf(*c10::TensorType::get())) types.insert(node->input(0)->type().get());
  }
}

void AddTold(jit::Block* block, const Types& out_of_order) {
  const auto own = c10::Symbol::fromQualString(kModuleReturned);
  for (jit::Node* node : block->nodes()) {
    for (jit::Block* inner : node->blocks()) AddTold(inner, out_of_order);
    if (!CallsModule(*node) || out_of_order.contains(node->input(0)->type().get())) continue;
    if (node->next()->kind() == own) continue;  // of a module that was changed before
    jit::Node* told = node->owningGraph()->create(own, {node->input(0), node->output()}, 0);
    told->setSourceRange(node->sourceRange());
    told->insertAfter(node);
  }
}

}  // namespace

void TellReturns(const jit::Module& module) {
  Register();
  std::vector<std::shared_ptr<jit::Graph>> graphs;
  for (const jit::Module& inner : module.modules()) {
    for (const jit::Method& method : inner.get_methods()) graphs.push_back(method.graph());
  }
  Types out_of_order;
  for (const auto& graph : graphs) AddOutOfOrder(graph->block(), out_of_order);
  for (const auto& graph : graphs) AddTold(graph->block(), out_of_order);
}

ScriptPaths::ScriptPaths(const jit::Module& module) {
  for (const auto& item : module.named_modules()) {
    if (!item.name.empty()) paths_.try_emplace(item.value._ivalue().get(), item.name);
  }
}

const std::string* ScriptPaths::Find(const void* object) const {
  const auto found = paths_.find(object);
  return found == paths_.end() ? nullptr : &found->second;
}

ScriptReturnsScope::ScriptReturnsScope(const ScriptPaths* paths) : before_(PathsHere()) { PathsHere() = paths; }
ScriptReturnsScope::~ScriptReturnsScope() { PathsHere() = before_; }

}  // namespace addend
