#include "core/model/script_returns.h"

#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

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

// Whether a call is one that its author wrote. torch.jit.trace() makes calls of modules itself, which stand in no
// source, and gives them the tensors that others use, in the order of their use.
bool IsWritten(const jit::Node& call) {
  const auto original = call.sourceRange().findSourceRangeThatGenerated();
  return original && original->size() > 0;
}

// A traced file has a method for each call of a module ("forward", "forward1", ...), a scripted one for each overload
// ("forward__0").
bool CallsForward(const jit::Node& call) {
  absl::string_view number = call.s(c10::attr::name);
  if (!absl::ConsumePrefix(&number, "forward")) return false;
  const bool overload = absl::ConsumePrefix(&number, "__");
  if (!number.empty() && overload != IsWritten(call)) return false;
  return std::all_of(number.begin(), number.end(), [](char c) { return absl::ascii_isdigit(c); });
}

bool CallsModule(const jit::Node& node) {
  return node.kind() == c10::prim::CallMethod && IsModule(node.input(0)->type()) && CallsForward(node);
}

// Whether AddTold() has seen a call already: modules of one class share their graphs.
bool IsTold(const jit::Node& call) {
  const jit::Node* next = call.next();
  // A node that makes the value to be told may stand between both.
  if (next->kind() == c10::prim::TupleConstruct || next->kind() == c10::prim::Constant) next = next->next();
  return next->kind() == c10::Symbol::fromQualString(kModuleReturned);
}

void AddTold(jit::Block* block) {
  const auto own = c10::Symbol::fromQualString(kModuleReturned);
  for (jit::Node* node : block->nodes()) {
    for (jit::Block* inner : node->blocks()) AddTold(inner);
    if (!CallsModule(*node) || IsTold(*node)) continue;
    const jit::WithInsertPoint behind(node->next());
    jit::Graph* graph = node->owningGraph();
    // A traced call of several tensors does not tell in which order they were returned, and one of none not whether
    // the module returned its input.
    const bool known = IsWritten(*node) || node->output()->type()->isSubtypeOf(*c10::TensorType::get());
    jit::Value* returned = known ? node->output() : graph->insertConstant(c10::IValue());
    // A traced call has the only tensor that others use, of however many; told twice, it has no number.
    if (known && !IsWritten(*node)) returned = graph->insertNode(graph->createTuple({returned, returned}))->output();
    jit::Node* told = graph->create(own, {node->input(0), returned}, 0);
    told->setSourceRange(node->sourceRange());
    graph->insertNode(told);
  }
}

using Graphs = std::vector<std::shared_ptr<jit::Graph>>;

// The graphs of the functions that a block calls, and of those that they call, each once.
void AddFunctions(const jit::Block* block, Graphs& graphs) {
  for (const jit::Node* node : block->nodes()) {
    for (const jit::Block* inner : node->blocks()) AddFunctions(inner, graphs);
    if (node->kind() != c10::prim::CallFunction) continue;
    jit::GraphFunction* called =
        jit::tryToGraphFunction(*node->input(0)->type()->expectRef<c10::FunctionType>().function());
    if (called == nullptr || std::find(graphs.begin(), graphs.end(), called->graph()) != graphs.end()) continue;
    graphs.push_back(called->graph());
    AddFunctions(called->graph()->block(), graphs);
  }
}

}  // namespace

void TellReturns(const jit::Module& module) {
  Register();
  Graphs graphs;
  for (const jit::Module& inner : module.modules()) {
    for (const jit::Method& method : inner.get_methods()) graphs.push_back(method.graph());
  }
  for (size_t k = 0, methods = graphs.size(); k < methods; ++k) {
    const std::shared_ptr<jit::Graph> graph = graphs[k];
    AddFunctions(graph->block(), graphs);
  }
  for (const auto& graph : graphs) AddTold(graph->block());
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
