#include "core/recording/export_torchscript.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/lexer.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/error.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/operator_traits.h"
#include "core/program/tensor_io.h"

namespace addend {
namespace {

namespace jit = torch::jit;

c10::TypePtr TypeNamed(const std::string& name) {
  if (name == "int") return c10::IntType::get();
  if (name == "float") return c10::FloatType::get();
  if (name == "bool") return c10::BoolType::get();
  if (name == "str") return c10::StringType::get();
  return c10::TensorType::get();
}

c10::TypePtr TypeOf(const Structure& structure, const std::string& input) {
  switch (structure.kind) {
    case Structure::Kind::kTensor:
      return c10::TensorType::get();
    case Structure::Kind::kTuple: {
      std::vector<c10::TypePtr> types;
      for (const Structure& element : structure.elements) types.push_back(TypeOf(element, input));
      return c10::TupleType::create(std::move(types));
    }
    case Structure::Kind::kList:
      return c10::ListType::create(structure.elements.empty() ? TypeNamed(structure.type)
                                                              : TypeOf(structure.elements[0], input));
    case Structure::Kind::kDict: {
      const bool number = !structure.keys.empty() && structure.keys[0].isInt();
      return c10::DictType::create(
          number ? c10::TypePtr(c10::IntType::get()) : c10::TypePtr(c10::StringType::get()),
          structure.elements.empty() ? TypeNamed(structure.type) : TypeOf(structure.elements[0], input));
    }
    case Structure::Kind::kPlain:
      break;
  }
  throw Unimplemented(absl::StrCat("the input ", input,
                                   " is or holds a plain value, which the recording froze; such a "
                                   "program cannot be exported"));
}

bool IsIdentifier(const std::string& name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return c == '_' || absl::ascii_isalnum(static_cast<unsigned char>(c)); });
}

// Whether an identifier is a word of TorchScript's own: "in", "class", "None".
bool IsWord(const std::string& name) {
  return jit::Lexer(std::make_shared<jit::Source>(name)).next().kind != jit::TK_IDENT;
}

// Characters that the code in a file does not quote, or not always so that it can be read.
bool Breaks(char c) { return c == '"' || c == '\\' || !absl::ascii_isprint(static_cast<unsigned char>(c)); }

// A name that TorchScript takes for an argument.
std::string Identifier(const std::string& name) {
  static const auto* const kUsed = new std::set<std::string>{"torch", "ops", "CONSTANTS", "bool"};  // in a file
  std::string identifier = name;
  for (char& c : identifier) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (!IsIdentifier(identifier)) identifier.insert(0, "input_");
  if (IsWord(identifier) || kUsed->count(identifier) > 0) identifier += '_';
  return identifier;
}

// Whether TorchScript reads an attribute of this name from the code in a file. It quotes names that are no identifiers;
// a word of its own it writes as an identifier, and cannot read.
bool Readable(const std::string& name) {
  static const auto* const kTaken =
      new std::set<std::string>{"training", "forward", "__parameters__", "__buffers__", "__annotations__"};
  if (name.empty() || kTaken->count(name) > 0 || std::any_of(name.begin(), name.end(), Breaks)) return false;
  return !IsIdentifier(name) || !IsWord(name);
}

class Exporter {
 public:
  explicit Exporter(const RecordedProgram& program)
      : program_(program),
        unit_(std::make_shared<jit::CompilationUnit>()),
        root_(Class(""), unit_),
        graph_(std::make_shared<jit::Graph>()),
        values_(program.values.size(), nullptr) {
    root_.register_attribute("training", c10::BoolType::get(), false);
    modules_.emplace("", root_);
  }

  jit::Module Export() {
    RefuseGuards();
    self_ = graph_->addInput("self");
    NameAttributes();
    AddModules();
    self_->setType(root_.type());
    TakeInputs();
    for (size_t c = 0; c < program_.calls.size(); ++c) AddCall(static_cast<int>(c));
    ForEachNumber(program_.output, [&](int value) { Fill(static_cast<int>(program_.calls.size()), value); });
    graph_->registerOutput(Put(program_.output));
    graph_->lint();
    jit::Function* forward = unit_->create_function(c10::QualifiedName(*root_.type()->name(), "forward"), graph_);
    root_.type()->addMethod(forward);
    return root_;
  }

 private:
  static c10::QualifiedName Class(const std::string& path) {
    return c10::QualifiedName("__torch__." + (path.empty() ? std::string("Program") : "Program_" + Identifier(path)));
  }

  [[noreturn]] void Refuse(absl::StatusCode code, int call, const std::string& why) const {
    throw Error(code, absl::StrCat("cannot export ", DescribeCall(program_, call), ": ", why),
                PositionOf(program_, call));
  }

  void RefuseGuards() const {
    for (const RecordedGuard& guard : program_.guards) {
      if (guard.kind == GuardKind::kProperty) continue;
      Refuse(absl::StatusCode::kFailedPrecondition, guard.call,
             "what it gave depends on elements and may have steered the model, and a TorchScript file could not check "
             "it; replay the program instead");
    }
  }

  // ------------------------------------------------------------------------------------- modules and their tensors

  static std::string OwnerOf(const std::string& path) {
    const size_t dot = path.rfind('.');
    return dot == std::string::npos ? "" : path.substr(0, dot);
  }

  // Names modules and tensors in their owners. A name that TorchScript cannot read, or that another attribute of the
  // owner has, gets underscores; all others stay as they are.
  void NameAttributes() {
    std::set<std::string> modules;
    std::set<std::string> tensors;
    const auto add_module = [&](std::string path) {
      for (; !path.empty(); path = OwnerOf(path)) modules.insert(path);
    };
    for (const std::string& path : program_.module_paths) add_module(path);
    for (const RecordedValue& value : program_.values) {
      if (value.kind != ValueKind::kParameter && value.kind != ValueKind::kBuffer) continue;
      tensors.insert(value.name);
      add_module(OwnerOf(value.name));
    }
    std::map<std::string, std::set<std::string>> taken;  // by owner
    for (const bool change : {false, true}) {
      for (const auto& [paths, names] :
           {std::make_pair(&modules, &module_names_), std::make_pair(&tensors, &tensor_names_)}) {
        for (const std::string& path : *paths) {
          if (names->count(path) > 0) continue;
          const std::string owner = OwnerOf(path);
          std::string name = path.substr(path.rfind('.') + 1);
          if (change) std::replace_if(name.begin(), name.end(), Breaks, '_');
          while (change && (!Readable(name) || taken[owner].count(name) > 0)) name += '_';
          if (Readable(name) && taken[owner].insert(name).second) names->emplace(path, std::move(name));
        }
      }
    }
  }

  jit::Module& ModuleAt(const std::string& path) {
    const auto found = modules_.find(path);
    if (found != modules_.end()) return found->second;
    jit::Module& parent = ModuleAt(OwnerOf(path));
    jit::Module child(Class(path), unit_, /*shouldMangle=*/true);
    child.register_attribute("training", c10::BoolType::get(), false);
    parent.register_module(module_names_.at(path), child);
    return modules_.emplace(path, child).first->second;
  }

  void AddModules() {
    for (const std::string& path : program_.module_paths) ModuleAt(path);
    for (const RecordedValue& value : program_.values) {
      if (value.kind != ValueKind::kParameter && value.kind != ValueKind::kBuffer) continue;
      const at::Tensor& initial = program_.storages[value.storage].initial;
      if (!initial.defined()) throw Unimplemented("a program without values (of the meta device) cannot be exported");
      jit::Module& owner = ModuleAt(OwnerOf(value.name));
      const std::string& name = tensor_names_.at(value.name);
      const at::Tensor tensor = Recorded(value);
      if (value.kind == ValueKind::kParameter) {
        owner.register_parameter(name, tensor.requires_grad_(value.requires_grad), /*is_buffer=*/false);
      } else {
        owner.register_buffer(name, tensor);
      }
    }
  }

  // A value from outside as it was when recorded.
  at::Tensor Recorded(const RecordedValue& value) const {
    const at::Tensor& initial = program_.storages[value.storage].initial;
    at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(value.dtype).device(initial.device()));
    tensor.set_(initial.storage(), value.geometry.offset, value.geometry.sizes, value.geometry.strides);
    tensor._set_conj(value.conjugated);
    tensor._set_neg(value.negated);
    return tensor;
  }

  // Named for itself, the variable that holds it would hide what the code in a file calls so: "torch".
  jit::Value* Own(jit::Value* owner, const std::string& name) {
    return graph_->insertGetAttr(owner, name)->setDebugName("");
  }

  jit::Value* ModuleValue(const std::string& path) {
    return path.empty() ? self_ : Own(ModuleValue(OwnerOf(path)), module_names_.at(path));
  }

  jit::Value* Attribute(const std::string& name) { return Own(ModuleValue(OwnerOf(name)), tensor_names_.at(name)); }

  // --------------------------------------------------------------------------------------------------- values

  jit::Value* Constant(const c10::IValue& value) { return graph_->insertConstant(value); }

  jit::Value* Insert(const char* op, std::vector<jit::Value*> inputs, const c10::TypePtr& type) {
    jit::Node* node = graph_->insertNode(graph_->create(c10::Symbol::fromQualString(op), inputs, 1));
    node->output()->setType(type);
    return node->output();
  }

  jit::Value* Strided(jit::Value* tensor, at::IntArrayRef sizes, at::IntArrayRef strides, int64_t offset) {
    return Insert(
        "aten::as_strided",
        {tensor, Constant(c10::List<int64_t>(sizes)), Constant(c10::List<int64_t>(strides)), Constant(offset)},
        c10::TensorType::get());
  }

  // The whole storage, one-dimensional.
  jit::Value* Whole(int storage, jit::Value* tensor) {
    return Strided(tensor, {program_.storages[storage].initial.numel()}, {1}, 0);
  }

  bool SameDtype(const RecordedValue& value, const RecordedValue& base) const {
    return value.dtype == base.dtype && value.conjugated == base.conjugated && value.negated == base.negated;
  }

  jit::Value* ValueOf(int call, int number) {
    jit::Value*& known = values_[number];
    if (known != nullptr) return known;
    const RecordedValue& value = program_.values[number];
    const RecordedStorage& storage = program_.storages[value.storage];
    const bool outside = storage.initial.defined() && storage.filled < 0;
    const RecordedValue& base = program_.values[storage.value];
    const std::string& name = value.name;
    if (!SameDtype(value, base)) Refuse(absl::StatusCode::kUnimplemented, call, name + " sees memory of another dtype");
    const bool sized = FollowsSizes(value.storage);
    if (outside && value.wrapped_number) {
      const at::ScalarType dtype = NumberDtype(call, value);
      return known = sized ? Strided(Sized(call, value.storage, dtype), {}, {}, value.geometry.offset)
                           : Constant(Recorded(value).to(dtype));
    }
    if (!outside && storage.value == number) {
      Refuse(absl::StatusCode::kUnimplemented, call, name + " has no values (of the meta device)");
    }
    jit::Value*& memory = memory_[value.storage];
    if (memory == nullptr) {
      if (!outside) {
        memory = ValueOf(call, storage.value);
      } else if (sized) {
        memory = Sized(call, value.storage, storage.initial.scalar_type());
      } else if (base.kind == ValueKind::kConstant) {
        memory = Constant(Recorded(base));
      } else {
        memory = Attribute(base.name);
      }
      if (outside && !storage.writers.empty()) {
        if (storage.initial.scalar_type() != base.dtype) {
          Refuse(absl::StatusCode::kUnimplemented, call, name + " overwrites memory of another dtype");
        }
        memory = Insert("aten::clone", {Whole(value.storage, memory), Constant(c10::IValue())}, c10::TensorType::get());
      } else if (outside && !sized && storage.value == number) {
        return known = memory;
      }
    }
    // Another name for the same memory may be a parameter itself.
    if (outside && !sized && storage.writers.empty()) {
      if (storage.value == number) return known = memory;
      if (value.kind == ValueKind::kParameter || value.kind == ValueKind::kBuffer) return known = Attribute(name);
    }
    return known = Strided(memory, value.geometry.sizes, value.geometry.strides, value.geometry.offset);
  }

  // A wrapped number has no say in what dtype comes of it; a tensor without dimensions has, unless it has that dtype.
  at::ScalarType NumberDtype(int call, const RecordedValue& value) const {
    at::ScalarType dtype = value.dtype;
    for (const TensorUse& use : program_.calls[call].uses) {
      if (use.value < 0 || program_.values[use.value].wrapped_number) continue;
      const at::ScalarType other = program_.values[use.value].dtype;
      if (c10::isFloatingType(value.dtype) && !c10::isFloatingType(other) && !c10::isComplexType(other)) continue;
      if (c10::isComplexType(value.dtype) && !c10::isComplexType(other)) continue;
      if (other != at::kBool || value.dtype == at::kBool) dtype = other;
      break;
    }
    return dtype == value.dtype && value.dtype == at::kDouble ? at::kFloat : dtype;
  }

  bool FollowsSizes(int storage) const {
    return std::any_of(program_.sizes.begin(), program_.sizes.end(),
                       [&](const SizeRelation& relation) { return relation.call < 0 && relation.storage == storage; });
  }

  // The whole storage of a constant, with the elements that follow sizes.
  jit::Value* Sized(int call, int storage, at::ScalarType dtype) {
    const at::Tensor numbers = program_.storages[storage].initial.to(at::kLong);
    std::vector<jit::Value*> elements;
    for (int64_t e = 0; e < numbers.numel(); ++e) elements.push_back(Constant(numbers.select(0, e).item().toLong()));
    for (const SizeRelation& relation : program_.sizes) {
      if (relation.call < 0 && relation.storage == storage) elements.at(relation.element) = Size(call, relation);
    }
    jit::Value* list = graph_->insertNode(graph_->createList(c10::IntType::get(), elements))->output();
    return Insert("aten::tensor",
                  {list, Constant(static_cast<int64_t>(dtype)), Constant(program_.storages[storage].initial.device()),
                   Constant(false)},
                  c10::TensorType::get());
  }

  // Puts what was there from outside into memory that a call allocated.
  void Fill(int call, int number) {
    const RecordedValue& value = program_.values[number];
    const RecordedStorage& storage = program_.storages[value.storage];
    if (storage.filled != call || !storage.initial.defined() || std::exchange(filled_[value.storage], true)) return;
    const int position = std::min<int>(call, static_cast<int>(program_.calls.size()) - 1);
    if (storage.initial.scalar_type() != value.dtype) {
      Refuse(absl::StatusCode::kUnimplemented, position, value.name + " fills memory of another dtype");
    }
    jit::Value* filling = FollowsSizes(value.storage) ? Sized(position, value.storage, storage.initial.scalar_type())
                                                      : Constant(storage.initial);
    Insert("aten::copy_", {Whole(value.storage, ValueOf(position, number)), filling, Constant(false)},
           c10::TensorType::get());
  }

  // ---------------------------------------------------------------------------------------------------- calls

  jit::Value* Operand(int index, const OperatorTraits& traits, const c10::Argument& argument, const TensorUse& use) {
    if (use.value < 0) {
      if (argument.type()->kind() == c10::TypeKind::OptionalType) return Constant(c10::IValue());
      Refuse(absl::StatusCode::kUnimplemented, index, "TorchScript has no undefined tensors");
    }
    Fill(index, use.value);
    jit::Value* tensor = ValueOf(index, use.value);
    if (!use.written) return tensor;
    // An alias takes the new geometry, so that the earlier value keeps its own.
    if (traits.may_reshape && !traits.detaches) tensor = Insert("aten::alias", {tensor}, c10::TensorType::get());
    changed_.push_back(tensor);
    return tensor;
  }

  jit::Value* TensorList(int index, const OperatorTraits& traits, size_t a, size_t& next) {
    const RecordedCall& call = program_.calls[index];
    const c10::Argument& argument = call.op.schema().arguments()[a];
    const auto more = [&] { return next < call.uses.size() && call.uses[next].argument == static_cast<int16_t>(a); };
    c10::TypePtr type = argument.type();
    if (const auto optional = type->cast<c10::OptionalType>()) type = optional->getElementType();
    const c10::TypePtr element = type->expectRef<c10::ListType>().getElementType();
    std::vector<jit::Value*> elements;
    if (element->kind() == c10::TypeKind::OptionalType && call.arguments[a].isIntList()) {
      for (const int64_t present : call.arguments[a].toIntVector()) {
        elements.push_back(present != 0 && more() ? Operand(index, traits, argument, call.uses[next++])
                                                  : Constant(c10::IValue()));
      }
    } else {
      while (more()) elements.push_back(Operand(index, traits, argument, call.uses[next++]));
    }
    return graph_->insertNode(graph_->createList(element, elements))->output();
  }

  // factor * ((size + shift) // divisor) + offset; see SizeRelation.
  jit::Value* Size(int call, const SizeRelation& relation) {
    const c10::TypePtr type = c10::IntType::get();
    jit::Value* size = Insert("aten::size", {ValueOf(call, relation.input), Constant(relation.dim)}, type);
    if (relation.other_input >= 0) {
      jit::Value* other = ValueOf(call, relation.other_input);
      size = Insert("aten::mul", {size, Insert("aten::size", {other, Constant(relation.other_dim)}, type)}, type);
    }
    if (relation.shift != 0) size = Insert("aten::add", {size, Constant(relation.shift)}, type);
    if (relation.divisor != 1) size = Insert("aten::floordiv", {size, Constant(relation.divisor)}, type);
    if (relation.factor != 1) size = Insert("aten::mul", {size, Constant(relation.factor)}, type);
    if (relation.offset != 0) size = Insert("aten::add", {size, Constant(relation.offset)}, type);
    return size;
  }

  jit::Value* Plain(int index, int16_t a) {
    const c10::IValue& recorded = program_.calls[index].arguments[a];
    std::vector<jit::Value*> elements;
    for (const SizeRelation& relation : program_.sizes) {
      if (relation.call != index || relation.argument != a) continue;
      if (relation.element < 0) return Size(index, relation);
      if (elements.empty()) {
        for (const int64_t element : recorded.toIntVector()) elements.push_back(Constant(element));
      }
      elements.at(relation.element) = Size(index, relation);
    }
    if (elements.empty()) return Constant(recorded);
    return graph_->insertNode(graph_->createList(c10::IntType::get(), elements))->output();
  }

  void AddCall(int index) {
    const RecordedCall& call = program_.calls[index];
    // Numbers about tensors are part of the recording already. They may be the first to read what others read later.
    if (call.results.empty() && call.written.empty()) {
      for (const TensorUse& use : call.uses) {
        if (use.value >= 0) Fill(index, use.value);
      }
      return;
    }
    const OperatorTraits traits(call.op.schema());
    // The operand of an in-place detach may be a view by now, which cannot be detached in place.
    const Operator op = traits.detaches ? *Operator::Find("aten::detach", "") : call.op;
    const c10::FunctionSchema& schema = op.schema();
    changed_.clear();
    std::vector<jit::Value*> inputs;
    size_t next = 0;
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const auto more = [&] { return next < call.uses.size() && call.uses[next].argument == static_cast<int16_t>(a); };
      const bool list = traits.arguments[a] == ArgumentKind::kTensorList;
      if (list && (more() || !call.arguments[a].isNone() || !AllowsNone(schema.arguments()[a]))) {
        inputs.push_back(TensorList(index, traits, a, next));
      } else if (traits.arguments[a] == ArgumentKind::kTensor && more()) {
        inputs.push_back(Operand(index, traits, schema.arguments()[a], call.uses[next++]));
      } else {
        inputs.push_back(Plain(index, static_cast<int16_t>(a)));
      }
    }
    jit::Node* node = graph_->create(c10::Symbol::fromQualString(schema.name()), inputs, schema.returns().size());
    graph_->insertNode(node);
    for (size_t r = 0; r < schema.returns().size(); ++r) node->outputs()[r]->setType(schema.returns()[r].type());
    const c10::FunctionSchema* chosen = node->maybeSchema();
    if (chosen == nullptr || chosen->overload_name() != schema.overload_name()) {
      Refuse(absl::StatusCode::kUnimplemented, index, "TorchScript would call another overload for these arguments");
    }
    TakeResults(call, traits, node);
    if (traits.detaches) changed_ = {node->outputs()[0]};
    for (size_t w = 0; w < call.written.size(); ++w) {
      if (values_[call.written[w]] == nullptr) values_[call.written[w]] = changed_.at(w);
    }
  }

  static bool AllowsNone(const c10::Argument& argument) {
    return argument.type()->kind() == c10::TypeKind::OptionalType;
  }

  void TakeResults(const RecordedCall& call, const OperatorTraits& traits, jit::Node* node) {
    size_t k = 0;
    const auto take = [&](jit::Value* tensor) {
      if (k < call.results.size() && call.results[k] >= 0) values_[call.results[k]] = tensor;
      ++k;
    };
    for (size_t r = 0; r < traits.returns.size(); ++r) {
      if (traits.returns[r] == ArgumentKind::kTensor) {
        take(node->outputs()[r]);
      } else if (traits.returns[r] == ArgumentKind::kTensorList) {
        const size_t size = call.result_sizes.empty() ? call.results.size() : call.result_sizes[r];
        if (size == 0) continue;
        jit::Node* unpack = graph_->insertNode(graph_->createListUnpack(node->outputs()[r], size));
        for (jit::Value* element : unpack->outputs()) take(element);
      }
    }
  }

  // ------------------------------------------------------------------------------------------ inputs and outputs

  void TakeInputs() {
    for (const RecordedInput& input : program_.inputs) {
      jit::Value* given = graph_->addInput(Identifier(input.name));
      given->setType(TypeOf(input.structure, input.name));
      Take(input.structure, given);
    }
    for (const RecordedInput& input : program_.inputs) {
      ForEachNumber(input.structure, [&](int value) {
        if (value >= 0) RequireSizes(value);
      });
    }
    for (const FreeDimension& dimension : program_.free) RequireSize(dimension);
  }

  // Stops a run of the file: numbers in it may be sizes.
  void RequireSizes(int number) {
    const RecordedValue& value = program_.values[number];
    const at::IntArrayRef recorded = value.geometry.sizes;
    std::vector<jit::Value*> sizes;
    for (const int64_t size : recorded) sizes.push_back(Constant(size));
    bool free = false;
    for (const FreeDimension& dimension : program_.free) {
      if (dimension.input != number) continue;
      if (!free) {
        jit::Value* rank = Insert("aten::dim", {values_[number]}, c10::IntType::get());
        StopIf(Differs(rank, Constant(static_cast<int64_t>(recorded.size()))),
               absl::StrCat(value.name, " has {} dimensions, and ", recorded.size(), " were recorded"), rank);
        free = true;
      }
      sizes[dimension.dim] = SizeOf(dimension);
    }
    jit::Value* given = Insert("aten::size", {values_[number]}, c10::ListType::ofInts());
    jit::Value* list = graph_->insertNode(graph_->createList(c10::IntType::get(), sizes))->output();
    StopIf(Differs(given, list),
           absl::StrCat("the sizes of ", value.name, " are {}, and [", absl::StrJoin(recorded, ", "), "] were recorded",
                        free ? ", of which some may be others" : "",
                        "; numbers in this file may be sizes: record with inputs of several sizes, which tell how they "
                        "follow, and export again"),
           given);
  }

  void RequireSize(const FreeDimension& dimension) {
    const std::string name = DescribeDimension(program_, dimension.input, dimension.dim);
    const c10::TypePtr type = c10::BoolType::get();
    jit::Value* size = SizeOf(dimension);
    if (dimension.like >= 0) {
      const FreeDimension& like = program_.free[dimension.like];
      StopIf(
          Differs(size, SizeOf(like)),
          absl::StrCat(name, " is {}, which has to be as large as ", DescribeDimension(program_, like.input, like.dim)),
          size);
    }
    if (!dimension.Limited()) return;
    const std::string tried = absl::StrCat(name, " is {}, but ", DescribeLimits(dimension),
                                           "; record with an example of this size too, and export again");
    StopIf(Insert("aten::lt", {size, Constant(dimension.least)}, type), tried, size);
    StopIf(Insert("aten::gt", {size, Constant(dimension.most)}, type), tried, size);
    if (dimension.step == 1) return;
    const auto number = [&](const char* name, jit::Value* a, int64_t b) {
      return Insert(name, {a, Constant(b)}, c10::IntType::get());
    };
    jit::Value* rest = number("aten::remainder", number("aten::sub", size, dimension.least), dimension.step);
    StopIf(Differs(rest, Constant(int64_t{0})), tried, size);
  }

  jit::Value* SizeOf(const FreeDimension& dimension) {
    return Insert("aten::size", {values_[dimension.input], Constant(static_cast<int64_t>(dimension.dim))},
                  c10::IntType::get());
  }

  jit::Value* Differs(jit::Value* a, jit::Value* b) { return Insert("aten::ne", {a, b}, c10::BoolType::get()); }

  // text: with {} in place of `given`.
  void StopIf(jit::Value* condition, const std::string& text, jit::Value* given) {
    jit::Node* choice = graph_->insertNode(graph_->create(c10::prim::If, {condition}, 0));
    jit::Block* stopped = choice->addBlock();
    choice->addBlock();
    const jit::WithInsertPoint inside(stopped);
    jit::Value* message = Insert("aten::format", {Constant(text), given}, c10::StringType::get());
    graph_->insertNode(graph_->create(c10::prim::RaiseException, {message, Constant(c10::IValue())}, 0));
  }

  void Take(const Structure& structure, jit::Value* given) {
    switch (structure.kind) {
      case Structure::Kind::kTensor:
        if (structure.tensor >= 0) values_[structure.tensor] = given;
        break;
      case Structure::Kind::kTuple: {
        if (structure.elements.empty()) break;
        jit::Node* unpack = graph_->insertNode(graph_->createTupleUnpack(given));
        for (size_t k = 0; k < structure.elements.size(); ++k) Take(structure.elements[k], unpack->outputs()[k]);
        break;
      }
      case Structure::Kind::kList: {
        if (structure.elements.empty()) break;
        jit::Node* unpack = graph_->insertNode(graph_->createListUnpack(given, structure.elements.size()));
        for (size_t k = 0; k < structure.elements.size(); ++k) {
          unpack->outputs()[k]->setType(given->type()->expectRef<c10::ListType>().getElementType());
          Take(structure.elements[k], unpack->outputs()[k]);
        }
        break;
      }
      case Structure::Kind::kDict: {
        const c10::TypePtr type = given->type()->expectRef<c10::DictType>().getValueType();
        for (size_t k = 0; k < structure.elements.size(); ++k) {
          Take(structure.elements[k], Insert("aten::__getitem__", {given, Constant(structure.keys[k])}, type));
        }
        break;
      }
      case Structure::Kind::kPlain:
        break;
    }
  }

  jit::Value* Put(const Structure& structure) {
    std::vector<jit::Value*> elements;
    for (const Structure& element : structure.elements) elements.push_back(Put(element));
    const c10::TypePtr element = elements.empty() ? TypeNamed(structure.type) : elements[0]->type();
    switch (structure.kind) {
      case Structure::Kind::kTensor: {
        const int end = static_cast<int>(program_.calls.size()) - 1;
        return structure.tensor < 0 ? Constant(c10::IValue()) : ValueOf(end, structure.tensor);
      }
      case Structure::Kind::kPlain:
        return Constant(structure.plain);
      case Structure::Kind::kTuple:
        return graph_->insertNode(graph_->createTuple(elements))->output();
      case Structure::Kind::kList:
        return graph_->insertNode(graph_->createList(element, elements))->output();
      case Structure::Kind::kDict:
        break;
    }
    std::vector<jit::Value*> keys;
    for (const c10::IValue& key : structure.keys) keys.push_back(Constant(key));
    const c10::TypePtr key = keys.empty() ? c10::TypePtr(c10::StringType::get()) : keys[0]->type();
    return graph_->insertNode(graph_->createDict(key, element, keys, elements))->output();
  }

  const RecordedProgram& program_;
  std::shared_ptr<jit::CompilationUnit> unit_;
  jit::Module root_;
  std::shared_ptr<jit::Graph> graph_;
  jit::Value* self_ = nullptr;
  std::map<std::string, jit::Module> modules_;       // by path
  std::map<std::string, std::string> module_names_;  // by path: in the owner
  std::map<std::string, std::string> tensor_names_;  // by name: in the owner
  std::vector<jit::Value*> values_;                  // by value
  absl::flat_hash_map<int, jit::Value*> memory_;     // by storage: a tensor in it that others are made from
  absl::flat_hash_map<int, bool> filled_;            // by storage
  std::vector<jit::Value*> changed_;                 // by written use of the call at hand
};

}  // namespace

void ExportTorchScript(const RecordedProgram& program, const std::string& path) {
  const TracingPause pause;
  std::optional<jit::Module> module;
  try {
    module = Exporter(program).Export();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    const std::string text = e.what();
    throw Unimplemented(absl::StrCat("TorchScript cannot express the program: ", text.substr(0, text.find('\n'))));
  }
  std::ostringstream out;
  try {
    module->save(out);
  } catch (const c10::Error& e) {
    throw InvalidArgument(absl::StrCat("cannot write ", path, ": ", e.what_without_backtrace()));
  }
  WriteFileWhole(path, out.str());
}

}  // namespace addend
