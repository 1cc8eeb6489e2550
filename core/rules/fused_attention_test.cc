// Attention in tiles against its formulas, written out with all scores at once in double precision.
#include "core/rules/fused_attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/rules/kinds.h"
#include "core/rules/quadrature.h"
#include "core/rules/rule_testing.h"

namespace addend {
namespace {

using at::Tensor;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// heads: of the queries; 0: matrices.
Tensor Repeated(const Tensor& t, int64_t heads) {
  return heads > 0 && t.size(-3) != heads ? t.repeat_interleave(heads / t.size(-3), -3) : t;
}

int64_t Heads(const Tensor& query) { return query.dim() > 2 ? query.size(-3) : 0; }

// The mask as a summand.
Tensor Summand(const Optional<Tensor>& mask, bool causal, const Tensor& query, const Tensor& key) {
  const Tensor none = at::zeros({query.size(-2), key.size(-2)}, query.options());
  if (causal) return none.masked_fill(at::ones(none.sizes(), at::kBool).triu(1), -kInfinity);
  if (!mask.has_value()) return none;
  if (mask->scalar_type() != at::kBool) return mask->to(query.scalar_type());
  return at::zeros(mask->sizes(), query.options()).masked_fill(mask->logical_not(), -kInfinity);
}

// Zero in rows of which everything is masked.
Tensor Softmax(const Tensor& scores) { return scores.softmax(-1).masked_fill(scores.eq(-kInfinity).all(-1, true), 0); }

Tensor Scores(const Tensor& query, const Tensor& key, const Tensor& summand, double scale) {
  return at::matmul(query * scale, Repeated(key, Heads(query)).transpose(-2, -1)) + summand;
}

std::tuple<Tensor, Tensor> Attend(const Tensor& query, const Tensor& key, const Tensor& value,
                                  const Optional<Tensor>& mask, double, bool causal, Optional<double> scale, bool) {
  const double own = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  const Tensor scores = Scores(query, key, Summand(mask, causal, query, key), own);
  const Tensor sums = scores.logsumexp(-1).masked_fill(scores.eq(-kInfinity).all(-1), 0);
  return {at::matmul(Softmax(scores), Repeated(value, Heads(query))), sums};
}

TORCH_LIBRARY(attended, library) {
  const std::string arguments =
      "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, "
      "float? scale=None, bool enable_gqa=False)";
  library.def(("alone" + arguments + " -> Tensor").c_str(),
              [](const Tensor& q, const Tensor& k, const Tensor& v, const Optional<Tensor>& mask, double dropout,
                 bool causal, Optional<double> scale,
                 bool shared) { return std::get<0>(Attend(q, k, v, mask, dropout, causal, scale, shared)); });
  library.def(("with_sums" + arguments + " -> (Tensor, Tensor)").c_str(), Attend);
  library.def(("with_weights" + arguments + " -> (Tensor, Tensor)").c_str(),
              [](const Tensor& q, const Tensor& k, const Tensor& v, const Optional<Tensor>& mask, double dropout,
                 bool causal, Optional<double> scale, bool shared) {
                const double own = scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
                return std::make_tuple(std::get<0>(Attend(q, k, v, mask, dropout, causal, scale, shared)),
                                       Softmax(Scores(q, k, Summand(mask, causal, q, k), own)));
              });
}

// ---- the formulas

struct Case {
  std::string name;
  Sizes query, key, value;
  std::function<c10::IValue(Draw&)> mask = nullptr;
  bool causal = false;
  c10::IValue scale = {};
  double reach = 1;  // how far scores move
  bool strided = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Tensor Below(int64_t rows, int64_t columns, int64_t from, int64_t to) {
  return at::ones({rows, columns}, at::kBool).triu(from).tril(to);
}

std::vector<Case> Cases() {
  const auto window = [](Draw&) -> c10::IValue { return Below(200, 200, -9, 5); };
  const auto far_window = [](Draw&) -> c10::IValue {  // some columns are seen from everywhere
    Tensor mask = Below(200, 200, -9, 5);
    mask.narrow(1, 130, 2).fill_(true);
    return mask;
  };
  const auto added = [](Sizes sizes) { return [sizes](Draw& draw) -> c10::IValue { return draw.Normal(sizes, 2); }; };
  const auto hidden = [](double by) {
    return [by](Draw& draw) -> c10::IValue {
      const Tensor none = draw.Normal({200, 200}, 0);
      return none.masked_fill(Below(200, 200, -9, 5).logical_not(), by);
    };
  };
  const auto rows_hidden = [](double by) {  // all of row 1, some of row 2
    return [by](Draw& draw) -> c10::IValue {
      const Tensor mask = draw.Normal({5, 7}, 0);
      mask.select(0, 1).fill_(by);
      mask.select(0, 2).narrow(0, 2, 3).fill_(by);
      return mask;
    };
  };
  return {
      {"plain", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 3}},
      {"matrices", {5, 4}, {7, 4}, {7, 3}},
      {"three_dimensions", {3, 5, 4}, {3, 7, 4}, {3, 7, 3}},
      {"five_dimensions", {2, 1, 3, 5, 4}, {2, 1, 3, 7, 4}, {2, 1, 3, 7, 3}},
      {"one_position", {1, 2, 1, 4}, {1, 2, 9, 4}, {1, 2, 9, 3}},
      {"one_key", {1, 2, 4, 4}, {1, 2, 1, 4}, {1, 2, 1, 3}},
      {"scaled", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 3}, nullptr, false, 0.3},
      {"negative_scale", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 3}, nullptr, false, -1.5},
      {"far", {1, 2, 5, 4}, {1, 2, 7, 4}, {1, 2, 7, 3}, nullptr, false, {}, 6},
      {"near", {1, 2, 5, 4}, {1, 2, 7, 4}, {1, 2, 7, 3}, nullptr, false, {}, 1e-4},
      {"strips", {1, 2, 150, 4}, {1, 2, 90, 4}, {1, 2, 90, 3}},
      {"causal", {1, 2, 150, 4}, {1, 2, 150, 4}, {1, 2, 150, 3}, nullptr, true},
      {"causal_wide", {1, 2, 70, 4}, {1, 2, 150, 4}, {1, 2, 150, 3}, nullptr, true},
      {"causal_high", {1, 2, 150, 4}, {1, 2, 70, 4}, {1, 2, 70, 3}, nullptr, true},
      {"causal_few", {2, 2, 3, 4}, {2, 2, 3, 4}, {2, 2, 3, 3}, nullptr, true},
      {"window", {1, 1, 200, 4}, {1, 1, 200, 4}, {1, 1, 200, 3}, window},
      {"windows", {1, 1, 200, 4}, {1, 1, 200, 4}, {1, 1, 200, 3}, far_window},
      {"window_by_infinities", {1, 1, 200, 4}, {1, 1, 200, 4}, {1, 1, 200, 3}, hidden(-kInfinity)},
      {"window_by_the_least_number", {1, 1, 200, 4}, {1, 1, 200, 4}, {1, 1, 200, 3}, hidden(-3.4028234e38)},
      {"window_by_much", {1, 1, 200, 4}, {1, 1, 200, 4}, {1, 1, 200, 3}, hidden(-1e4)},
      {"window_by_little", {1, 1, 200, 4}, {1, 1, 200, 4}, {1, 1, 200, 3}, hidden(-3)},
      {"added", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 3}, added({5, 7})},
      {"added_to_keys", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 3}, added({2, 1, 1, 7})},
      {"added_to_heads", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 3}, added({3, 5, 7})},
      {"masked_row", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 3}, rows_hidden(-kInfinity)},
      {"row_far_below", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 3}, rows_hidden(-512)},
      {"all_masked", {2, 5, 4}, {2, 7, 4}, {2, 7, 3}, [](Draw&) -> c10::IValue { return Below(5, 7, 7, 7); }},
      {"shared_heads", {2, 4, 5, 4}, {2, 2, 7, 4}, {2, 2, 7, 3}},
      {"one_head_for_all", {2, 4, 70, 4}, {2, 1, 70, 4}, {2, 1, 70, 3}, nullptr, true},
      {"shared_heads_three_dimensions", {4, 5, 4}, {2, 7, 4}, {2, 7, 3}, added({4, 5, 7})},
      {"strided", {2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 3}, nullptr, false, {}, 1, true},
  };
}

// Attention of a call computed by hand, in double precision.
struct Written {
  Tensor query, key, value;        // those that rows meet
  Tensor scores, scores_at_start;  // [*, T, S]
  Tensor weights;                  // what rows of values meet
  bool query_moves, key_moves, weights_move, value_moves;
  double scale;
  int pieces = 1;  // of the line, for the quadrature

  // The mean of the Jacobians of a softmax times `rows`, and with `sums` that of its weights.
  Tensor Along(const Tensor& rows, const Tensor& sums = {}) const {
    const Quadrature rule = GaussLegendre(40);
    const Tensor move = (scores - scores_at_start).masked_fill(scores.eq(scores_at_start), 0);
    Tensor all = at::zeros_like(rows);
    for (int piece = 0; piece < pieces; ++piece) {
      for (size_t k = 0; k < rule.nodes.size(); ++k) {
        const Tensor p = Softmax(scores_at_start + move * ((piece + rule.nodes[k]) / pieces));
        Tensor own = rows - (p * rows).sum(-1, true);
        if (sums.defined()) own = own + sums.unsqueeze(-1);
        all += p * own * (rule.weights[k] / pieces);
      }
    }
    return all;
  }
  // Sums over rows' scores, weighted by the mean weights.
  Tensor Sums(const Tensor& rows) const {
    return Along(at::zeros_like(rows), at::ones_like(rows.select(-1, 0))).mul(rows).sum(-1);
  }
};

class AttentionFormulas : public testing::TestWithParam<Case> {
 protected:
  void Draw(at::ScalarType dtype) {
    class Draw draw(dtype, 7);
    const Case& c = GetParam();
    const auto moving = [&](Sizes sizes) {
      if (c.strided) std::swap(sizes[sizes.size() - 2], sizes[sizes.size() - 3]);
      const Tensor start = draw.Normal(sizes);
      const Tensor value = start + draw.Normal(sizes, c.reach);
      const auto own = [&](const Tensor& t) { return c.strided ? t.transpose(-2, -3) : t; };
      return GivenArgument(own(value), own(start));
    };
    arguments_ = {moving(c.query), moving(c.key), moving(c.value)};
    mask_ = c.mask ? c.mask(draw) : c10::IValue();
    for (const c10::IValue& rest : {mask_, c10::IValue(0.0), c10::IValue(c.causal), c.scale}) {
      arguments_.push_back(GivenArgument(rest));
    }
  }

  static RuleResult Build(const RuleCall& call) {
    const char* name = call.name == "attended::alone"       ? "aten::scaled_dot_product_attention"
                       : call.name == "attended::with_sums" ? "aten::_scaled_dot_product_flash_attention_for_cpu"
                                                            : "aten::_scaled_dot_product_attention_math";
    return Registry::Default().FindRewrite(name, name)->fused->rule.build(call);
  }

  enum class Sharing { kMagnitude, kContent, kHalf, kFrozen };

  Written Write(const RuleCall& call, Sharing sharing) const {
    const bool by_half = sharing == Sharing::kHalf;
    const bool frozen = sharing == Sharing::kFrozen;
    const auto end = [&](int k, bool value) {
      const RuleOperand& operand = call.operands[k];
      return (value ? operand.value : operand.reference).to(at::kDouble);
    };
    const int64_t heads = Heads(end(0, true));
    const auto middle = [&](int k) { return (end(k, true) + end(k, false)) / 2; };
    Written own;
    if (GetParam().reach > 1) own.pieces = 12;
    own.scale = GetParam().scale.isNone() ? 1 / std::sqrt(4.0) : GetParam().scale.toDouble();
    const Optional<Tensor> mask = mask_.isNone() ? Optional<Tensor>() : Optional<Tensor>(mask_.toTensor());
    const Tensor summand = Summand(mask, GetParam().causal, end(0, true), end(1, true));
    own.scores = Scores(end(0, true), end(1, true), summand, own.scale);
    own.scores_at_start = Scores(end(0, false), end(1, false), summand, own.scale);
    own.query = middle(0);
    own.key = Repeated(middle(1), heads);
    own.query_moves = call.operands[0].decomposed;
    own.key_moves = call.operands[1].decomposed;
    own.value_moves = call.operands[2].decomposed;
    own.weights_move = (own.query_moves || own.key_moves) && !(frozen && own.value_moves);
    const bool both = own.weights_move && own.value_moves;
    own.value = Repeated(both ? (by_half ? middle(2) : end(2, false)) : end(2, true), heads);
    own.weights = both && by_half ? (Softmax(own.scores) + Softmax(own.scores_at_start)) / 2 : Softmax(own.scores);
    if (both && sharing == Sharing::kMagnitude) {
      // s = 1.5 |V_j| / (1.5 |V_j| + |V'_j|)
      const auto length = [&](bool value) { return Repeated(end(2, value), heads).square().sum(-1).sqrt(); };
      const Tensor share = (1.5 * length(true) / (1.5 * length(true) + length(false))).unsqueeze(-2);
      const Tensor of_rows = share.transpose(-2, -1);
      own.value = of_rows * Repeated(end(2, false), heads) + (1 - of_rows) * Repeated(end(2, true), heads);
      own.weights = share * own.weights + (1 - share) * Softmax(own.scores_at_start);
    }
    return own;
  }

  static Tensor Summed(const Tensor& back, const Sizes& sizes) {  // over queries that share keys
    if (sizes.size() < 3 || back.size(-3) == sizes[sizes.size() - 3]) return back;
    Sizes apart(back.sizes().begin(), back.sizes().end());
    apart[apart.size() - 3] = sizes[sizes.size() - 3];
    apart.insert(apart.end() - 2, back.size(-3) / sizes[sizes.size() - 3]);
    return back.reshape(apart).sum(-3);
  }

  void ExpectFormulas(const char* op, at::ScalarType dtype, double tolerance) {
    Draw(dtype);
    const bool sums = std::string(op) == "attended::with_sums";
    const bool weights = std::string(op) == "attended::with_weights";
    const bool two = sums || weights;
    const OperatorCall given(op, arguments_);
    const bool large = *(GetParam().query.end() - 2) > 20;  // of several strips
    if (GetParam().reach > 1) tolerance *= 10;
    if (GetParam().name == "row_far_below") tolerance *= 30;  // its scores have so many digits less
    Policy magnitude = Faithful();
    magnitude.by_magnitude = kFreezeAttention;
    struct Named {
      const Policy* policy;
      Sharing sharing;
    };
    for (const Named& policy : {Named{&magnitude, Sharing::kMagnitude}, Named{&Faithful(), Sharing::kContent},
                                Named{&ByHalf(), Sharing::kHalf}, Named{&Fast(), Sharing::kFrozen}}) {
      for (uint32_t decomposed = large ? 7 : 1; decomposed < 8; ++decomposed) {
        SCOPED_TRACE(testing::Message() << "sharing " << static_cast<int>(policy.sharing) << ", decomposed "
                                        << decomposed);
        const RuleCall call = given.Describe(*policy.policy, decomposed);
        const RuleResult rule = Build(call);
        const Written own = Write(call, policy.sharing);
        const int64_t heads = Heads(call.operands[0].value);
        class Draw draw(dtype, 11);
        for (const int64_t count : {3, 1}) {
          if (large && count == 1) continue;
          // Forward.
          const Rows rows = RandomRows(draw, call, rule, count);
          ASSERT_EQ(rows.size(), rule.inputs.size());
          const auto of = [&](int operand) {
            for (size_t k = 0; k < rows.size(); ++k) {
              if (rule.inputs[k] == operand) return rows[k].to(at::kDouble);
            }
            return Tensor();
          };
          const bool reads = own.weights_move || (two && (own.query_moves || own.key_moves));
          Tensor scores;
          if (reads && own.query_moves) scores = at::matmul(of(0) * own.scale, own.key.transpose(-2, -1));
          if (reads && own.key_moves) {
            const Tensor more = at::matmul(own.query * own.scale, Repeated(of(1), heads).transpose(-2, -1));
            scores = scores.defined() ? scores + more : more;
          }
          Tensor expected;
          if (own.weights_move) expected = at::matmul(own.Along(scores), own.value);
          if (own.value_moves) {
            const Tensor more = at::matmul(own.weights, Repeated(of(2), heads));
            expected = expected.defined() ? expected + more : more;
          }
          const Rows passed = rule.map->Forward(rows);
          EXPECT_LE(Difference(passed[0].to(at::kDouble), expected), tolerance);
          if (sums && scores.defined()) {
            EXPECT_LE(Difference(passed[1].to(at::kDouble), own.Sums(scores)), tolerance);
          }
          if (weights && scores.defined()) {
            EXPECT_LE(Difference(passed[1].to(at::kDouble), own.Along(scores)), tolerance);
          }
          // Transposed: of some outputs, and of some rows of them.
          for (int which = two ? 0 : 2; which < 4; ++which) {
            Rows g(passed.size());
            for (size_t k = 0; k < g.size(); ++k) {
              const Sizes sizes(passed[k].sizes().vec());
              g[k] = draw.Normal(sizes);
              const int64_t positions = call.operands[0].value.size(-2);
              const int64_t rows_dim = k == 1 && sums ? -1 : -2;
              if (which == 3 && positions > 2) {
                for (int64_t p = 0; p < positions; ++p) {
                  if (p % 3 != 1) g[k].select(rows_dim, p).zero_();
                }
              }
            }
            if (which == 0) g[0] = Tensor();
            if (which == 1) g[1] = Tensor();
            const Rows back = rule.map->TransposeRows(g);
            ASSERT_EQ(back.size(), rule.inputs.size());
            const Tensor output = g[0].defined() ? g[0].to(at::kDouble) : Tensor();
            const Tensor by_sums = sums && g[1].defined() ? g[1].to(at::kDouble) : Tensor();
            Sizes of_scores(own.scores.sizes().vec());
            of_scores.insert(of_scores.begin(), count);
            Tensor to_weights = at::zeros(of_scores, at::kDouble);
            if (output.defined() && own.weights_move) to_weights = at::matmul(output, own.value.transpose(-2, -1));
            if (weights && g[1].defined()) to_weights = to_weights + g[1].to(at::kDouble);
            const Tensor to_scores = own.Along(to_weights, by_sums);
            for (size_t k = 0; k < back.size(); ++k) {
              Tensor wanted;
              if (rule.inputs[k] == 0) wanted = at::matmul(to_scores, own.key) * own.scale;
              if (rule.inputs[k] == 1) wanted = at::matmul(to_scores.transpose(-2, -1), own.query) * own.scale;
              if (rule.inputs[k] == 2) {
                wanted = output.defined() ? at::matmul(own.weights.transpose(-2, -1), output)
                                          : at::zeros(back[k].sizes(), at::kDouble);
              }
              const Sizes sizes(call.operands[rule.inputs[k]].value.sizes().vec());
              wanted = Summed(wanted, sizes).expand_as(back[k]);
              EXPECT_LE(Difference(back[k].to(at::kDouble), wanted), tolerance)
                  << "outputs " << which << ", input " << rule.inputs[k] << ", rows " << count;
              if (count == 1) {
                Rows one;
                for (const Tensor& t : g) one.push_back(t.defined() ? t[0] : t);
                EXPECT_TRUE(rule.map->Transpose(one)[k].equal(back[k][0]));
              }
            }
            // The adjoint of the map.
            Rows behind;
            Rows ahead;
            for (size_t k = 0; k < g.size(); ++k) {
              if (!g[k].defined()) continue;
              behind.push_back(g[k]);
              ahead.push_back(passed[k]);
            }
            for (int64_t r = 0; r < count; ++r) {
              const auto at = [&](const Rows& all) {
                Rows one;
                for (const Tensor& t : all) one.push_back(t[r]);
                return one;
              };
              const auto left = Inner(at(behind), at(ahead));
              const auto right = Inner(at(back), at(rows));
              EXPECT_NEAR(left.first, right.first, tolerance * std::max(left.second, right.second));
            }
          }
        }
        // A map that reads every decomposed operand leaves nothing over.
        if (policy.sharing == Sharing::kFrozen) continue;
        EXPECT_GT(rule.quadrature, 0);
        EXPECT_FALSE(rule.exact);
        const Rows moved = rule.map->Forward(MoveRows(call, rule));
        for (size_t k = 0; k < moved.size(); ++k) {
          const RuleOutput& output = call.outputs[k];
          const double size = std::max(output.value.abs().max().item<double>(), rule.inner_terms);
          const Tensor left = output.value - output.reference - moved[k].select(0, 0);
          EXPECT_LE(left.abs().max().item<double>(), 4 * rule.quadrature * size);
        }
      }
    }
  }

  std::vector<GivenArgument> arguments_;
  c10::IValue mask_;
};

TEST_P(AttentionFormulas, HoldInDoublePrecision) { ExpectFormulas("attended::alone", at::kDouble, 1e-11); }
TEST_P(AttentionFormulas, HoldInSinglePrecision) { ExpectFormulas("attended::alone", at::kFloat, 5e-6); }
TEST_P(AttentionFormulas, HoldForWeights) { ExpectFormulas("attended::with_weights", at::kDouble, 1e-11); }
TEST_P(AttentionFormulas, HoldForSums) { ExpectFormulas("attended::with_sums", at::kDouble, 1e-11); }

INSTANTIATE_TEST_SUITE_P(All, AttentionFormulas, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// ---- size

RuleResult RuleFor(const OperatorCall& given) {
  const RuleCall call = given.Describe(Faithful());
  return Registry::Default()
      .FindRewrite("aten::scaled_dot_product_attention", "aten::scaled_dot_product_attention")
      ->fused->rule.build(call);
}

OperatorCall OfTensors(const std::vector<GivenArgument>& tensors, bool causal) {
  std::vector<GivenArgument> all = tensors;
  for (const c10::IValue& rest : {c10::IValue(), c10::IValue(0.0), c10::IValue(causal)}) {
    all.push_back(GivenArgument(rest));
  }
  return OperatorCall("attended::alone", all);
}

// The most memory that the process has had, in bytes.
int64_t PeakMemory() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

// The scores of one head take 256 MiB, at one end of the line.
TEST(AttentionInTiles, TakesMemoryForRowsOnly) {
  constexpr int64_t kLength = 8192;
  class Draw draw(at::kFloat, 3);
  const OperatorCall few =
      OfTensors({draw.Moving({1, 1, 2, 4}), draw.Moving({1, 1, 2, 4}), draw.Moving({1, 1, 2, 4})}, true);
  RuleCall call = few.Describe(Faithful());
  for (RuleOperand& operand : call.operands) {
    operand.value = draw.Normal({1, 1, kLength, 4});
    operand.reference = draw.Normal({1, 1, kLength, 4});
  }
  const Tensor g = draw.Normal({1, 1, kLength, 4});
  const int64_t before = PeakMemory();
  const RuleResult rule = Registry::Default()
                              .FindRewrite("aten::scaled_dot_product_attention", "aten::scaled_dot_product_attention")
                              ->fused->rule.build(call);
  const Rows back = rule.map->Transpose({g});
  const Tensor moved = rule.map->Forward(MoveRows(call, rule))[0];
  EXPECT_LE(PeakMemory() - before, int64_t{64} << 20);
  const auto left = Inner({g}, {moved.select(0, 0)});
  const Rows moves = MoveRows(call, rule);
  double right = 0;
  for (size_t k = 0; k < back.size(); ++k) right += Inner({back[k]}, {moves[k].select(0, 0)}).first;
  EXPECT_NEAR(left.first, right, 1e-5 * left.second);
}

// Bits do not depend on the threads that share heads.
TEST(AttentionInTiles, HasTheSameBitsOnEveryNumberOfThreads) {
  class Draw draw(at::kFloat, 5);
  const RuleResult rule = RuleFor(
      OfTensors({draw.Moving({2, 4, 200, 8}), draw.Moving({2, 2, 150, 8}), draw.Moving({2, 2, 150, 8})}, false));
  const Tensor g = draw.Normal({2, 2, 4, 200, 8});
  const Rows rows = {draw.Normal({2, 2, 4, 200, 8}), draw.Normal({2, 2, 2, 150, 8}), draw.Normal({2, 2, 2, 150, 8})};
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Rows back = rule.map->TransposeRows({g});
  const Tensor ahead = rule.map->Forward(rows)[0];
  for (const int threads : {2, 3, 4}) {
    at::set_num_threads(threads);
    const Rows own = rule.map->TransposeRows({g});
    for (size_t k = 0; k < back.size(); ++k) EXPECT_TRUE(own[k].equal(back[k])) << threads << " threads, input " << k;
    EXPECT_TRUE(rule.map->Forward(rows)[0].equal(ahead)) << threads << " threads";
  }
  at::set_num_threads(before);
}

TEST(AttentionInTiles, MovesTooFarToFollowAreRefused) {
  class Draw draw(at::kDouble, 5);
  const Tensor near = draw.Normal({1, 3, 4});
  const GivenArgument far(near * 1e5, near);
  try {
    RuleFor(OfTensors({far, far, draw.Moving({1, 3, 4})}, false));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), absl::StatusCode::kUnimplemented);
    EXPECT_NE(std::string(e.what()).find("attended::alone where scores move farther"), std::string::npos) << e.what();
  }
  // Large numbers that hardly move are no reason.
  RuleFor(OfTensors({{near * 1e5, near * 1e5 + 1e-3}, far, draw.Moving({1, 3, 4})}, true).AtRest());
}

// No rows at all.
TEST(AttentionInTiles, TakesNoRows) {
  class Draw draw(at::kFloat, 5);
  const RuleResult rule =
      RuleFor(OfTensors({draw.Moving({2, 5, 4}), draw.Moving({2, 3, 4}), draw.Moving({2, 3, 6})}, false));
  const Rows none = {at::empty({0, 2, 5, 4}), at::empty({0, 2, 3, 4}), at::empty({0, 2, 3, 6})};
  EXPECT_EQ(rule.map->Forward(none)[0].sizes(), at::IntArrayRef({0, 2, 5, 6}));
  const Rows back = rule.map->TransposeRows({at::empty({0, 2, 5, 6})});
  for (size_t k = 0; k < none.size(); ++k) EXPECT_EQ(back[k].sizes(), none[k].sizes());
}

// ---- what is covered

class Covered : public testing::Test {
 protected:
  // Whether the rule covers a call of `op`, an operator of this LibTorch or one of this test.
  bool Is(const char* rewrite, const char* op, const std::vector<c10::IValue>& arguments,
          const std::vector<int>& moving = {0, 1, 2}) const {
    const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(op, "");
    RewriteCall call;
    call.name = op;
    call.schema = &handle.schema();
    call.arguments = arguments;
    for (size_t a = arguments.size(); a < call.schema->arguments().size(); ++a) {
      call.arguments.push_back(call.schema->arguments()[a].default_value().value_or(c10::IValue()));
    }
    std::vector<bool> moves(call.arguments.size(), false);
    for (const int m : moving) moves[m] = true;
    const std::string name = std::string("aten::") + rewrite;
    return Registry::Default().FindRewrite(name, name)->fused->covers(call, moves);
  }
  bool Is(const std::vector<c10::IValue>& arguments, const std::vector<int>& moving = {0, 1, 2}) const {
    return Is("scaled_dot_product_attention", "attended::alone", arguments, moving);
  }
  static Tensor Of(at::IntArrayRef sizes) { return at::ones(sizes); }
};

TEST_F(Covered, WhatHasTheShapesOfAttention) {
  const Tensor q = Of({2, 4, 5, 3});
  EXPECT_TRUE(Is({q, q, q}));
  EXPECT_TRUE(Is({q, q, q}, {0}));
  EXPECT_TRUE(Is({q, Of({2, 2, 7, 3}), Of({2, 2, 7, 6})}));
  EXPECT_TRUE(Is({Of({5, 3}), Of({7, 3}), Of({7, 6})}));
  EXPECT_FALSE(Is({q, Of({2, 3, 7, 3}), Of({2, 3, 7, 6})})) << "4 heads and 3";
  EXPECT_FALSE(Is({q, Of({1, 4, 7, 3}), Of({1, 4, 7, 6})})) << "broadcasts";
  EXPECT_FALSE(Is({q, Of({4, 7, 3}), Of({4, 7, 6})})) << "broadcasts";
  EXPECT_FALSE(Is({q, Of({2, 2, 7, 3}), Of({2, 4, 7, 6})})) << "other heads";
  EXPECT_FALSE(Is({q, Of({2, 4, 0, 3}), Of({2, 4, 0, 6})})) << "nothing to attend to";
  EXPECT_FALSE(Is({Of({3}), q, q}));
}

TEST_F(Covered, NumbersOfTheProcessor) {
  const Tensor q = Of({4, 5, 3});
  EXPECT_TRUE(Is({q.to(at::kBFloat16), q.to(at::kBFloat16), q.to(at::kBFloat16)}));
  EXPECT_TRUE(Is({q.to(at::kDouble), q.to(at::kDouble), q.to(at::kDouble)}));
  EXPECT_FALSE(Is({q.to(at::kDouble), q, q}));
  EXPECT_FALSE(Is({q.to(at::kComplexFloat), q.to(at::kComplexFloat), q.to(at::kComplexFloat)}));
  EXPECT_FALSE(Is({q.to("meta"), q.to("meta"), q.to("meta")}));
  EXPECT_FALSE(Is({q, q.masked_fill(at::ones({3}).ne(0), kInfinity), q}));
  EXPECT_FALSE(Is({q, q, q, {}, 0.1})) << "dropout";
}

TEST_F(Covered, PlainMasks) {
  const Tensor q = Of({2, 4, 5, 3});
  const Tensor some = at::ones({5, 5}, at::kBool).tril();
  const Tensor added = at::zeros({5, 5}).masked_fill(some.logical_not(), -kInfinity);
  EXPECT_TRUE(Is({q, q, q, some}));
  EXPECT_TRUE(Is({q, q, q, added}));
  EXPECT_TRUE(Is({q, q, q, at::zeros({2, 1, 1, 5})}));
  EXPECT_FALSE(Is({q, q, q, added}, {0, 3})) << "the mask moves";
  EXPECT_FALSE(Is({q, q, q, some, 0.0, true})) << "two masks";
  EXPECT_FALSE(Is({q, q, q, at::zeros({3, 2, 4, 5, 5})})) << "broadcasts the result";
  EXPECT_FALSE(Is({q, q, q, at::zeros({5, 5}, at::kLong)}));
  EXPECT_FALSE(Is({q, q, q, -added})) << "infinite scores";
  EXPECT_FALSE(Is({q, q, q, added * 0})) << "NaN";
  const Tensor none = some.clone();
  none.select(0, 2).fill_(false);
  EXPECT_EQ(Is({q, q, q, none}), MaskedRowsAreZero());
  const Tensor none_added = at::zeros({5, 5}).masked_fill(none.logical_not(), -kInfinity);
  EXPECT_EQ(Is({q, q, q, none_added}), MaskedRowsAreZero());
}

TEST_F(Covered, WithWeights) {
  const Tensor q = Of({2, 4, 5, 3});
  for (const char* name : {"_scaled_dot_product_attention", "_scaled_dot_product_attention_math"}) {
    const std::string op = std::string("aten::") + name;
    if (!IsHere(op)) continue;
    EXPECT_TRUE(Is(name, op.c_str(), {q, q, q}));
    EXPECT_TRUE(Is(name, op.c_str(), {q, q, q, at::zeros({5, 5})}));
    // Newer versions add the numbers of boolean masks.
    const auto found = c10::Dispatcher::singleton().findSchema({op, ""});
    const bool old = found->schema().argumentIndexWithName("need_attn_weights").has_value();
    EXPECT_EQ(Is(name, op.c_str(), {q, q, q, at::ones({5, 5}, at::kBool)}), old);
  }
}

}  // namespace
}  // namespace addend
