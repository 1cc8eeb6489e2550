// TorchScript files as models.
#include "core/model/torchscript.h"

#include <c10/core/GradMode.h>
#include <sys/stat.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <streambuf>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/intercept/own_operators.h"
#include "core/model/script_returns.h"

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
  bool autocast = false;
  bool fused_attention = false;
  bool forks = false;                                // runs parts of the model on other threads
  absl::flat_hash_set<const jit::Graph*> functions;  // that were scanned, beside the methods of modules
};

// Whether a node enters autocast. PyTorch casts for it in a pass of its own, behind which the operators are others.
bool EntersAutocast(const jit::Node& node) {
  if (node.kind() != c10::prim::Enter) return false;
  const auto type = node.input(0)->type()->cast<c10::ClassType>();
  if (!type || !type->name() || !absl::StrContains(type->name()->qualifiedName(), "autocast_mode")) return false;
  // It may say that it is off, as models do whose numbers half types do not hold.
  for (const jit::Use& use : node.input(0)->uses()) {
    if (use.user->kind() != c10::prim::CallMethod || use.user->s(c10::attr::name) != "__init__") continue;
    const jit::Function* init = type->findMethod("__init__");
    if (init == nullptr) continue;
    const auto at = init->getSchema().argumentIndexWithName("enabled");
    if (!at || static_cast<size_t>(*at) >= use.user->inputs().size()) continue;
    const auto enabled = jit::toIValue(use.user->input(*at));
    if (enabled && enabled->isBool()) return enabled->toBool();
  }
  return true;
}

void Scan(const jit::Block* block, GraphFacts& facts) {
  for (const jit::Node* node : block->nodes()) {
    if (node->kind() == c10::prim::CallFunction) {
      jit::GraphFunction* called =
          jit::tryToGraphFunction(*node->input(0)->type()->expectRef<c10::FunctionType>().function());
      if (called != nullptr && facts.functions.insert(called->graph().get()).second) {
        Scan(called->graph()->block(), facts);
      }
    }
    facts.autocast |= EntersAutocast(*node);
    facts.forks |= node->kind() == c10::prim::fork;
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

// PyTorch runs a file after passes of its own; of these one is not without consequence. A traced file keeps a number
// that the model multiplied by as a tensor of float64 without dimensions, and float64 is what comes of it beside
// integers. PyTorch makes such constants numbers again, which take part in no promotion, and so do we.
bool TakesConstantAsNumber(const jit::Node& node) {
  const c10::FunctionSchema* schema = node.maybeSchema();
  if (schema == nullptr || schema->overload_name() != "Tensor") return false;
  const std::string& name = schema->name();
  return name == "aten::add" || name == "aten::sub" || name == "aten::mul" || name == "aten::div";
}

// See above, and Note [Elements that leave without an operator].
void Adapt(jit::Block* block) {
  for (jit::Node* node : block->nodes()) {
    for (jit::Block* inner : node->blocks()) Adapt(inner);
    const jit::WithInsertPoint before(node);
    if (node->kind() == c10::prim::tolist) {
      const auto own = c10::Symbol::fromQualString(kElementsReadOutside);
      if (node->prev()->kind() == own) continue;  // of a module that was adapted before
      jit::Graph* graph = node->owningGraph();
      jit::Node* seen = graph->create(own, {node->input(0)});
      seen->output()->setType(c10::IntType::get());
      seen->setSourceRange(node->sourceRange());
      graph->insertNode(seen);
    } else if (TakesConstantAsNumber(*node)) {
      const auto other = jit::toIValue(node->input(1));
      if (!other || !other->isTensor() || !other->toTensor().defined() || other->toTensor().dim() != 0) continue;
      node->replaceInput(1, node->owningGraph()->insertConstant(other->toTensor().item()));
    }
  }
}

Position PositionOf(const jit::Node& node) {
  Position position;
  position.op = node.kind().toQualString();
  const auto original = node.sourceRange().findSourceRangeThatGenerated();
  if (const auto place = (original ? *original : node.sourceRange()).file_line_col()) {
    position.file = std::get<0>(*place);
    position.line = static_cast<int64_t>(std::get<1>(*place));
  }
  return position;
}

void AddCalls(const jit::Block* block, std::vector<ModelCall>& calls) {
  for (const jit::Node* node : block->nodes()) {
    for (const jit::Block* inner : node->blocks()) AddCalls(inner, calls);
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (schema == nullptr || absl::StartsWith(schema->name(), "prim::")) continue;
    ModelCall call;
    call.op = schema->name();
    call.overload = schema->overload_name();
    call.position = PositionOf(*node);
    for (const char* flag : {"train", "training"}) {
      const auto at = schema->argumentIndexWithName(flag);
      if (!at || static_cast<size_t>(*at) >= node->inputs().size()) continue;
      const auto value = jit::toIValue(node->inputs()[*at]);
      call.training |= value && value->isBool() && value->toBool();
    }
    calls.push_back(std::move(call));
  }
}

// Everything that the objects of a module hold: what their attributes are bound to, what lists and dictionaries hold,
// on any depth, and the elements of tensors that are no parameters.
class ScriptState : public ModelState {
 public:
  explicit ScriptState(const jit::Module& module) {
    for (const auto& item : module.named_parameters()) learned_.insert(item.value.unsafeGetTensorImpl());
    Keep("", module._ivalue());
  }

  void Restore() override {
    for (const Attribute& one : attributes_) {
      if (!one.object->getSlot(one.slot).is(one.before)) one.object->setSlot(one.slot, one.before);
    }
    for (List& one : lists_) {
      if (!Differs(one)) continue;
      one.list.clear();
      for (const c10::IValue& value : one.before) one.list.push_back(value);
    }
    for (Dict& one : dicts_) {
      if (!Differs(one)) continue;
      one.dict.clear();
      for (const auto& [key, value] : one.before) one.dict.insert(key, value);
    }
    tensors_.Restore();
  }

  std::string Difference() const override {
    for (const Attribute& one : attributes_) {
      if (!one.object->getSlot(one.slot).is(one.before)) return one.name;
    }
    for (const List& one : lists_) {
      if (Differs(one)) return one.name;
    }
    for (const Dict& one : dicts_) {
      if (Differs(one)) return one.name;
    }
    return tensors_.Difference();
  }

 private:
  struct Attribute {
    std::string name;
    c10::intrusive_ptr<c10::ivalue::Object> object;
    size_t slot;
    c10::IValue before;
  };
  struct List {
    std::string name;
    c10::List<c10::IValue> list;
    std::vector<c10::IValue> before;
  };
  struct Dict {
    std::string name;
    c10::impl::GenericDict dict;
    std::vector<std::pair<c10::IValue, c10::IValue>> before;
  };

  static bool Differs(const List& one) {
    if (one.list.size() != one.before.size()) return true;
    for (size_t k = 0; k < one.before.size(); ++k) {
      if (!one.list.get(k).is(one.before[k])) return true;
    }
    return false;
  }
  static bool Differs(const Dict& one) {
    if (one.dict.size() != one.before.size()) return true;
    size_t k = 0;
    for (const auto& entry : one.dict) {
      const auto& [key, value] = one.before[k++];
      if (!(entry.key() == key) || !entry.value().is(value)) return true;
    }
    return false;
  }

  void Keep(const std::string& name, const c10::IValue& value) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      if (!tensor.defined() || !seen_.insert(tensor.unsafeGetTensorImpl()).second) return;
      tensors_.Add(name, tensor, !learned_.contains(tensor.unsafeGetTensorImpl()));
    } else if (value.isObject()) {
      const auto object = value.toObject();
      if (!seen_.insert(object.get()).second) return;
      for (size_t k = 0; k < object->slots().size(); ++k) {
        const std::string& own = object->type()->getAttributeName(k);
        const std::string path = name.empty() ? own : absl::StrCat(name, ".", own);
        attributes_.push_back({path, object, k, object->getSlot(k)});
        Keep(path, attributes_.back().before);
      }
    } else if (value.isTuple()) {
      for (const c10::IValue& element : value.toTupleRef().elements()) Keep(name, element);
    } else if (value.isList()) {
      const c10::List<c10::IValue> list = value.toList();
      List own{name, list, {}};
      for (size_t k = 0; k < list.size(); ++k) own.before.push_back(list.get(k));
      const std::vector<c10::IValue> elements = own.before;
      lists_.push_back(std::move(own));
      for (const c10::IValue& element : elements) Keep(name, element);
    } else if (value.isGenericDict()) {
      Dict own{name, value.toGenericDict(), {}};
      for (const auto& entry : own.dict) own.before.emplace_back(entry.key(), entry.value());
      const auto entries = own.before;
      dicts_.push_back(std::move(own));
      for (const auto& [key, element] : entries) Keep(name, element);
    }
  }

  absl::flat_hash_set<const void*> learned_;
  absl::flat_hash_set<const void*> seen_;  // what is held below, so that no address is another's
  std::vector<Attribute> attributes_;
  std::vector<List> lists_;
  std::vector<Dict> dicts_;
  KeptTensors tensors_;
};

class ScriptModel : public Model {
 public:
  explicit ScriptModel(jit::Module module, std::vector<std::string> notes,
                       std::vector<std::string> methods = {"forward"})
      : module_(std::move(module)), notes_(std::move(notes)), methods_(std::move(methods)), paths_(module_) {
    RegisterOwnOperators();
    for (const jit::Module& inner : module_.modules()) {
      for (const jit::Method& method : inner.get_methods()) {
        Scan(method.graph()->block(), facts_);
        Adapt(method.graph()->block());
      }
    }
    // Modules that run at the same time have no order.
    if (!facts_.forks) TellReturns(module_);
    if (!facts_.unseen.empty()) {
      throw Unimplemented(absl::StrCat("the model holds the compiled operation ", facts_.unseen,
                                       ", which tracing cannot see; save it before optimizing or freezing it"));
    }
    if (facts_.autocast) {
      throw Unimplemented(
          "the model enters autocast, which casts behind the operators; save it without, and convert the model if "
          "another dtype is wanted");
    }
  }

  std::shared_ptr<Model> To(const c10::Device& device, std::optional<c10::ScalarType> dtype) const override;

  c10::IValue Run(const std::vector<c10::IValue>& inputs) override {
    // Optimized graphs fuse operators into kernels of their own, which no dispatcher sees.
    jit::GraphOptimizerEnabledGuard no_fusion(false);
    // LibTorch's modules take their fused attention only without gradients; its parts are what rules cover.
    c10::AutoGradMode grad(facts_.fused_attention);
    const ScriptReturnsScope returns(&paths_);
    if (methods_.size() == 1) return module_.get_method(methods_[0])(inputs);
    c10::impl::GenericDict results(c10::StringType::get(), c10::AnyType::get());
    auto next = inputs.begin();
    for (const std::string& name : methods_) {
      const jit::Method method = module_.get_method(name);
      const size_t takes = method.function().getSchema().arguments().size() - 1;
      if (static_cast<size_t>(inputs.end() - next) < takes) {
        throw InvalidArgument(absl::StrCat("the methods take more than the ", inputs.size(), " inputs given"));
      }
      const auto end = next + static_cast<std::ptrdiff_t>(takes);
      results.insert(name, method(std::vector<c10::IValue>(next, end)));
      next = end;
    }
    if (next != inputs.end())
      throw InvalidArgument(absl::StrCat("the methods take fewer than ", inputs.size(), " inputs"));
    return results;
  }

  std::shared_ptr<Model> WithMethods(const std::vector<std::string>& methods) const {
    if (methods.empty()) throw InvalidArgument("no method is named");
    for (const std::string& name : methods) {
      if (!module_.find_method(name)) throw NotFound(absl::StrCat("the model has no method ", name));
    }
    return std::make_shared<ScriptModel>(module_, notes_, methods);
  }

  std::optional<std::vector<ModelCall>> Calls() const override {
    std::vector<ModelCall> calls;
    for (const std::string& name : methods_) {
      const auto graph = module_.get_method(name).graph()->copy();
      jit::Inline(*graph);
      AddCalls(graph->block(), calls);
    }
    return calls;
  }

  std::vector<std::string> Complaints(const std::vector<c10::IValue>& inputs) const override {
    const std::vector<Taken> arguments = Arguments();
    std::vector<std::string> complaints;
    const auto needed = static_cast<size_t>(
        std::count_if(arguments.begin(), arguments.end(), [](const Taken& argument) { return !argument.has_default; }));
    if (inputs.size() < needed || inputs.size() > arguments.size()) {
      std::string names;
      for (const Taken& argument : arguments) {
        absl::StrAppend(&names, names.empty() ? "" : ", ", argument.name, ": ", argument.type,
                        argument.has_default ? " (has a default)" : "");
      }
      complaints.push_back(absl::StrCat("the model takes ", needed == arguments.size() ? "" : "at least ", needed,
                                        " inputs (", names, "), not ", inputs.size()));
    }
    for (size_t k = 0; k < std::min(inputs.size(), arguments.size()); ++k) {
      const std::string& type = arguments[k].type;
      const bool optional = absl::StartsWith(type, "Optional[");
      const bool takes_tensor = type == "Tensor" || type == "Optional[Tensor]" || type == "Any";
      const bool fits = inputs[k].isTensor() ? takes_tensor : type != "Tensor" || (inputs[k].isNone() && optional);
      if (fits) continue;
      complaints.push_back(absl::StrCat(arguments[k].name, " has to be a ", type, ", not a ",
                                        inputs[k].isTensor() ? "Tensor" : inputs[k].tagKind()));
    }
    return complaints;
  }

  void Save(std::ostream& stream) const { module_.save(stream); }

  std::vector<std::string> InputNames() const override {
    std::vector<std::string> names;
    for (Taken& argument : Arguments()) names.push_back(std::move(argument.name));
    return names;
  }

  std::vector<std::pair<std::string, at::Tensor>> NamedTensors() const override {
    std::vector<std::pair<std::string, at::Tensor>> named;
    for (const auto& item : module_.named_parameters()) named.emplace_back(item.name, item.value);
    for (const auto& item : module_.named_buffers()) named.emplace_back(item.name, item.value);
    return named;
  }

  std::vector<std::string> BufferNames() const override {
    std::vector<std::string> names;
    for (const auto& item : module_.named_buffers()) names.push_back(item.name);
    return names;
  }

  std::shared_ptr<ModelState> KeepState() const override { return std::make_shared<ScriptState>(module_); }

  std::vector<std::string> Notes() const override { return notes_; }

  std::vector<std::string> ModulePaths() const override {
    std::vector<std::string> paths;
    for (const auto& item : module_.named_modules()) {
      if (!item.name.empty()) paths.push_back(item.name);
    }
    return paths;
  }

 private:
  struct Taken {
    std::string name;
    std::string type;  // "Tensor", "Optional[Tensor]", "List[Tensor]", ...
    bool has_default = false;
  };

  std::vector<Taken> Arguments() const {
    std::vector<Taken> taken;
    for (const std::string& name : methods_) {
      const auto& arguments = module_.get_method(name).function().getSchema().arguments();
      for (size_t k = 1; k < arguments.size(); ++k) {  // not self
        taken.push_back({Named(name, arguments[k].name()), arguments[k].type()->annotation_str(),
                         arguments[k].default_value().has_value()});
      }
    }
    return taken;
  }

  // Name of an argument; with several methods it begins with the method's, since two may have the same.
  std::string Named(const std::string& method, const std::string& argument) const {
    return methods_.size() == 1 ? argument : absl::StrCat(method, ".", argument);
  }

  jit::Module module_;
  std::vector<std::string> notes_;
  std::vector<std::string> methods_;
  ScriptPaths paths_;
  GraphFacts facts_;
};

// Bytes that are read where they lie.
class MemoryBuffer : public std::streambuf {
 public:
  MemoryBuffer(const void* data, size_t size) {
    // Never written: the stream is opened for input.
    char* begin = const_cast<char*>(static_cast<const char*>(data));
    setg(begin, begin, begin + size);
  }

 protected:
  pos_type seekoff(off_type offset, std::ios_base::seekdir from, std::ios_base::openmode) override {
    const off_type base = from == std::ios_base::beg   ? 0
                          : from == std::ios_base::cur ? gptr() - eback()
                                                       : egptr() - eback();
    if (base + offset < 0 || base + offset > egptr() - eback()) return pos_type(off_type(-1));
    setg(eback(), eback() + base + offset, egptr());
    return pos_type(base + offset);
  }
  pos_type seekpos(pos_type position, std::ios_base::openmode which) override {
    return seekoff(off_type(position), std::ios_base::beg, which);
  }
};

// `load` reads the module; `name` is what messages call it.
template <typename Load>
std::shared_ptr<Model> Loaded(const std::string& name, const ScriptOptions& options, const Load& load) {
  try {
    jit::Module module = load();
    module.eval();
    if (options.dtype) module.to(*options.dtype);
    return std::make_shared<ScriptModel>(std::move(module), options.notes);
  } catch (const Error&) {
    throw;
  } catch (const std::exception&) {
    // Replace LibTorch's message, a page of its own sources that nobody can act on.
    throw InvalidArgument(absl::StrCat(name,
                                       " is not a TorchScript file; save one with torch.jit.script(model).save(path)"
                                       " or torch.jit.trace, or export the model with torch.export.save"));
  }
}

}  // namespace

std::shared_ptr<Model> LoadTorchScript(const std::string& path, const ScriptOptions& options) {
  {
    struct stat status = {};
    const bool folder = ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    uint64_t size = 0;
    if (!folder) const Descriptor probe(OpenToRead(path, &size));
    if (size == 0) throw InvalidArgument(absl::StrCat(path, " is not a TorchScript file (it is empty or a folder)"));
  }
  return Loaded(path, options, [&] { return jit::load(path, at::Device(at::kCPU)); });
}

std::shared_ptr<Model> LoadTorchScriptBytes(const void* data, size_t size, const std::string& name,
                                            const ScriptOptions& options) {
  if (size == 0) throw InvalidArgument(absl::StrCat(name, " is not a TorchScript file (it is empty)"));
  return Loaded(name, options, [&] {
    MemoryBuffer buffer(data, size);
    std::istream stream(&buffer);
    return jit::load(stream, at::Device(at::kCPU));
  });
}

namespace {

// Moves the tensors of a module to a device, in place: those of its objects, in containers too, and the constants
// within its graphs. Module::to() leaves constants where they are, and LibTorch reads files onto the devices only that
// it knew when it was made. A tensor that two places share is shared afterwards.
class Mover {
 public:
  explicit Mover(const at::Device& device) : device_(device) {}

  void Move(const jit::Module& module) {
    Moved(module._ivalue());
    for (jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
      if (jit::GraphFunction* graph = jit::tryToGraphFunction(*function)) MoveConstants(graph->graph()->block());
    }
  }

 private:
  at::Tensor Moved(const at::Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    at::Tensor& moved = moved_[tensor.unsafeGetTensorImpl()];
    if (!moved.defined()) {
      moved = tensor.detach().to(device_);
      if (tensor.requires_grad()) moved.requires_grad_();
      originals_.push_back(tensor);
    }
    return moved;
  }

  c10::IValue Moved(const c10::IValue& value) {
    if (value.isTensor()) return Moved(value.toTensor());
    if (value.isTensorList()) {
      c10::List<at::Tensor> list = value.toTensorList();
      for (size_t k = 0; k < list.size(); ++k) list.set(k, Moved(list.get(k)));
    } else if (value.isGenericDict()) {
      for (const auto& entry : value.toGenericDict()) entry.setValue(Moved(entry.value()));
    } else if (value.isTuple()) {
      std::vector<c10::IValue> elements;
      for (const c10::IValue& element : value.toTupleRef().elements()) elements.push_back(Moved(element));
      value.toTuple()->setElements(std::move(elements));
    } else if (value.isList()) {
      c10::List<c10::IValue> list = value.toList();
      for (size_t k = 0; k < list.size(); ++k) list.set(k, Moved(list.get(k)));
    } else if (value.isObject() && objects_.insert(value.toObject().get()).second) {
      const auto object = value.toObject();
      for (size_t k = 0; k < object->slots().size(); ++k) object->setSlot(k, Moved(object->getSlot(k)));
    }
    return value;
  }

  void MoveConstants(jit::Block* block) {
    for (jit::Node* node : block->nodes()) {
      for (jit::Block* inner : node->blocks()) MoveConstants(inner);
      if (node->kind() != c10::prim::Constant || !node->hasAttribute(c10::attr::value)) continue;
      const jit::AttributeKind kind = node->kindOf(c10::attr::value);
      if (kind == jit::AttributeKind::t) node->t_(c10::attr::value, Moved(node->t(c10::attr::value)));
      if (kind == jit::AttributeKind::ival) node->ival_(c10::attr::value, Moved(node->ival(c10::attr::value)));
    }
  }

  at::Device device_;
  absl::flat_hash_map<const c10::TensorImpl*, at::Tensor> moved_;
  std::vector<at::Tensor> originals_;  // alive, so that no address is another tensor's
  absl::flat_hash_set<const c10::ivalue::Object*> objects_;
};

std::shared_ptr<Model> ScriptModel::To(const c10::Device& device, std::optional<c10::ScalarType> dtype) const {
  try {
    // Copy by way of a file, which copies the code too: it holds constants.
    std::stringstream stream;
    Save(stream);
    jit::Module module = jit::load(stream, at::Device(at::kCPU));
    Mover(device).Move(module);
    if (dtype) module.to(*dtype);
    return std::make_shared<ScriptModel>(std::move(module), notes_, methods_);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    throw InvalidArgument(
        absl::StrCat("the model cannot be copied to ", device.str(), ": ", text.substr(0, text.find('\n'))));
  }
}

}  // namespace

std::shared_ptr<Model> MethodsOf(const Model& model, const std::vector<std::string>& methods) {
  const auto* script = dynamic_cast<const ScriptModel*>(&model);
  if (script == nullptr) throw Unimplemented("only models from TorchScript files have methods to choose from");
  return script->WithMethods(methods);
}

}  // namespace addend
