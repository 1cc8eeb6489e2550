// Rules of the caller's own.
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "c_api/callback_map.h"
#include "c_api/run.h"
#include "core/intercept/tracing_scope.h"
#include "core/rules/kinds.h"
#include "core/rules/path.h"

namespace addend::c_api {

// Handles that rules are shown live in slots as well, so that one that a callback has kept is found out.
constexpr int32_t kRuleCallKind = kNumKinds;
constexpr int32_t kRuleResultKind = kNumKinds + 1;

struct RuleCallBody {
  const RuleCall* call = nullptr;
};

struct RuleResultBody {
  const RuleCall* call = nullptr;
  std::vector<Term> terms;
  std::vector<int> inputs;
  std::shared_ptr<const Callbacks<addend_map_callbacks>> map;
  bool exact = false;
};

template <>
struct Traits<addend_rule_call> {
  using Body = RuleCallBody;
  static constexpr int32_t kKind = kRuleCallKind;
  static constexpr char kName[] = "addend_rule_call";
};
template <>
struct Traits<addend_rule_result> {
  using Body = RuleResultBody;
  static constexpr int32_t kKind = kRuleResultKind;
  static constexpr char kName[] = "addend_rule_result";
};

namespace {

// A copy of the caller's table, whose payload is not taken over yet. A caller that was built later may bring a longer
// table: what this library does not know of it is not looked at. One that was built earlier brings a shorter one, of
// `first` bytes at least: what it does not have is null.
template <typename Table>
std::shared_ptr<Callbacks<Table>> CopyOf(const Table* callbacks, size_t first = sizeof(Table)) {
  RequireOut(callbacks, "callbacks");
  if (callbacks->struct_size < first) {
    throw InvalidArgument(absl::StrCat("callbacks has struct_size ", callbacks->struct_size, "; set it to ",
                                       sizeof(Table), ", its size"));
  }
  auto copy = std::make_shared<Callbacks<Table>>();
  std::memcpy(&copy->table, callbacks, callbacks->struct_size < sizeof(Table) ? first : sizeof(Table));
  return copy;
}

template <typename Table>
void TakePayloadOver(Callbacks<Table>* callbacks) {
  callbacks->payload = OwnPayload(callbacks->table.payload, callbacks->table.release);
}

RuleResult Build(const std::string& op, const Callbacks<addend_rule_callbacks>& callbacks, const RuleCall& call) {
  const TracingPause pause;
  Scoped<addend_rule_call> shown(RuleCallBody{&call});
  RuleResultBody empty;
  empty.call = &call;
  Scoped<addend_rule_result> filled(std::move(empty));
  RequireZero(callbacks.table.build(callbacks.table.payload, shown.get(), filled.get()),
              absl::StrCat("the rule for ", op));
  RuleResultBody& body = *filled;
  RuleResult result;
  if (body.map != nullptr) {
    std::vector<at::Tensor> inputs;
    for (const int input : body.inputs) inputs.push_back(call.operands[input].value);
    result.kind = Kind::kLinear;
    result.inputs = body.inputs;
    result.map = MakeCallbackMap(op, body.map, inputs, call.outputs.at(0).value);
  } else {
    result = Elementwise(call, Kind::kPointwise, std::move(body.terms));
  }
  result.exact = body.exact;
  return result;
}

RuleFunction PrincipleOf(const std::string& principle, Kind* kind) {
  const auto pointwise = [&](Curve curve) {
    *kind = Kind::kPointwise;
    return [curve](const RuleCall& call) { return Pointwise(call, curve); };
  };
  if (principle == "pointwise") return pointwise(Curve::kSmooth);
  if (principle == "pointwise_power") return pointwise(Curve::kPower);
  if (principle == "pointwise_piecewise") return pointwise(Curve::kPiecewiseLinear);
  *kind = Kind::kPath;
  if (principle == "path") return PathThroughAutograd;
  if (principle == "path_elementwise") return PathElementwise;
  *kind = Kind::kOpaque;
  if (principle == "opaque") return Opaque;
  throw InvalidArgument(absl::StrCat("principle is ", principle, "; choose pointwise, pointwise_power, ",
                                     "pointwise_piecewise, path, path_elementwise or opaque"));
}

std::string OpName(const char* op) {
  const std::string name = Text(op, "op");
  const size_t colons = name.find("::");
  if (colons == std::string::npos || colons == 0 || colons + 2 == name.size()) {
    throw InvalidArgument(absl::StrCat("op is ", name, "; operators are called like my_ops::smooth_abs"));
  }
  return name;
}

const at::Tensor& PartOf(const at::Tensor& value, const at::Tensor& reference, int32_t part) {
  if (part == ADDEND_VALUE) return value;
  if (part == ADDEND_REFERENCE) return reference;
  throw InvalidArgument(absl::StrCat("part is ", part, "; a rule knows ADDEND_VALUE and ADDEND_REFERENCE"));
}

const RuleOperand& OperandOf(const RuleCall& call, size_t operand) {
  if (operand < call.operands.size()) return call.operands[operand];
  throw Error(absl::StatusCode::kOutOfRange,
              absl::StrCat("operand is ", operand, ", but the call has ", call.operands.size()));
}

}  // namespace

extern "C" {

ADDEND_API addend_status* addend_rules_create(addend_rules** out_rules) noexcept {
  return Guard([&] {
    RequireOut(out_rules, "out_rules");
    Give(out_rules);
  });
}

ADDEND_API addend_status* addend_rules_add(addend_rules* rules, const char* op, const char* principle) noexcept {
  return Guard([&] {
    RulesBody& body = Get(rules, "rules");
    Rule rule;
    rule.name = OpName(op);
    rule.build = PrincipleOf(Text(principle, "principle"), &rule.kind);
    body.registry.Register(std::move(rule));
  });
}

ADDEND_API addend_status* addend_rules_add_callbacks(addend_rules* rules, const char* op,
                                                     const addend_rule_callbacks* callbacks) noexcept {
  return Guard([&] {
    RulesBody& body = Get(rules, "rules");
    Rule rule;
    rule.name = OpName(op);
    rule.kind = Kind::kPointwise;
    const auto own = CopyOf(callbacks);
    if (own->table.build == nullptr) throw InvalidArgument("callbacks has no build");
    TakePayloadOver(own.get());
    rule.build = [name = rule.name, own](const RuleCall& call) { return Build(name, *own, call); };
    body.registry.Register(std::move(rule));
  });
}

ADDEND_API void addend_rules_release(addend_rules* rules) noexcept { Release(rules); }

ADDEND_API addend_status* addend_context_options_set_rules(addend_context_options* options,
                                                           const addend_rules* rules) noexcept {
  return Guard([&] {
    ContextBody& context = Get(options, "options").context;
    context.rules = std::make_shared<const Registry>(Get(rules, "rules").registry);
  });
}

ADDEND_API size_t addend_rule_call_num_operands(const addend_rule_call* call) noexcept {
  const RuleCallBody* body = Peek(call);
  return body == nullptr ? 0 : body->call->operands.size();
}

ADDEND_API int32_t addend_rule_call_decomposed(const addend_rule_call* call, size_t operand) noexcept {
  const RuleCallBody* body = Peek(call);
  return body != nullptr && operand < body->call->operands.size() && body->call->operands[operand].decomposed ? 1 : 0;
}

ADDEND_API addend_status* addend_rule_call_operand(const addend_rule_call* call, size_t operand, int32_t part,
                                                   addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    const RuleOperand& own = OperandOf(*Get(call, "call").call, operand);
    RequireOut(out_tensor, "out_tensor");
    Give(out_tensor, PartOf(own.value, own.reference, part).detach());
  });
}

ADDEND_API addend_status* addend_rule_call_output(const addend_rule_call* call, int32_t part,
                                                  addend_tensor** out_tensor) noexcept {
  return Guard([&] {
    const RuleCall& own = *Get(call, "call").call;
    RequireOut(out_tensor, "out_tensor");
    Give(out_tensor, PartOf(own.outputs.at(0).value, own.outputs.at(0).reference, part).detach());
  });
}

ADDEND_API addend_status* addend_rule_call_number(const addend_rule_call* call, size_t argument,
                                                  double* out_number) noexcept {
  return Guard([&] {
    const RuleCall& own = *Get(call, "call").call;
    RequireOut(out_number, "out_number");
    if (argument >= own.arguments.size()) {
      throw Error(absl::StatusCode::kOutOfRange,
                  absl::StrCat("argument is ", argument, ", but the call has ", own.arguments.size()));
    }
    const c10::IValue& value = own.arguments[argument];
    if (value.isBool()) {
      *out_number = value.toBool() ? 1 : 0;
    } else if (value.isInt() || value.isDouble()) {
      *out_number = value.toScalar().toDouble();
    } else {
      throw InvalidArgument(absl::StrCat("argument ", argument, " is no number"));
    }
  });
}

ADDEND_API addend_status* addend_rule_result_add_term(addend_rule_result* result, size_t operand,
                                                      const addend_tensor* coefficient) noexcept {
  return Guard([&] {
    RuleResultBody& body = Get(result, "result");
    OperandOf(*body.call, operand);
    body.terms.push_back({static_cast<int>(operand), TensorOf(coefficient, "coefficient")});
  });
}

ADDEND_API addend_status* addend_rule_result_set_map(addend_rule_result* result, const int64_t* operands,
                                                     size_t num_operands,
                                                     const addend_map_callbacks* callbacks) noexcept {
  return Guard([&] {
    RuleResultBody& body = Get(result, "result");
    RequireArray(operands, num_operands, "operands");
    if (num_operands == 0) throw InvalidArgument("num_operands is 0; a map reads at least one");
    std::vector<int> inputs;
    for (size_t k = 0; k < num_operands; ++k) {
      const RuleOperand& operand = OperandOf(*body.call, static_cast<size_t>(operands[k]));
      if (!operand.decomposed) throw InvalidArgument(absl::StrCat("operand ", operands[k], " has no rows"));
      inputs.push_back(static_cast<int>(operands[k]));
    }
    const auto own = CopyOf(callbacks, offsetof(addend_map_callbacks, transpose));
    if (own->table.forward == nullptr) throw InvalidArgument("callbacks has no forward");
    TakePayloadOver(own.get());
    body.map = own;
    body.inputs = std::move(inputs);
  });
}

ADDEND_API addend_status* addend_rule_result_set_exact(addend_rule_result* result, int32_t exact) noexcept {
  return Guard([&] { Get(result, "result").exact = exact != 0; });
}

}  // extern "C"

}  // namespace addend::c_api
