#include "core/exported/steps.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <c10/core/TensorImpl.h>

#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/error.h"
#include "core/exported/aliases.h"
#include "core/exported/module_calls.h"
#include "core/exported/node_place.h"
#include "core/exported/shims.h"
#include "core/intercept/tracing_scope.h"
#include "core/program/operator_traits.h"

namespace addend::exported {
namespace {

using c10::IValue;

constexpr char kHigherOrder[] = "torch.ops.higher_order.";
constexpr char kWithEffects[] = "torch.ops.higher_order.with_effects";
constexpr char kDecompose[] = "export the model with run_decompositions()";

[[noreturn]] void Refuse(const Node& node, const std::string& what, const std::string& hint) {
  throw Error(absl::StatusCode::kUnimplemented,
              absl::StrCat("the exported program calls ", node.target, node.name.empty() ? "" : " (node ", node.name,
                           node.name.empty() ? "" : ")", ", ", what),
              PositionOf(node), hint);
}

[[noreturn]] void Malformed(const Node& node, const std::string& what) {
  throw Error(absl::StatusCode::kInvalidArgument,
              absl::StrCat("node ", node.name.empty() ? node.target : node.name, " of the exported program ", what),
              PositionOf(node), "export the model again");
}

const c10::Type& Bare(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType ? *type.expectRef<c10::OptionalType>().getElementType() : type;
}

bool IsInteger(const c10::Type& type) {
  return type.kind() == c10::TypeKind::IntType || type.kind() == c10::TypeKind::SymIntType;
}

at::Tensor NumberTensor(const IValue& number) {
  const at::Tensor tensor = c10::scalar_to_tensor(number.toScalar());
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

IValue FittedList(const std::vector<IValue>& values, const c10::TypePtr& element) {
  c10::impl::GenericList list(element->kind() == c10::TypeKind::SymIntType ? c10::TypePtr(c10::IntType::get())
                                                                           : element);
  list.reserve(values.size());
  for (const IValue& value : values) list.push_back(Fitted(value, element));
  return list;
}

// Arguments that came with newer versions of operators that older ones have too, and their defaults there.
struct NewerArgument {
  const char* op;
  const char* argument;
  bool value;
};

constexpr NewerArgument kNewerArguments[] = {
    {"aten::scaled_dot_product_attention", "enable_gqa", false},
    {"aten::index_reduce", "include_self", true},
    {"aten::native_layer_norm", "cudnn_enable", true},
};

bool IsNewerDefault(const std::string& op, const NamedArgument& given) {
  if (given.argument.kind != Argument::Kind::kConstant) return false;
  const IValue& value = given.argument.constant;
  // None stands for an argument that is left out, in any version.
  if (value.isNone()) return true;
  for (const NewerArgument& one : kNewerArguments) {
    if (op == one.op && given.name == one.argument) return value.isBool() && value.toBool() == one.value;
  }
  return false;
}

// The first argument that an operator does not take; null if there is none.
const NamedArgument* NotTaken(const c10::FunctionSchema& schema, const std::vector<NamedArgument>& given) {
  for (const NamedArgument& one : given) {
    if (one.name.empty() || schema.argumentIndexWithName(one.name) || IsNewerDefault(schema.name(), one)) continue;
    return &one;
  }
  return nullptr;
}

// The part of "torch.ops.aten.linear.default" that the dispatcher knows: "aten::linear" and "".
struct OperatorParts {
  std::string name;
  std::string overload;
};

std::optional<OperatorParts> PartsOf(const std::string& target) {
  absl::string_view rest = target;
  if (!absl::ConsumePrefix(&rest, "torch.ops.")) return std::nullopt;
  const size_t first = rest.find('.');
  const size_t last = rest.rfind('.');
  if (first == absl::string_view::npos || last == first) return std::nullopt;
  const auto part = [&](size_t begin, size_t end) {
    const absl::string_view text = rest.substr(begin, end - begin);
    return std::string(text.data(), text.size());
  };
  OperatorParts parts;
  parts.name = absl::StrCat(part(0, first), "::", part(first + 1, last));
  parts.overload = part(last + 1, rest.size());
  if (parts.overload == "default") parts.overload = "";
  return parts;
}

class StepsMaker {
 public:
  StepsMaker(const StepsOptions& options, std::vector<std::unique_ptr<CodePlace>>* places,
             std::vector<std::string>* training)
      : options_(options), places_(places), training_(training) {}

  std::shared_ptr<Steps> Make(const Graph& graph, const std::map<std::string, IValue>& known) {
    steps_ = std::make_shared<Steps>();
    known_ = &known;
    for (const Argument& input : graph.inputs) {
      const bool read = input.kind == Argument::Kind::kValue && known.count(input.name) == 0;
      steps_->inputs.push_back(read ? NewSlot(input.name) : -1);
    }
    for (const Node& node : graph.nodes) {
      node_ = &node;
      Add(node);
    }
    node_ = nullptr;
    for (const Argument& output : graph.outputs) steps_->outputs.push_back(SourceOf(output, nullptr));
    FindDead();
    return steps_;
  }

  // Has a run of the steps tell what a call of a module has returned. A node is a step.
  void Tell(const ModuleCall& call) {
    steps_->all[call.last_node].told.push_back({call.path, call.value.empty() ? -1 : slots_.at(call.value)});
  }

 private:
  // ------------------------------------------------------------------------------------------------- values

  int NewSlot(const std::string& name) {
    slots_[name] = steps_->num_slots;
    return steps_->num_slots++;
  }

  Source Constant(IValue value, const c10::TypePtr& type) const {
    Source source;
    source.constant = type == nullptr ? std::move(value) : Fitted(value, type);
    source.type = type;
    return source;
  }

  // Devices and dtypes as this model has them.
  IValue Mapped(const Argument& argument) const {
    const IValue& value = argument.constant;
    if (value.isDevice()) return options_.device;
    if (argument.tag != "as_scalar_type" || !value.isInt() || !options_.dtype) return value;
    return static_cast<int64_t>(options_.dtype(static_cast<c10::ScalarType>(value.toInt())));
  }

  Source SourceOf(const Argument& argument, const c10::TypePtr& type) const {
    switch (argument.kind) {
      case Argument::Kind::kConstant:
        return Constant(Mapped(argument), type);
      case Argument::Kind::kValue:
        break;
      case Argument::Kind::kList: {
        const c10::Type* list = type == nullptr ? nullptr : &Bare(*type);
        const bool typed = list != nullptr && list->kind() == c10::TypeKind::ListType;
        const c10::TypePtr element = typed ? list->expectRef<c10::ListType>().getElementType() : nullptr;
        Source source;
        source.kind = Source::Kind::kList;
        source.type = type;
        bool constant = true;
        for (const Argument& one : argument.elements) {
          source.elements.push_back(SourceOf(one, element));
          constant &= source.elements.back().kind == Source::Kind::kConstant;
        }
        if (!constant) return source;
        std::vector<IValue> values;
        for (const Source& one : source.elements) values.push_back(one.constant);
        return Constant(FittedList(values, typed ? element : c10::TypePtr(c10::AnyType::get())), nullptr);
      }
      case Argument::Kind::kDict:
      case Argument::Kind::kGraph:
      case Argument::Kind::kOperator:
        Refuse(*node_, "with a graph, a dictionary or an operator where none is expected", kDecompose);
    }
    const auto known = known_->find(argument.name);
    if (known != known_->end()) return Constant(known->second, type);
    const auto slot = slots_.find(argument.name);
    if (slot == slots_.end()) {
      const std::string what = absl::StrCat("reads ", argument.name, ", which nothing before makes");
      if (node_ != nullptr) Malformed(*node_, what);
      throw InvalidArgument(absl::StrCat("the exported program ", what));
    }
    Source source;
    source.kind = Source::Kind::kSlot;
    source.slot = slot->second;
    source.type = type;
    return source;
  }

  Result ResultOf(const Argument& output) {
    Result result;
    if (output.kind == Argument::Kind::kValue) {
      if (!output.name.empty()) result.slot = NewSlot(output.name);
    } else if (output.kind == Argument::Kind::kList) {
      result.is_list = true;
      for (const Argument& one : output.elements) {
        const bool named = one.kind == Argument::Kind::kValue && !one.name.empty();
        result.elements.push_back(named ? NewSlot(one.name) : -1);
      }
    }
    return result;
  }

  // -------------------------------------------------------------------------------------------------- nodes

  const CodePlace* Place(const Node& node) {
    CodePlace place = PlaceOf(node);
    if (place.module_path.empty() && place.frames.empty()) return nullptr;
    // Neighbours share their places.
    if (!places_->empty() && *places_->back() == place) return places_->back().get();
    places_->push_back(std::make_unique<CodePlace>(std::move(place)));
    return places_->back().get();
  }

  void Add(const Node& node) {
    Step step;
    step.name = node.target;
    step.place = Place(node);
    if (absl::StartsWith(node.target, kHigherOrder)) {
      AddHigherOrder(node, &step);
    } else if (const auto parts = PartsOf(node.target)) {
      AddOperator(*parts, node.inputs, node, &step);
    } else if (const NumberFunction function = FindNumberFunction(node.target)) {
      step.kind = Step::Kind::kNumbers;
      step.numbers = function;
      for (const NamedArgument& input : node.inputs) step.arguments.push_back(SourceOf(input.argument, nullptr));
    } else if (absl::StartsWith(node.target, "torch.")) {
      Refuse(node, "which is no operator", kDecompose);
    } else {
      Refuse(node, "which this library does not know", kDecompose);
    }
    for (const Argument& output : node.outputs) step.results.push_back(ResultOf(output));
    // The token of an operator with effects orders calls, which run in order anyway.
    if (node.target == kWithEffects && !step.results.empty()) step.results.erase(step.results.begin());
    steps_->writes |= !step.written.empty();
    steps_->all.push_back(std::move(step));
  }

  // Finds the callee of a node: an operator of the dispatcher, else a function of this library.
  void Find(const OperatorParts& parts, const std::vector<NamedArgument>& given, const Node& node, Step* step,
            const c10::FunctionSchema** schema) {
    const std::string full = absl::StrCat(parts.name, parts.overload.empty() ? "" : ".", parts.overload);
    step->name = parts.name;
    const Shim* shim = FindShim(parts.name, parts.overload);
    step->op = shim != nullptr && shim->always ? std::nullopt : Operator::Find(parts.name, parts.overload);
    if (step->op && NotTaken(step->op->schema(), given) == nullptr) {
      step->kind = Step::Kind::kOperator;
      *schema = &step->op->schema();
      return;
    }
    if (shim != nullptr && NotTaken(shim->schema, given) == nullptr) {
      step->kind = Step::Kind::kFunction;
      step->function = shim->function;
      step->op.reset();
      *schema = &shim->schema;
      return;
    }
    const bool library = !absl::StartsWith(parts.name, "aten::") && !absl::StartsWith(parts.name, "prims::");
    if (shim == nullptr && !step->op) {
      Refuse(node, absl::StrCat(full, ", which this LibTorch lacks"),
             library ? "load the library that defines it before the model"
                     : "export the model with run_decompositions(), or use a newer LibTorch");
    }
    const NamedArgument* newer = NotTaken(step->op ? step->op->schema() : shim->schema, given);
    Refuse(node, absl::StrCat("whose argument ", newer->name, " this LibTorch lacks"),
           "export the model with run_decompositions(), or use a newer LibTorch");
  }

  void AddOperator(const OperatorParts& parts, const std::vector<NamedArgument>& given, const Node& node, Step* step) {
    const c10::FunctionSchema* schema = nullptr;
    Find(parts, given, node, step, &schema);
    const auto& arguments = schema->arguments();
    std::vector<const Argument*> by_index(arguments.size(), nullptr);
    size_t next = 0;
    for (const NamedArgument& one : given) {
      size_t index = next++;
      if (!one.name.empty()) {
        const auto named = schema->argumentIndexWithName(one.name);
        if (!named) continue;  // it asks for nothing new
        index = static_cast<size_t>(*named);
      }
      if (index >= by_index.size()) Malformed(node, "has too many arguments");
      if (by_index[index] != nullptr) Malformed(node, absl::StrCat("has ", arguments[index].name(), " twice"));
      by_index[index] = &one.argument;
    }
    for (size_t k = 0; k < arguments.size(); ++k) {
      const c10::Argument& taken = arguments[k];
      if (taken.alias_info() != nullptr && taken.alias_info()->isWrite()) step->written.push_back(k);
      if (by_index[k] == nullptr) {
        // Optional arguments without a default got the default None in newer versions.
        const bool optional = taken.type()->kind() == c10::TypeKind::OptionalType;
        if (!taken.default_value() && !optional) Malformed(node, absl::StrCat("lacks the argument ", taken.name()));
        step->arguments.push_back(Constant(taken.default_value().value_or(IValue()), nullptr));
        continue;
      }
      Source source = SourceOf(*by_index[k], taken.type());
      // One number stands for all elements of a list of known length.
      const c10::Type& type = Bare(*taken.type());
      const bool alone = source.kind == Source::Kind::kConstant &&
                         (source.constant.isInt() || source.constant.isDouble() || source.constant.isBool());
      if (alone && type.kind() == c10::TypeKind::ListType) {
        const std::vector<IValue> copies(static_cast<size_t>(taken.N().value_or(1)), source.constant);
        source.constant = FittedList(copies, type.expectRef<c10::ListType>().getElementType());
      }
      NoteTraining(*schema, taken.name(), source, step);
      step->arguments.push_back(std::move(source));
    }
    NoteStatistics(*schema, step);
    step->may_copy = parts.overload.empty() && (parts.name == "aten::view" || parts.name == "aten::_unsafe_view");
  }

  // Some operators write running statistics although their schemas do not say so.
  static void NoteStatistics(const c10::FunctionSchema& schema, Step* step) {
    std::vector<IValue> values;
    for (const Source& source : step->arguments) {
      // A flag that only the run knows may be on.
      values.push_back(source.kind == Source::Kind::kConstant ? source.constant : IValue(true));
    }
    const OperatorTraits traits(schema);
    for (const int16_t k : traits.StatisticsWritten(values)) step->written.push_back(static_cast<size_t>(k));
  }

  void NoteTraining(const c10::FunctionSchema& schema, const std::string& argument, const Source& source, Step* step) {
    const bool flag = argument == "train" || argument == "training";
    if (!flag || source.kind != Source::Kind::kConstant || !source.constant.isBool() || !source.constant.toBool()) {
      return;
    }
    // A batch norm without statistics of its own takes those of the batch in evaluation too.
    const auto mean = schema.argumentIndexWithName("running_mean");
    if (schema.overload_name() == "no_stats") return;
    if (mean && step->arguments[static_cast<size_t>(*mean)].constant.isNone() &&
        step->arguments[static_cast<size_t>(*mean)].kind == Source::Kind::kConstant) {
      return;
    }
    step->training = true;
    const std::string name = schema.name().substr(schema.name().rfind(':') + 1);
    std::string note = absl::StrCat(name, "(", argument, "=True)");
    for (const std::string& known : *training_) {
      if (known == note) return;
    }
    training_->push_back(std::move(note));
  }

  // ----------------------------------------------------------------------------------- higher-order operators

  std::shared_ptr<Steps> Subgraph(const Node& node, size_t k) {
    const Argument* argument = Input(node, k);
    if (argument->kind != Argument::Kind::kGraph || argument->graph == nullptr) {
      Malformed(node, absl::StrCat("has no graph as argument ", k));
    }
    static const auto& nothing = *new std::map<std::string, IValue>();
    return StepsMaker(options_, places_, training_).Make(*argument->graph, nothing);
  }

  static const Argument* Input(const Node& node, size_t k) {
    if (k >= node.inputs.size()) Malformed(node, "has too few arguments");
    return &node.inputs[k].argument;
  }

  // The arguments from `first` on, lists taken apart.
  void AddOperands(const Node& node, size_t first, size_t last, Step* step) {
    for (size_t k = first; k < last; ++k) AddOperand(*Input(node, k), step);
  }
  void AddOperand(const Argument& argument, Step* step) {
    if (argument.kind == Argument::Kind::kList) {
      for (const Argument& one : argument.elements) AddOperand(one, step);
    } else if (argument.kind == Argument::Kind::kConstant && argument.constant.isList()) {
      for (const IValue& one : argument.constant.toList().vec()) step->arguments.push_back(Constant(one, nullptr));
    } else {
      step->arguments.push_back(SourceOf(argument, nullptr));
    }
  }

  IValue ConstantInput(const Node& node, size_t k) {
    const Argument* argument = Input(node, k);
    if (argument->kind != Argument::Kind::kConstant) Malformed(node, absl::StrCat("has no constant as argument ", k));
    return argument->constant;
  }

  void AddHigherOrder(const Node& node, Step* step) {
    const std::string name = node.target.substr(sizeof(kHigherOrder) - 1);
    const size_t count = node.inputs.size();
    step->name = name;
    step->kind = Step::Kind::kSubgraph;
    if (name == "wrap_with_set_grad_enabled") {
      const IValue enabled = ConstantInput(node, 0);
      if (!enabled.isBool()) Malformed(node, "does not say whether gradients are on");
      step->gradients = enabled.toBool();
      step->bodies = {Subgraph(node, 1)};
      AddOperands(node, 2, count, step);
    } else if (name == "wrap_with_autocast") {
      const IValue enabled = ConstantInput(node, 2);
      if (!enabled.isBool() || enabled.toBool()) {
        Refuse(node, "under autocast, which casts behind the operators", "export the model without autocast");
      }
      step->bodies = {Subgraph(node, 4)};
      AddOperands(node, 5, count, step);
    } else if (name == "invoke_subgraph") {
      step->bodies = {Subgraph(node, 0)};
      AddOperands(node, 2, count, step);
    } else if (name == "tag_activation_checkpoint" || name == "run_const_graph" || name == "strict_mode") {
      step->bodies = {Subgraph(node, 0)};
      AddOperands(node, 1, count, step);
    } else if (name == "cond") {
      step->kind = Step::Kind::kCond;
      step->arguments.push_back(SourceOf(*Input(node, 0), nullptr));
      step->bodies = {Subgraph(node, 1), Subgraph(node, 2)};
      AddOperands(node, 3, count, step);
    } else if (name == "while_loop") {
      step->kind = Step::Kind::kWhile;
      step->bodies = {Subgraph(node, 0), Subgraph(node, 1)};
      AddOperands(node, 2, 3, step);
      step->changing = step->arguments.size();
      AddOperands(node, 3, count, step);
    } else if (name == "map_impl" || name == "map") {
      step->kind = Step::Kind::kMap;
      step->bodies = {Subgraph(node, 0)};
      AddOperands(node, 1, 2, step);
      step->changing = step->arguments.size();
      AddOperands(node, 2, count, step);
    } else if (name == "scan") {
      AddScan(node, step);
    } else if (name == "with_effects") {
      AddEffects(node, step);
    } else if (name == "auto_functionalized" || name == "auto_functionalized_v2") {
      AddFunctionalized(node, step);
    } else {
      Refuse(node, "which this library does not run", kDecompose);
    }
    for (const auto& body : step->bodies) {
      if (!body->writes) continue;
      step->written.clear();
      for (size_t k = 0; k < step->arguments.size(); ++k) step->written.push_back(k);
    }
  }

  // (function, state, rows, other arguments), in older files with dimension and direction before the others.
  void AddScan(const Node& node, Step* step) {
    step->kind = Step::Kind::kScan;
    step->bodies = {Subgraph(node, 0)};
    AddOperands(node, 1, 2, step);
    step->state = step->arguments.size();
    AddOperands(node, 2, 3, step);
    step->changing = step->arguments.size() - step->state;
    for (size_t k = 3; k < node.inputs.size(); ++k) {
      const Argument& argument = *Input(node, k);
      if (argument.kind == Argument::Kind::kConstant && argument.constant.isInt()) {
        step->dim = argument.constant.toInt();
      } else if (argument.kind == Argument::Kind::kConstant && argument.constant.isBool()) {
        step->reverse = argument.constant.toBool();
      } else {
        AddOperand(argument, step);
      }
    }
  }

  OperatorParts OperatorInput(const Node& node, size_t k) {
    const Argument* argument = Input(node, k);
    const bool named = argument->kind == Argument::Kind::kOperator;
    const auto parts = named ? PartsOf(argument->name) : std::nullopt;
    if (!parts) Refuse(node, "which calls something that is no operator", kDecompose);
    return *parts;
  }

  void AddEffects(const Node& node, Step* step) {
    const OperatorParts parts = OperatorInput(node, 1);
    AddOperator(parts, {node.inputs.begin() + 2, node.inputs.end()}, node, step);
  }

  // An operator of a library that writes its arguments. The second form names what is written by numbers of bases.
  void AddFunctionalized(const Node& node, Step* step) {
    const OperatorParts parts = OperatorInput(node, 0);
    std::vector<NamedArgument> given;
    std::vector<Argument> bases;
    std::map<std::string, int64_t> base_of;
    bool whole = true;
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      const NamedArgument& one = node.inputs[k];
      if (one.name == "_all_bases") {
        bases = one.argument.elements;
      } else if (absl::StartsWith(one.name, "_") && absl::EndsWith(one.name, "_base_index")) {
        const std::string argument = one.name.substr(1, one.name.size() - 12);
        if (one.argument.kind != Argument::Kind::kConstant)
          Malformed(node, absl::StrCat("has no number in ", one.name));
        if (one.argument.constant.isInt()) base_of[argument] = one.argument.constant.toInt();
      } else if (absl::StartsWith(one.name, "_") && absl::EndsWith(one.name, "_alias")) {
        continue;  // the whole base
      } else if (node.target == "torch.ops.higher_order.auto_functionalized_v2" && absl::StartsWith(one.name, "_")) {
        whole = false;
      } else {
        given.push_back(one);
      }
    }
    if (!whole) {
      Refuse(node, absl::StrCat("with parts of tensors that ", parts.name, " writes"),
             "export the model without run_decompositions()");
    }
    for (const auto& [argument, base] : base_of) {
      if (base < 0 || base >= static_cast<int64_t>(bases.size())) Malformed(node, "names a tensor that it lacks");
      given.push_back({argument, bases[static_cast<size_t>(base)], NamedArgument::Pass::kKeyword});
    }
    AddOperator(parts, given, node, step);
    if (!step->op)
      Refuse(node, absl::StrCat(parts.name, ", which this LibTorch lacks"), "load the library that has it");
    const auto& arguments = step->op->schema().arguments();
    const auto writes = [&](size_t k) {
      return arguments[k].alias_info() != nullptr && arguments[k].alias_info()->isWrite();
    };
    if (bases.empty()) {
      for (size_t k = 0; k < arguments.size(); ++k) {
        if (writes(k)) step->copied.push_back(k);
      }
    } else {
      for (size_t b = 0; b < bases.size(); ++b) {
        std::vector<size_t> users;
        for (const auto& [argument, base] : base_of) {
          if (base == static_cast<int64_t>(b)) {
            users.push_back(static_cast<size_t>(*step->op->schema().argumentIndexWithName(argument)));
          }
        }
        if (users.size() != 1) {
          Refuse(node, "which writes one tensor through two arguments",
                 "export the model without run_decompositions()");
        }
        step->copied.push_back(users[0]);
      }
    }
    step->kind = Step::Kind::kFunctionalized;
    step->written.clear();
  }

  // ----------------------------------------------------------------------------------------------- liveness

  static void ForEachSlot(const Source& source, const std::function<void(int)>& visit) {
    if (source.kind == Source::Kind::kSlot) visit(source.slot);
    for (const Source& element : source.elements) ForEachSlot(element, visit);
  }

  void FindDead() {
    std::vector<int> last(static_cast<size_t>(steps_->num_slots), -1);
    for (size_t s = 0; s < steps_->all.size(); ++s) {
      const auto use = [&](int slot) {
        if (slot >= 0) last[static_cast<size_t>(slot)] = static_cast<int>(s);
      };
      const Step& step = steps_->all[s];
      for (const Source& argument : step.arguments) ForEachSlot(argument, use);
      for (const Result& result : step.results) {
        use(result.slot);
        for (const int slot : result.elements) use(slot);
      }
    }
    for (const Source& output : steps_->outputs) {
      ForEachSlot(output, [&](int slot) { last[static_cast<size_t>(slot)] = -1; });
    }
    for (size_t slot = 0; slot < last.size(); ++slot) {
      if (last[slot] >= 0) steps_->all[static_cast<size_t>(last[slot])].dead.push_back(static_cast<int>(slot));
    }
  }

  const StepsOptions& options_;
  std::vector<std::unique_ptr<CodePlace>>* places_;
  std::vector<std::string>* training_;
  std::shared_ptr<Steps> steps_;
  const std::map<std::string, IValue>* known_ = nullptr;
  absl::flat_hash_map<std::string, int> slots_;
  const Node* node_ = nullptr;
};

// Whether an int64 holds the number. What a cast makes of any other depends on the processor.
bool IsInt64(double number) {
  // The upper bound is no int64 any more.
  return std::trunc(number) == number && number >= -9223372036854775808.0 && number < 9223372036854775808.0;
}

}  // namespace

IValue Fitted(const IValue& value, const c10::TypePtr& type) {
  if (type == nullptr || value.isTensor() || value.isNone()) return value;
  const c10::Type& bare = Bare(*type);
  if (bare.kind() == c10::TypeKind::TensorType) return value.isScalar() ? IValue(NumberTensor(value)) : value;
  if (bare.kind() == c10::TypeKind::FloatType) {
    if (value.isInt()) return static_cast<double>(value.toInt());
    return value.isBool() ? IValue(value.toBool() ? 1.0 : 0.0) : value;
  }
  if (IsInteger(bare)) {
    if (value.isBool()) return static_cast<int64_t>(value.toBool());
    return value.isDouble() && IsInt64(value.toDouble()) ? IValue(static_cast<int64_t>(value.toDouble())) : value;
  }
  if (bare.kind() == c10::TypeKind::ListType && value.isList()) {
    return FittedList(value.toList().vec(), bare.expectRef<c10::ListType>().getElementType());
  }
  return value;
}

PreparedSteps MakeSteps(const Graph& graph, const StepsOptions& options) {
  const TracingPause pause;
  PreparedSteps prepared;
  auto places = std::make_shared<std::vector<std::unique_ptr<CodePlace>>>();
  StepsMaker maker(options, places.get(), &prepared.training);
  const std::shared_ptr<Steps> steps = maker.Make(graph, options.known);
  for (const ModuleCall& call : NumberedCalls(graph, options.returned)) maker.Tell(call);
  prepared.written = JudgeAliases(steps.get());
  prepared.steps = steps;
  prepared.places = std::move(places);
  return prepared;
}

}  // namespace addend::exported
