// Attention as one map, computed in tiles of its scores.
//
// Note [Attention in tiles]
// With scores S = scale Q K^T + mask and weights P = softmax(S), attention is O = P V. On rows (Note [Rows] in rule.h)
// it is the product of the maps of its parts: a product by what each factor meets (Note [Products] in kinds.h, written
// Q_m, K_m, P_m, V_m here) and the softmax by its path (Note [Softmax path] in softmax_path.h, written J, symmetric):
//   dO = J(scale (dQ K_m^T + Q_m dK^T)) V_m + P_m dV.
// Transposed, from a cotangent G of O:
//   dV = P_m^T G,   dS = J(G V_m^T),   dQ = scale dS K_m,   dK = scale dS^T Q_m.
// Weights that share by magnitude (Note [Shares by magnitude] in kinds.h) leave a row V_j of values the share s_j of
// the interaction, so that V_m = V' + (1 - s) (V - V') and P_m = P' + s (P - P'), column by column. Weights and scores
// have one number for each pair of positions, which is too many to keep for long sequences, and J needs the weights at
// every node. Both are made anew for a few rows of S at a time: a strip of rows that holds all that J needs, and that
// no other strip needs. So memory grows with the length of the sequence and not with its square, as in FlashAttention
// (Dao et al. 2022), and each score is computed once for each use of the map. Columns are cut into tiles: what a mask
// hides from all rows of a strip is left out of it.
//
// The sums of exponentials, where an operator gives them, have the mean weights for a map: their rows are sums of rows
// of scores. Weights that an operator gives are as many as the scores, and so are their rows, dP = J dS; where nothing
// comes back to them the transpose takes no more memory.
#ifndef ADDEND_CORE_RULES_ATTENTION_TILES_H_
#define ADDEND_CORE_RULES_ATTENTION_TILES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/rules/kinds.h"
#include "core/rules/rule.h"

namespace addend {

// Second result of an operator, beside its output.
enum class BesideAttention {
  kNothing,
  kWeights,  // P
  kSums,     // the logarithm of the sum of each row's exponentials
};

// A call of attention with its coefficients. Tensors have leading dimensions, of which the last one counts heads; keys
// and values may have fewer heads than queries, each of which serves several in a row.
struct AttentionCall {
  std::string name;           // for errors
  at::Tensor query;           // [*, T, width], times the scale
  at::Tensor query_at_start;  // the same of the reference
  at::Tensor key;             // [*, S, width]
  at::Tensor key_at_start;
  at::Tensor mask;  // broadcasts to [*, T, S]: true or a summand takes part; undefined: none
  bool causal = false;
  double scale = 1;
  // No score lies farther from zero at any point of the path, masks left out.
  double reach = 0;
  bool scores_move = false;  // the query or the key is decomposed
  // Whether rows are read, and what those of the other factor of a product meet. Undefined where nobody reads it.
  bool query_moves = false;
  bool key_moves = false;
  bool weights_move = false;
  bool value_moves = false;
  at::Tensor query_meets;  // times the scale
  at::Tensor key_meets;
  at::Tensor value_meets;
  Point weights_meet = Point::kValue;
  at::Tensor rest;  // [*, 1, S]: 1 - s_j where the weights share by magnitude, in place of a point; else undefined
  BesideAttention beside = BesideAttention::kNothing;
};

// Whether the map reads rows of scores, and with them those of the query and the key.
bool ReadsScores(const AttentionCall& call);

// The map of a call. Its inputs are the query, the key and the value, as far as their rows are read. Throws
// Unimplemented where scores move too far to be followed.
std::shared_ptr<const LinearMap> AttentionInTiles(AttentionCall call);

}  // namespace addend

#endif  // ADDEND_CORE_RULES_ATTENTION_TILES_H_
