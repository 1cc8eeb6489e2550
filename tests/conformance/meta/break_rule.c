/* Preloaded into a testee: puts a wrong rule into every context that it makes, so that the suite is seen to notice a
 * rule of the core that is wrong. The rule is registered as users register theirs; the library is the one under test.
 *
 *   BREAK_RULE=opaque  aten::tanh is taken for a function of steps: nothing passes, all of its move is left over.
 *   BREAK_RULE=slope   aten::tanh moves components by 0.999 of what they are due, and claims to be exact.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_api/addend_ext.h"

#define REAL(function) ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))
#define MUST(call)                                                        \
  do {                                                                    \
    addend_status* const failed = (call);                                 \
    if (failed != NULL) {                                                 \
      fprintf(stderr, "break_rule: %s\n", addend_status_message(failed)); \
      abort();                                                            \
    }                                                                     \
  } while (0)

/* Elementwise a op b, released by the caller. */
static addend_tensor* calculate(const char* op, const addend_tensor* a, const addend_tensor* b, double number) {
  addend_arguments* arguments = NULL;
  addend_results* results = NULL;
  addend_tensor* tensor = NULL;
  MUST(addend_arguments_create(&arguments));
  MUST(addend_arguments_add_tensor(arguments, NULL, a));
  if (b != NULL) {
    MUST(addend_arguments_add_tensor(arguments, NULL, b));
  } else {
    MUST(addend_arguments_add_f64(arguments, NULL, number));
  }
  MUST(REAL(addend_call)(NULL, op, arguments, &results));
  MUST(addend_results_tensor(results, 0, &tensor));
  addend_results_release(results);
  addend_arguments_release(arguments);
  return tensor;
}

/* 0.999 of the secant of tanh between reference and value. */
static int32_t build(void* payload, const addend_rule_call* call, addend_rule_result* result) {
  (void)payload;
  addend_tensor *x = NULL, *b = NULL, *f_x = NULL, *f_b = NULL;
  MUST(addend_rule_call_operand(call, 0, ADDEND_VALUE, &x));
  MUST(addend_rule_call_operand(call, 0, ADDEND_REFERENCE, &b));
  MUST(addend_rule_call_output(call, ADDEND_VALUE, &f_x));
  MUST(addend_rule_call_output(call, ADDEND_REFERENCE, &f_b));
  addend_tensor* const move = calculate("aten::sub", x, b, 0);
  addend_tensor* const rise = calculate("aten::sub", f_x, f_b, 0);
  addend_tensor* const slope = calculate("aten::div", rise, move, 0);
  addend_tensor* const finite = calculate("aten::nan_to_num", slope, NULL, 0);
  addend_tensor* const wrong = calculate("aten::mul.Scalar", finite, NULL, 0.999);
  MUST(addend_rule_result_add_term(result, 0, wrong));
  MUST(addend_rule_result_set_exact(result, 1));
  addend_tensor* const all[] = {x, b, f_x, f_b, move, rise, slope, finite, wrong};
  for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); ++k) addend_tensor_release(all[k]);
  return ADDEND_CALLBACK_OK;
}

static void break_rules(addend_context_options* options) {
  addend_rules* rules = NULL;
  MUST(addend_rules_create(&rules));
  const char* const how = getenv("BREAK_RULE");
  if (how != NULL && strcmp(how, "opaque") == 0) {
    MUST(addend_rules_add(rules, "aten::tanh", "opaque"));
  } else if (how != NULL && strcmp(how, "slope") == 0) {
    const addend_rule_callbacks callbacks = {sizeof(addend_rule_callbacks), NULL, NULL, build};
    MUST(addend_rules_add_callbacks(rules, "aten::tanh", &callbacks));
  }
  MUST(addend_context_options_set_rules(options, rules));
  addend_rules_release(rules);
}

/* Where a context is made. */
addend_status* addend_context_create(const addend_context_options* options,
                                     addend_context** out_context) ADDEND_NOEXCEPT {
  break_rules((addend_context_options*)options);
  return REAL(addend_context_create)(options, out_context);
}

/* Where none is given. */
static addend_context* defaults(void) {
  addend_context_options* options = NULL;
  addend_context* context = NULL;
  MUST(addend_context_options_create(&options));
  MUST(addend_context_create(options, &context));
  addend_context_options_release(options);
  return context;
}

addend_status* addend_call(const addend_context* context, const char* op, const addend_arguments* arguments,
                           addend_results** out_results) ADDEND_NOEXCEPT {
  addend_context* const own = context == NULL ? defaults() : NULL;
  addend_status* const status = REAL(addend_call)(own == NULL ? context : own, op, arguments, out_results);
  addend_context_release(own);
  return status;
}

addend_status* addend_model_decompose(const addend_context* context, const addend_model* model,
                                      const addend_request* request, addend_results** out_results) ADDEND_NOEXCEPT {
  addend_context* const own = context == NULL ? defaults() : NULL;
  addend_status* const status = REAL(addend_model_decompose)(own == NULL ? context : own, model, request, out_results);
  addend_context_release(own);
  return status;
}
