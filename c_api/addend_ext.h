/* Rules for operators of your own, as callbacks in C. The conventions are those of addend.h; see docs/extending.md.
 *
 * A rule turns one call of an operator, known by values and references, into a linear map on rows. Rows of a tensor of
 * shape S are [R, *S]: one row for each component, one for the leftover, and where brackets are checked one for the
 * move value - reference. A map treats all rows alike.
 */
#ifndef ADDEND_C_API_ADDEND_EXT_H_
#define ADDEND_C_API_ADDEND_EXT_H_

#include "addend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rules of a context: Addend's own and those added to them. A builder. */
typedef struct addend_rules addend_rules;
/* One call of an operator as a rule sees it. It lives as long as the callback runs. */
typedef struct addend_rule_call addend_rule_call;
/* The result of a rule for a call. It lives as long as the callback runs. */
typedef struct addend_rule_result addend_rule_result;

/* Numbers that callbacks return. Any number that is not listed is an error of the callback: the run ends with
 * ADDEND_UNKNOWN, the position of the operator, and the number as payload "callback". */
enum addend_callback {
  ADDEND_CALLBACK_OK = 0,
  /* The run ends so that a binding can rethrow an exception of its own. */
  ADDEND_CALLBACK_USER_ERROR = -7,
  /* The rule does not cover this call: as if there were none, ADDEND_UNIMPLEMENTED. */
  ADDEND_CALLBACK_DECLINE = -30
};

/* A linear map.
 * thread: any that decomposes; several at once. */
typedef struct addend_map_callbacks {
  size_t struct_size; /* sizeof(addend_map_callbacks) */
  void* payload;
  addend_release_fn release; /* of the payload; may be NULL */
  /* Rows [R, *S_i] of the inputs give rows [R, *S] of the first output.
   * in: rows: one tensor for each input (borrowed while it runs).
   * out: out_rows (new: taken over). */
  int32_t(ADDEND_CALL* forward)(void* payload, const addend_tensor* const* rows, size_t num_rows,
                                addend_tensor** out_rows);
  /* The transposed map: rows g [R, *S] of the first output give rows [R, *S_i] for each input, so that
   * sum(g * forward(r)) = sum over i of sum(transpose(g)_i * r_i); of complex numbers the real parts of
   * sum(conj(g) * ...) are equal. NULL where there is none: the map then goes forward only, and what needs the
   * transpose (addend_model_attribute, decomposing backward) is UNIMPLEMENTED. A table whose struct_size ends before it
   * has none. in: rows (borrowed while it runs). out: out_rows: num_rows tensors, one for each input (new: taken over).
   */
  int32_t(ADDEND_CALL* transpose)(void* payload, const addend_tensor* rows, addend_tensor** out_rows, size_t num_rows);
} addend_map_callbacks;

/* A rule.
 * thread: any that decomposes; several at once. */
typedef struct addend_rule_callbacks {
  size_t struct_size; /* sizeof(addend_rule_callbacks) */
  void* payload;
  addend_release_fn release; /* of the payload; may be NULL */
  /* Fills in `result`. May be called on any thread that decomposes, on several at once. */
  int32_t(ADDEND_CALL* build)(void* payload, const addend_rule_call* call, addend_rule_result* result);
} addend_rule_callbacks;

/* Makes rules that hold Addend's own.
 * out: out_rules (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_rules_create(addend_rules** out_rules) ADDEND_NOEXCEPT;
/* Adds a rule that needs no code, in place of one with the same name.
 * in: op: "my_ops::smooth_abs", or one overload "my_ops::smooth_abs.wide"; principle:
 *   pointwise            elementwise in one tensor, bends on the scale of 1 (tanh)
 *   pointwise_power      the same, bends on the scale of its argument (sqrt)
 *   pointwise_piecewise  the same, with kinks (relu)
 *   path                 differentiable, and nothing else is known
 *   path_elementwise     elementwise in several tensors, and differentiable
 *   opaque               constant but for steps */
ADDEND_API ADDEND_NODISCARD addend_status* addend_rules_add(addend_rules* rules, const char* op,
                                                            const char* principle) ADDEND_NOEXCEPT;
/* Adds a rule by callback, in place of one with the same name.
 * in: callbacks (copied; if the call fails, the payload stays the caller's). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_rules_add_callbacks(
    addend_rules* rules, const char* op, const addend_rule_callbacks* callbacks) ADDEND_NOEXCEPT;
ADDEND_API void addend_rules_release(addend_rules* rules) ADDEND_NOEXCEPT;

/* Sets the rules of a context, as they are now.
 * in: rules (borrowed). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_options_set_rules(addend_context_options* options,
                                                                            const addend_rules* rules) ADDEND_NOEXCEPT;

/* Returns how many operands the call has: its tensor arguments, in the order of the schema. */
ADDEND_API size_t addend_rule_call_num_operands(const addend_rule_call* call) ADDEND_NOEXCEPT;
/* Returns 1 where rows reach the operand; other operands are plain numbers. */
ADDEND_API int32_t addend_rule_call_decomposed(const addend_rule_call* call, size_t operand) ADDEND_NOEXCEPT;
/* Gives the value or the reference of an operand.
 * in: part: ADDEND_VALUE or ADDEND_REFERENCE.
 * out: out_tensor (new).
 * errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_rule_call_operand(const addend_rule_call* call, size_t operand,
                                                                    int32_t part,
                                                                    addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Gives the value or the reference of the first output.
 * in: part: ADDEND_VALUE or ADDEND_REFERENCE.
 * out: out_tensor (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_rule_call_output(const addend_rule_call* call, int32_t part,
                                                                   addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Gives a number among the arguments.
 * in: argument: its position in the schema.
 * out: out_number.
 * errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_rule_call_number(const addend_rule_call* call, size_t argument,
                                                                   double* out_number) ADDEND_NOEXCEPT;

/* Adds a term to the map: output += coefficient * operand, elementwise with broadcasting.
 * in: coefficient (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_rule_result_add_term(
    addend_rule_result* result, size_t operand, const addend_tensor* coefficient) ADDEND_NOEXCEPT;
/* Sets any linear map of some decomposed operands, in place of terms.
 * in: operands: their positions; callbacks (copied; if the call fails, the payload stays the caller's). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_rule_result_set_map(
    addend_rule_result* result, const int64_t* operands, size_t num_operands,
    const addend_map_callbacks* callbacks) ADDEND_NOEXCEPT;
/* Sets whether the rule claims that its bracket is zero up to rounding, and is checked for it (1), or what is missing
 * is leftover (0, the default). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_rule_result_set_exact(addend_rule_result* result,
                                                                        int32_t exact) ADDEND_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ADDEND_C_API_ADDEND_EXT_H_ */
