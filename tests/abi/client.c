// A program of a user who built it when version 1 of the interface was new: it includes the header of that time, and
// runs on whatever library there is now.
#include <stdio.h>
#include <string.h>

#include "tests/abi/addend_v1.h"

#define REQUIRE(condition)                                        \
  do {                                                            \
    if (!(condition)) {                                           \
      fprintf(stderr, "line %d: %s\n", __LINE__, #condition);     \
      return 1;                                                   \
    }                                                             \
  } while (0)

int main(int argc, char** argv) {
  REQUIRE(argc == 3);
  REQUIRE(addend_abi_min_version() <= ADDEND_ABI_VERSION && ADDEND_ABI_VERSION <= addend_abi_version());
  REQUIRE(ADDEND_ABI_VERSION == 1);
  addend_model* model = NULL;
  REQUIRE(addend_model_load(argv[1], 0, &model) == NULL);
  addend_tensor_file* file = NULL;
  REQUIRE(addend_tensor_file_read(argv[2], &file) == NULL);
  addend_tensor* image = NULL;
  REQUIRE(addend_tensor_file_tensor(file, "input", &image) == NULL);
  REQUIRE(addend_tensor_dtype(image) == ADDEND_FLOAT32);
  const int64_t dims[] = {2, 3};
  addend_request* request = NULL;
  REQUIRE(addend_request_create(&request) == NULL);
  REQUIRE(addend_request_add_input(request, NULL, image) == NULL);
  REQUIRE(addend_request_split_dims(request, dims, 2) == NULL);
  addend_context_options* options = NULL;
  REQUIRE(addend_context_options_create(&options) == NULL);
  REQUIRE(addend_context_options_set_policy(options, "preset", "faithful") == NULL);
  addend_context* context = NULL;
  REQUIRE(addend_context_create(options, &context) == NULL);
  addend_results* results = NULL;
  REQUIRE(addend_model_decompose(context, model, request, &results) == NULL);
  REQUIRE(addend_results_kind(results, 0) == ADDEND_RESULT_COMPOSITION);
  addend_explanation* explanation = NULL;
  REQUIRE(addend_results_explain(results, NULL, "top1", &explanation) == NULL);
  double sum = addend_explanation_number(explanation, ADDEND_NUMBER_REFERENCE) +
               addend_explanation_number(explanation, ADDEND_NUMBER_LEFTOVER);
  for (int64_t i = 0; i < addend_explanation_numc(explanation); ++i) {
    sum += addend_explanation_contribution(explanation, i);
  }
  const double error = sum - addend_explanation_number(explanation, ADDEND_NUMBER_VALUE);
  REQUIRE(-1e-4 < error && error < 1e-4);
  addend_status* status = addend_results_explain(results, "nothing", "top1", &explanation);
  REQUIRE(addend_status_code(status) == ADDEND_NOT_FOUND && strlen(addend_status_message(status)) > 0);
  addend_status_release(status);
  addend_explanation_release(explanation);
  addend_results_release(results);
  addend_context_release(context);
  addend_context_options_release(options);
  addend_request_release(request);
  addend_tensor_release(image);
  addend_tensor_file_release(file);
  addend_model_release(model);
  REQUIRE(addend_debug_live(ADDEND_HANDLE_ANY) == 0);
  puts("ok: a client of version 1 runs");
  return 0;
}
