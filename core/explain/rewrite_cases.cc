#include "core/explain/rewrite_cases.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>
#include <map>
#include <utility>

namespace addend {
namespace {

using at::Tensor;
using c10::IValue;
using Arguments = std::vector<IValue>;
using Case = RewriteCase;
using Draw = RewriteDraw;

// clang-format off

// LibTorch's own optional type, whatever this version has.
using OptionalTensor = decltype(std::declval<const IValue&>().toOptional<Tensor>());

c10::List<OptionalTensor> Indices(const std::vector<Tensor>& tensors) {
  c10::List<OptionalTensor> list;
  for (const Tensor& t : tensors) list.push_back(OptionalTensor(t));
  return list;
}

c10::List<Tensor> List(const std::vector<Tensor>& tensors) { return c10::List<Tensor>(tensors); }

struct Network {
  int64_t gates = 4;
  int64_t layers = 1;
  bool bidirectional = false;
  bool biases = true;
  int64_t projection = 0;
  int64_t features = 3;
  int64_t hidden = 2;

  c10::List<Tensor> Parameters(Draw& d) const {
    c10::List<Tensor> all;
    const int64_t out = projection > 0 ? projection : hidden;
    for (int64_t layer = 0; layer < layers; ++layer) {
      for (int64_t direction = 0; direction < Directions(); ++direction) {
        all.push_back(d.Plain({gates * hidden, layer == 0 ? features : out * Directions()}));
        all.push_back(d.Plain({gates * hidden, out}));
        if (biases) all.push_back(d.Plain({gates * hidden}));
        if (biases) all.push_back(d.Plain({gates * hidden}));
        if (projection > 0) all.push_back(d.Plain({projection, hidden}));
      }
    }
    return all;
  }
  int64_t Directions() const { return bidirectional ? 2 : 1; }
  // The hidden state moves.
  IValue State(Draw& d, int64_t batch) const {
    const Tensor first = d.Moving({layers * Directions(), batch, projection > 0 ? projection : hidden});
    if (gates != 4) return first;
    return List({first, d.Moving({layers * Directions(), batch, hidden})});
  }
};

void AddRecurrent(std::vector<Case>* cases) {
  const std::pair<std::string, int64_t> kinds[] = {{"lstm", 4}, {"gru", 3}, {"rnn_tanh", 1}, {"rnn_relu", 1}};
  for (const auto& [kind, gates] : kinds) {
    const auto padded = [&, k = kind](const std::string& title, Network n, bool batch_first) {
      cases->push_back({"aten::" + k + ".input", title, [n, batch_first](Draw& d) -> Arguments {
        const Tensor input = batch_first ? d.Moving({2, 4, n.features}) : d.Moving({4, 2, n.features});
        return {input, n.State(d, 2), n.Parameters(d), n.biases, n.layers, 0.0, false, n.bidirectional, batch_first}; }});
    };
    const auto packed = [&, k = kind](const std::string& title, Network n) {
      cases->push_back({"aten::" + k + ".data", title, [n](Draw& d) -> Arguments {
        return {d.Moving({8, n.features}), at::tensor({3, 3, 1, 1}, at::kLong), n.State(d, 3), n.Parameters(d), n.biases,
                n.layers, 0.0, false, n.bidirectional}; }});
    };
    padded("one_layer", {gates}, false);
    padded("two_layers_both_ways_batch_first", {gates, 2, true}, true);
    padded("two_layers_no_biases", {gates, 2, false, false}, false);
    packed("one_layer", {gates});
    packed("two_layers_both_ways", {gates, 2, true});
    packed("both_ways_no_biases", {gates, 1, true, false});
    if (gates == 4) {
      padded("projected", {gates, 2, true, true, 1}, false);
      padded("projected_no_biases", {gates, 1, false, false, 1}, true);
      packed("projected", {gates, 2, true, true, 1});
    }
    const auto state = [g = gates](Draw& d, bool moving) -> IValue {
      const auto one = [&] { return moving ? d.Moving({3, 2}) : d.Plain({3, 2}); };
      return g == 4 ? IValue(List({one(), one()})) : IValue(one());
    };
    cases->push_back({"aten::" + kind + "_cell", "biases", [g = gates, state](Draw& d) -> Arguments {
      return {d.Moving({3, 4}), state(d, true), d.Plain({2 * g, 4}), d.Plain({2 * g, 2}), d.Plain({2 * g}), d.Plain({2 * g})}; }});
    cases->push_back({"aten::" + kind + "_cell", "weights_move", [g = gates, state](Draw& d) -> Arguments {
      return {d.Plain({3, 4}), state(d, false), d.Moving({2 * g, 4}), d.Moving({2 * g, 2})}; }});
  }
  cases->push_back({"newer::_thnn_fused_lstm_cell", "biases", [](Draw& d) -> Arguments {
    return {d.Moving({3, 8}), d.Moving({3, 8}), d.Moving({3, 2}), d.Plain({8}), d.Plain({8})}; }});
  cases->push_back({"newer::_thnn_fused_lstm_cell", "no_biases", [](Draw& d) -> Arguments {
    return {d.Moving({3, 8}), d.Moving({3, 8}), d.Moving({3, 2})}; }});
  cases->push_back({"newer::_thnn_fused_gru_cell", "biases", [](Draw& d) -> Arguments {
    return {d.Moving({3, 6}), d.Moving({3, 6}), d.Moving({3, 2}), d.Plain({6}), d.Plain({6})}; }});
  for (const bool reverse : {false, true}) {
    cases->push_back({"newer::mkldnn_rnn_layer", reverse ? "reverse" : "forward", [=](Draw& d) -> Arguments {
      return {d.Moving({4, 2, 3}), d.Plain({8, 3}), d.Plain({8, 2}), d.Plain({8}), d.Plain({8}), d.Moving({2, 2}),
              d.Moving({2, 2}), reverse, std::vector<int64_t>{}, int64_t{2}, int64_t{2}, int64_t{1}, !reverse, reverse,
              false, false}; }});
  }
}

Tensor BoolMask(at::IntArrayRef sizes, bool fill) {
  return fill ? at::ones(sizes, at::kBool).tril() : at::ones(sizes, at::kBool).triu(1);
}

// The arguments behind `first`, by name where this version's schema has them. Names that it lacks do not count.
Arguments Complete(const std::string& op, Arguments first, const std::map<std::string, IValue>& named) {
  const auto schema = c10::Dispatcher::singleton().findSchemaOrThrow(op.c_str(), "").schema();
  for (size_t a = first.size(); a < schema.arguments().size(); ++a) {
    const auto given = named.find(schema.arguments()[a].name());
    first.push_back(given != named.end() ? given->second : schema.arguments()[a].default_value().value());
  }
  return first;
}

bool HasArgument(const std::string& op, const std::string& argument) {
  const auto found = c10::Dispatcher::singleton().findSchema({op, ""});
  return found && found->schema().argumentIndexWithName(argument).has_value();
}

void AddTransformer(std::vector<Case>* cases) {
  for (const std::string op : {"aten::_scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math"}) {
    const auto add = [&](const std::string& title, std::function<IValue(Draw&)> mask, bool weights, bool causal) {
      cases->push_back({op, title, [=](Draw& d) -> Arguments {
        return Complete(op, {d.Moving({2, 3, 4, 3}), d.Moving({2, 3, 5, 3}), d.Moving({2, 3, 5, 2}), mask(d)},
                        {{"need_attn_weights", weights}, {"is_causal", causal}}); }});
    };
    const auto none = [](Draw&) -> IValue { return {}; };
    add("plain", none, true, false);
    add("no_weights", none, false, false);
    add("causal", none, true, true);
    // Newer versions turn boolean masks into summands before; given one, they add its 0 and 1, which nobody wants.
    if (HasArgument(op, "need_attn_weights")) {
      add("boolean_mask", [](Draw&) -> IValue { return BoolMask({4, 5}, true); }, true, false);
    }
    add("additive_mask", [](Draw& d) -> IValue { return d.Plain({4, 5}).masked_fill(BoolMask({4, 5}, false), -INFINITY); }, true, false);
    add("mask_moves", [](Draw& d) -> IValue { return d.Moving({4, 5}); }, true, false);
  }
  const auto none = [](Draw&) -> IValue { return {}; };
  for (const std::string space : {"newer::", "tiles::", "aten::"}) {
    const auto fused = [&](const std::string& title, int64_t heads, std::function<IValue(Draw&)> mask, bool causal, IValue scale) {
      cases->push_back({space + "scaled_dot_product_attention", title, [=](Draw& d) -> Arguments {
        return {d.Moving({2, 4, 3, 2}), d.Moving({2, heads, 3, 2}), d.Moving({2, heads, 3, 2}), mask(d), 0.0, causal, scale, heads != 4}; }});
    };
    fused("plain", 4, none, false, {});
    fused("shared_heads", 2, none, false, 0.3);
    fused("causal", 4, none, true, {});
    fused("boolean_mask", 4, [](Draw&) -> IValue { return BoolMask({3, 3}, true); }, false, {});
    // Old versions give NaN there, and so does the other way to compute it.
    if (space == "aten::") fused("masked_row", 4, [](Draw&) -> IValue { return at::tensor({1, 0, 1}).ne(0).unsqueeze(1).expand({3, 3}).contiguous(); }, false, {});
    const auto flash = [&](const std::string& title, std::function<IValue(Draw&)> mask, bool causal, IValue scale) {
      cases->push_back({space + "_scaled_dot_product_flash_attention_for_cpu", title, [=](Draw& d) -> Arguments {
        return {d.Moving({2, 4, 3, 2}), d.Moving({2, 4, 5, 2}), d.Moving({2, 4, 5, 2}), 0.0, causal, mask(d), scale}; }});
    };
    flash("plain", none, false, 0.3);
    flash("causal", none, true, {});
    if (space == "aten::") flash("masked_row", [](Draw& d) -> IValue { return d.Plain({3, 5}).masked_fill(at::tensor({0, 1, 0}).ne(0).unsqueeze(1), -INFINITY); }, false, {});
    flash("additive_mask", [](Draw& d) -> IValue { return d.Plain({3, 5}).masked_fill(BoolMask({3, 5}, false), -INFINITY); }, false, {});
  }
  // LibTorch's own takes no double.
  const auto grouped = [&](const std::string& title, std::vector<int64_t> a, std::vector<int64_t> b, IValue ends) {
    cases->push_back({"newer::_grouped_mm", title, [=](Draw& d) -> Arguments {
      return {d.Moving(a), d.Moving(b), ends, IValue(), IValue()}; }});
  };
  const Tensor ends = at::tensor({4, 4, 12}, at::kInt);  // one group is empty
  grouped("rows", {12, 4}, {3, 4, 8}, ends);
  cases->push_back({"transformers::grouped_mm_fallback", "", [=](Draw& d) -> Arguments {
    return {d.Moving({12, 4}), d.Moving({3, 4, 8}), ends}; }});
  grouped("columns", {3, 4, 8}, {8, 12}, ends);
  grouped("sums", {4, 12}, {12, 8}, ends);
  grouped("batches", {3, 4, 8}, {3, 8, 4}, {});
  cases->push_back({"newer::_weight_int8pack_mm", "", [](Draw& d) -> Arguments {
    return {d.Moving({3, 4}), d.Plain({5, 4}, 40).to(at::kChar), d.Moving({5})}; }});
  const auto half_hidden = [](at::IntArrayRef sizes) {
    Tensor mask = at::zeros(sizes, at::kBool);
    mask.select(-1, 3).fill_(true);
    mask[0].select(-1, 2).fill_(true);
    return mask;
  };
  cases->push_back({"aten::_masked_softmax", "type_2", [=](Draw& d) -> Arguments {
    return {d.Moving({2, 2, 4, 4}), half_hidden({2, 2, 4, 4}), int64_t{-1}, int64_t{2}}; }});
  cases->push_back({"aten::_masked_softmax", "other_dim", [=](Draw& d) -> Arguments {
    return {d.Moving({2, 2, 4, 4}), half_hidden({2, 2, 4, 4}).transpose(1, 3).contiguous().transpose(1, 3).contiguous().transpose(2, 3).contiguous(), int64_t{2}, int64_t{2}}; }});
  cases->push_back({"newer::_safe_softmax", "moves", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{0}}; }});
  const auto heads = [&](const std::string& title, int inputs, IValue mask, IValue type, bool weights, bool average) {
    cases->push_back({"aten::_native_multi_head_attention", title, [=](Draw& d) -> Arguments {
      const Tensor query = d.Moving({2, 4, 6});
      const Tensor key = inputs > 1 ? d.Moving({2, 4, 6}) : query;
      const Tensor value = inputs > 2 ? d.Moving({2, 4, 6}) : key;
      return {query, key, value, int64_t{6}, int64_t{2}, d.Plain({18, 6}, 0.4), d.Plain({18}), d.Plain({6, 6}), d.Plain({6}),
              mask, weights, average, type}; }});
  };
  heads("self", 1, {}, {}, true, true);
  heads("cross_each_head", 2, {}, {}, true, false);
  heads("three_inputs_no_weights", 3, {}, {}, false, true);
  heads("padding", 1, half_hidden({2, 4}), int64_t{1}, true, true);
  // Padding as torch.nn.TransformerEncoder of LibTorch 2.x gives it.
  const Tensor numbers = at::zeros({2, 4}).masked_fill(half_hidden({2, 4}), -INFINITY);
  heads("padding_of_numbers", 1, numbers, int64_t{1}, true, true);
  heads("full_mask", 3, half_hidden({2, 2, 4, 4}), int64_t{2}, true, false);
  cases->push_back({"aten::_transform_bias_rescale_qkv", "all", [](Draw& d) -> Arguments {
    return {d.Moving({2, 4, 12}), d.Moving({12}), int64_t{2}}; }});
  for (const bool gelu : {false, true}) {
    cases->push_back({"aten::_addmm_activation", gelu ? "gelu" : "relu", [=](Draw& d) -> Arguments {
      return {d.Moving({5}), d.Moving({3, 4}), d.Moving({4, 5}), 0.5, 2.0, gelu}; }});
    for (const bool norm_first : {false, true}) {
      cases->push_back({"aten::_transformer_encoder_layer_fwd", std::string(gelu ? "gelu" : "relu") + (norm_first ? "_norm_first" : "_norm_last"),
        [=](Draw& d) -> Arguments {
          return {d.Moving({2, 4, 6}), int64_t{6}, int64_t{2}, d.Plain({18, 6}, 0.4), d.Plain({18}), d.Plain({6, 6}, 0.4), d.Plain({6}),
                  gelu, norm_first, 1e-5, d.Plain({6}), d.Plain({6}), d.Plain({6}), d.Plain({6}), d.Plain({5, 6}, 0.4), d.Plain({5}),
                  d.Plain({6, 5}), d.Plain({6}), norm_first ? IValue(half_hidden({2, 4})) : IValue(),
                  norm_first ? IValue(int64_t{1}) : IValue()}; }});
    }
  }
}

void AddNormalizations(std::vector<Case>* cases) {
  cases->push_back({"aten::instance_norm", "own_statistics", [](Draw& d) -> Arguments {
    return {d.Moving({2, 3, 4}), d.Moving({3}), d.Moving({3}), IValue(), IValue(), true, 0.1, 1e-5, false}; }});
  cases->push_back({"aten::instance_norm", "no_weight", [](Draw& d) -> Arguments {
    return {d.Moving({2, 3, 2, 2}), IValue(), IValue(), IValue(), IValue(), true, 0.1, 1e-5, false}; }});
  cases->push_back({"aten::instance_norm", "running_statistics", [](Draw& d) -> Arguments {
    return {d.Moving({2, 3, 4}), d.Plain({3}), d.Plain({3}), d.Plain({3}), d.Positive({3}), false, 0.1, 1e-5, false}; }});
  cases->push_back({"aten::instance_norm", "updates_statistics", [](Draw& d) -> Arguments {
    return {d.Moving({2, 3, 4}), d.Plain({3}), d.Plain({3}), d.Plain({3}), d.Positive({3}), true, 0.1, 1e-5, false}; }});
  for (const std::string space : {"newer::", "aten::"}) {
    cases->push_back({space + "rms_norm", "weight_moves", [](Draw& d) -> Arguments {
      return {d.Moving({3, 5}), std::vector<int64_t>{5}, d.Moving({5}), 1e-5}; }});
    cases->push_back({space + "rms_norm", "two_dims_no_eps", [](Draw& d) -> Arguments {
      return {d.Moving({3, 2, 4}), std::vector<int64_t>{2, 4}, IValue(), IValue()}; }});
    cases->push_back({space + "_fused_rms_norm", "weight", [](Draw& d) -> Arguments {
      return {d.Moving({3, 5}), std::vector<int64_t>{5}, d.Plain({5}), 1e-5}; }});
  }
  for (const int64_t dim : {0, 1, 2, -1}) {
    const at::DimVector norm = dim == 0 ? at::DimVector{3, 1, 1} : dim == 1 ? at::DimVector{1, 4, 1} : dim == 2 ? at::DimVector{1, 1, 2} : at::DimVector{};
    const std::string title = dim < 0 ? "whole" : "dim" + std::to_string(dim);
    cases->push_back({"aten::_weight_norm", title, [=](Draw& d) -> Arguments {
      return {d.Moving({3, 4, 2}), dim < 0 ? d.Plain(norm) : d.Moving(norm), dim}; }});
    if (dim == 0 || dim == 2) {
      cases->push_back({"aten::_weight_norm_interface", title, [=](Draw& d) -> Arguments {
        return {d.Moving({3, 4, 2}), d.Moving(norm), dim}; }});
    }
  }
  cases->push_back({"aten::cosine_similarity", "both", [](Draw& d) -> Arguments {
    return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{1}, 1e-8}; }});
  cases->push_back({"aten::cosine_similarity", "one_broadcast", [](Draw& d) -> Arguments {
    return {d.Moving({3, 4, 2}), d.Plain({1, 4, 1}), int64_t{-2}, 1e-8}; }});
  cases->push_back({"aten::cosine_similarity", "short_vectors", [](Draw& d) -> Arguments {
    return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{0}, 20.0}; }});
}
void AddFunctions(std::vector<Case>* cases) {
  const std::vector<Case> all = {
      {"aten::norm.Scalar", "length", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), 2.0}; }},
      {"aten::norm.ScalarOpt_dim", "power", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), 1.5, std::vector<int64_t>{-1}, true}; }},
      {"aten::norm.ScalarOpt_dim", "largest", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4, 2}), INFINITY, std::vector<int64_t>{0, 2}, false}; }},
      {"aten::norm.ScalarOpt_dim", "no_power", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), IValue(), std::vector<int64_t>{1}, false}; }},
      {"aten::norm.ScalarOpt_dtype", "dtype", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), 3.0, static_cast<int64_t>(at::kDouble)}; }},
      {"aten::linalg_vector_norm", "everything", [](Draw& d) -> Arguments { return {d.Moving({3, 4})}; }},
      {"aten::linalg_vector_norm", "sum", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), 1.0, std::vector<int64_t>{0}, true}; }},
      {"aten::linalg_vector_norm", "smallest", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), -INFINITY, std::vector<int64_t>{1}}; }},
      {"aten::linalg_vector_norm", "count", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), 0.0}; }},
      {"aten::dist", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4}), 3.0}; }},
      {"aten::_pdist_forward", "", [](Draw& d) -> Arguments { return {d.Moving({4, 3}), 2.0}; }},
      {"aten::_cdist_forward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 4, 3}), d.Moving({2, 5, 3}), 1.5, IValue()}; }},
      {"aten::_euclidean_dist", "", [](Draw& d) -> Arguments { return {d.Moving({4, 3}), d.Moving({5, 3})}; }},
      {"aten::renorm", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4, 2}), 2.0, int64_t{1}, 0.5}; }},
      {"aten::var.correction", "dims", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4, 2}), std::vector<int64_t>{0, -1}, int64_t{1}, true}; }},
      {"aten::var.correction", "everything", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), IValue(), int64_t{0}}; }},
      {"aten::std.correction", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), std::vector<int64_t>{1}, int64_t{2}}; }},
      {"aten::var_mean.correction", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), std::vector<int64_t>{1}, int64_t{1}, true}; }},
      {"aten::std_mean.correction", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), std::vector<int64_t>{0}, int64_t{1}}; }},
      {"aten::hypot", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4})}; }},
      {"aten::hypot", "large", [](Draw& d) -> Arguments {  // their squares are not finite in single precision
         return {d.MovingWithin({3, 4}, 1e20, 3e20), d.MovingWithin({4}, 1e20, 3e20)}; }},
      {"aten::_softmax_backward_data", "", [](Draw& d) -> Arguments {
         const Tensor grad = d.Moving({2, 4, 3});
         return {grad, d.MovingWithin({2, 4, 3}, 0, 1), int64_t{1}, static_cast<int64_t>(grad.scalar_type())}; }},
      {"aten::native_dropout_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Plain({3, 4}).gt(0), 1.25}; }},
      {"aten::_unsafe_masked_index", "", [](Draw& d) -> Arguments {
         const Tensor rows = at::tensor({2, -1, 7, 0}, at::kLong).view({4, 1}), columns = at::tensor({0, 3, 5}, at::kLong);
         return {d.Moving({3, 4}), rows.lt(3).logical_and(columns.lt(4)), Indices({rows, columns}), 0.5}; }},
      {"aten::_unsafe_masked_index", "rows", [](Draw& d) -> Arguments {
         return {d.Moving({3, 2}), at::tensor({1, 0}, at::kLong).view({2, 1}).to(at::kBool), Indices({at::tensor({1, 9}, at::kLong)}), 0.0}; }},
      {"aten::_unsafe_masked_index_put_accumulate", "", [](Draw& d) -> Arguments {
         const Tensor rows = at::tensor({2, 2, 7, 0}, at::kLong).view({4, 1}), columns = at::tensor({0, 0, 5}, at::kLong);
         return {d.Moving({3, 4}), rows.lt(3).logical_and(columns.lt(4)), Indices({rows, columns}), d.Moving({4, 3})}; }},
      {"aten::addcdiv", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({4}), d.MovingWithin({3, 1}, 1, 2), 0.7}; }},
      {"aten::prelu", "channels", [](Draw& d) -> Arguments { return {d.Moving({2, 3, 2}), d.Moving({3})}; }},
      {"aten::prelu", "one_weight", [](Draw& d) -> Arguments { return {d.Moving({5}), d.Moving({1})}; }},
      {"aten::_prelu_kernel", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 2}), d.Moving({1, 3, 1}).expand({2, 3, 2})}; }},
      {"aten::nanmean", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), std::vector<int64_t>{1}, true}; }},
      {"aten::tensordot", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 4}), d.Moving({4, 5, 3}), std::vector<int64_t>{1, -1}, std::vector<int64_t>{2, 0}}; }},
      {"aten::tensordot", "one_for_all", [](Draw& d) -> Arguments {
         return {d.Moving({2, 1}), d.Moving({3, 4}), std::vector<int64_t>{1}, std::vector<int64_t>{0}}; }},
      {"aten::ldexp.Tensor", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4})}; }},
      {"aten::ldexp.Tensor", "integers", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), at::tensor({2, -1, 0, 3}, at::kInt)}; }},
      {"torchvision::deform_conv2d", "masked", [](Draw& d) -> Arguments {
         return {d.Moving({2, 4, 4, 5}), d.Moving({2, 2, 2, 3}), d.Moving({2, 24, 2, 4}), d.Moving({2, 12, 2, 4}), d.Moving({2}),
                 int64_t{2}, int64_t{1}, int64_t{1}, int64_t{0}, int64_t{2}, int64_t{1}, int64_t{2}, int64_t{2}, true}; }},
      {"torchvision::deform_conv2d", "plain_weights", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 3, 4}), d.Plain({3, 2, 3, 3}), d.Moving({1, 18, 3, 4}), d.Plain({1, 1}), d.Plain({3}),
                 int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}, false}; }},
      {"aten::glu", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4, 2}), int64_t{1}}; }},
      {"aten::aminmax", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), int64_t{1}, true}; }},
      {"aten::mse_loss", "mean", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{1}}; }},
      {"aten::mse_loss", "each", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({4}), int64_t{0}}; }},
      {"aten::smooth_l1_loss", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{2}, 0.7}; }},
      {"aten::huber_loss", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{0}, 1.3}; }},
      {"aten::soft_margin_loss", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{1}}; }},
      {"aten::binary_cross_entropy", "", [](Draw& d) -> Arguments {
         return {d.MovingWithin({3, 4}, 0, 1), d.MovingWithin({3, 4}, 0, 1), d.Moving({4}), int64_t{1}}; }},
      {"aten::binary_cross_entropy_with_logits", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.MovingWithin({3, 4}, 0, 1), d.Moving({3, 1}), d.Moving({4}), int64_t{2}}; }},
      {"aten::nll_loss_forward", "weighted", [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), at::tensor({2, 0, 1, 0}, at::kLong), d.MovingWithin({3}, 0.5, 2), int64_t{1},
                 int64_t{1}}; }},
      {"aten::nll_loss_forward", "one", [](Draw& d) -> Arguments {
         return {d.Moving({3}), at::scalar_tensor(2, at::kLong), IValue(), int64_t{2}, int64_t{-100}}; }},
      {"aten::nll_loss2d_forward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 2, 2}), at::tensor({0, 1, 2, 1, 0, 0, 2, 1}, at::kLong).view({2, 2, 2}),
                 d.Positive({3}), int64_t{1}, int64_t{0}}; }},
      {"aten::multi_margin_loss", "", [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), at::tensor({2, 0, 1, 0}, at::kLong), int64_t{1}, 0.8, d.Positive({3}),
                 int64_t{1}}; }},
      {"aten::multi_margin_loss", "squares_of_one", [](Draw& d) -> Arguments {
         return {d.Moving({3}), at::tensor({1}, at::kLong), int64_t{2}, 1.0, IValue(), int64_t{0}}; }},
      {"aten::multilabel_margin_loss_forward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 4}), at::tensor({3, 0, -1, 1, 2, -1, -1, -1}, at::kLong).view({2, 4}), int64_t{1}}; }},
      {"aten::multilabel_margin_loss_forward", "one", [](Draw& d) -> Arguments {
         return {d.Moving({4}), at::tensor({1, 2, -1, 0}, at::kLong), int64_t{0}}; }},
  };
  cases->insert(cases->end(), all.begin(), all.end());
}

c10::List<bool> Mask(bool first, bool second, bool third) { return c10::List<bool>({first, second, third}); }

void AddGradients(std::vector<Case>* cases) {
  struct Convolution {
    const char* what;
    std::vector<int64_t> input, weight, output, stride, padding, dilation;
    bool transposed;
    std::vector<int64_t> output_padding;
    int64_t groups;
  };
  const std::vector<Convolution> convolutions = {
      {"plain", {2, 3, 5, 6}, {4, 3, 3, 2}, {2, 4, 3, 5}, {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1},
      {"padded_rest", {2, 3, 6, 6}, {4, 3, 3, 3}, {2, 4, 3, 8}, {2, 1}, {1, 2}, {1, 1}, false, {0, 0}, 1},
      {"dilated", {1, 2, 7, 8}, {3, 2, 3, 3}, {1, 3, 7, 1}, {1, 2}, {2, 0}, {2, 3}, false, {0, 0}, 1},
      {"groups", {2, 4, 5, 5}, {6, 2, 3, 3}, {2, 6, 5, 5}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 2},
      {"one", {2, 3, 8}, {4, 3, 3}, {2, 4, 4}, {2}, {1}, {1}, false, {0}, 1},
      {"three", {1, 2, 4, 4, 4}, {3, 2, 2, 2, 2}, {1, 3, 3, 5, 2}, {1, 1, 2}, {0, 1, 0}, {1, 1, 1}, false, {0, 0, 0}, 1},
      {"transposed", {2, 3, 4, 4}, {3, 2, 3, 3}, {2, 2, 8, 7}, {2, 2}, {1, 1}, {1, 1}, true, {1, 0}, 1},
      {"transposed_groups", {2, 4, 4, 4}, {4, 1, 2, 2}, {2, 2, 5, 5}, {1, 1}, {0, 0}, {1, 1}, true, {0, 0}, 2}};
  for (const Convolution& c : convolutions) {
    const int64_t outputs = c.output[1];
    cases->push_back({"aten::convolution_backward", c.what, [c, outputs](Draw& d) -> Arguments {
      return {d.Moving(c.output), d.Moving(c.input), d.Moving(c.weight), std::vector<int64_t>{outputs}, c.stride, c.padding,
              c.dilation, c.transposed, c.output_padding, c.groups, Mask(true, true, true)}; }});
  }
  const std::vector<Case> all = {
      {"aten::convolution_backward", "input_only", [](Draw& d) -> Arguments {
         return {d.Moving({1, 2, 3, 3}), d.Moving({1, 2, 3, 3}), d.Plain({2, 2, 1, 1}), IValue(), std::vector<int64_t>{1, 1},
                 std::vector<int64_t>{0, 0}, std::vector<int64_t>{1, 1}, false, std::vector<int64_t>{0, 0}, int64_t{1},
                 Mask(true, false, false)}; }},
      {"aten::native_batch_norm_backward", "evaluation", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 4}), d.Moving({2, 3, 4}), d.Moving({3}), d.Plain({3}), d.Positive({3}), IValue(), IValue(),
                 false, 1e-3, Mask(true, true, true)}; }},
      {"aten::native_layer_norm_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 4}), d.Moving({2, 3, 4}), std::vector<int64_t>{4}, d.Moving({2, 3, 1}),
                 d.MovingWithin({2, 3, 1}, 0.5, 2), d.Moving({4}), d.Moving({4}), Mask(true, true, true)}; }},
      {"aten::native_layer_norm_backward", "planes_without_weight", [](Draw& d) -> Arguments {
         return {d.Moving({3, 2, 4}), d.Moving({3, 2, 4}), std::vector<int64_t>{2, 4}, d.Moving({3, 1, 1}),
                 d.MovingWithin({3, 1, 1}, 0.5, 2), IValue(), IValue(), Mask(true, false, false)}; }},
      {"aten::embedding_dense_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 4}), at::tensor({0, 2, 2, 4, 1, 2}, at::kLong).view({2, 3}), int64_t{5}, int64_t{1}, false}; }},
      {"aten::embedding_dense_backward", "by_frequency", [](Draw& d) -> Arguments {
         return {d.Moving({4, 3}), at::tensor({0, 2, 2, 1}, at::kLong), int64_t{4}, int64_t{-1}, true}; }},
      {"aten::_cdist_backward", "two", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 4}), d.Moving({2, 3, 5}), d.Moving({2, 4, 5}), 2.0, d.MovingWithin({2, 3, 4}, 0.5, 2)}; }},
      {"aten::_cdist_backward", "three", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 5}), d.Moving({4, 5}), 3.0, d.MovingWithin({3, 4}, 0.5, 2)}; }},
      {"aten::_cdist_backward", "one", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 5}), d.Moving({4, 5}), 1.0, d.MovingWithin({3, 4}, 0.5, 2)}; }},
      {"aten::unfold_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 4, 3}), std::vector<int64_t>{2, 7, 4}, int64_t{1}, int64_t{3}, int64_t{2}}; }},
      {"aten::slice_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 2, 4}), std::vector<int64_t>{2, 5, 4}, int64_t{1}, int64_t{1}, int64_t{4}, int64_t{2}}; }},
      {"aten::select_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 4}), std::vector<int64_t>{2, 5, 4}, int64_t{1}, int64_t{-2}}; }},
      {"aten::diagonal_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({4, 2}), std::vector<int64_t>{2, 4, 3}, int64_t{1}, int64_t{0}, int64_t{2}}; }},
      {"aten::_log_softmax_backward_data", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 4}), int64_t{-1}, static_cast<int64_t>(d.dtype())}; }},
      {"aten::silu_backward", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({3, 4})}; }},
      {"aten::mish_backward", "", [](Draw& d) -> Arguments { return {d.Moving({3, 4}), d.Moving({3, 4})}; }},
      {"aten::logit_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.MovingWithin({3, 4}, 0.1, 0.9), IValue()}; }},
      {"aten::logit_backward", "bounded", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.MovingWithin({3, 4}, 0.1, 0.9), 0.05}; }},
      {"aten::glu_backward", "", [](Draw& d) -> Arguments { return {d.Moving({3, 2, 2}), d.Moving({3, 4, 2}), int64_t{1}}; }},
      {"aten::prelu_backward", "channels", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 2}), d.Moving({2, 3, 2}), d.Moving({3})}; }},
      {"aten::prelu_backward", "one_weight", [](Draw& d) -> Arguments { return {d.Moving({5}), d.Moving({5}), d.Moving({1})}; }},
      {"aten::_prelu_kernel_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({2, 3, 2}), d.Moving({2, 3, 2}), d.Moving({1, 3, 1}).expand({2, 3, 2})}; }},
      {"aten::mse_loss_backward", "mean", [](Draw& d) -> Arguments {
         return {d.Moving({1}), d.Moving({3, 4}), d.Moving({3, 4}), int64_t{1}}; }},
      {"aten::mse_loss_backward", "each", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 4}), d.Moving({3, 4}), int64_t{0}}; }},
      {"aten::smooth_l1_loss_backward", "mean", [](Draw& d) -> Arguments {
         return {d.Moving({1}), d.Moving({3, 4}), d.Moving({3, 4}), int64_t{1}, 0.5}; }},
      {"aten::huber_loss_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({3, 4}), d.Moving({3, 4}), d.Moving({3, 4}), int64_t{0}, 0.7}; }},
      {"aten::soft_margin_loss_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({1}), d.Moving({3, 4}), d.Moving({3, 4}), int64_t{1}}; }},
      {"aten::binary_cross_entropy_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({1}), d.MovingWithin({3, 4}, 0.1, 0.9), d.MovingWithin({3, 4}, 0, 1), d.Moving({4}), int64_t{1}}; }},
      {"aten::nll_loss_backward", "weighted", [](Draw& d) -> Arguments {
         return {d.Moving({1}), d.Plain({4, 3}), at::tensor({2, 0, 1, 0}, at::kLong), d.MovingWithin({3}, 0.5, 2), int64_t{1},
                 int64_t{1}, d.Positive({})}; }},
      {"aten::nll_loss2d_backward", "", [](Draw& d) -> Arguments {
         return {d.Moving({1}), d.Plain({2, 3, 2, 2}), at::tensor({0, 1, 2, 1, 0, 0, 2, 1}, at::kLong).view({2, 2, 2}),
                 d.Positive({3}), int64_t{2}, int64_t{0}, d.Positive({})}; }},
  };
  cases->insert(cases->end(), all.begin(), all.end());
}

// clang-format on

}  // namespace

const std::vector<RewriteCase>& RewriteCases() {
  static const auto& cases = *[] {
    auto* all = new std::vector<RewriteCase>;
    AddRecurrent(all);
    AddTransformer(all);
    AddNormalizations(all);
    AddFunctions(all);
    AddGradients(all);
    return all;
  }();
  return cases;
}

}  // namespace addend
