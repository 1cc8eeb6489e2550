// Decomposes a model that was recorded in Python.
#include <addend/addend.h>
#include <stdio.h>
#include <stdlib.h>

// Ends the program where a call failed.
static void check(addend_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "decompose: %s\n", addend_status_message(status));
  addend_status_release(status);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: decompose FOLDER\n");
    return 2;
  }
  char path[4096];
  snprintf(path, sizeof(path), "%s/program", argv[1]);
  addend_program* program;
  check(addend_program_load(path, &program));
  addend_model* model;
  check(addend_program_model(program, &model));
  snprintf(path, sizeof(path), "%s/sample.safetensors", argv[1]);
  addend_tensor_file* sample;
  check(addend_tensor_file_read(path, &sample));
  addend_tensor* ids;
  check(addend_tensor_file_tensor(sample, "batch.input_ids", &ids));
  addend_tensor* mask;
  check(addend_tensor_file_tensor(sample, "batch.attention_mask", &mask));

  // One component for each word, explained against padding.
  const int64_t words = 1;
  addend_request* request;
  check(addend_request_create(&request));
  check(addend_request_add_input(request, "batch.input_ids", ids));
  check(addend_request_split_dims(request, &words, 1));
  check(addend_request_set_baseline_number(request, 0));
  check(addend_request_add_input(request, "batch.attention_mask", mask));

  addend_results* results;
  check(addend_model_decompose(NULL, model, request, &results));
  addend_explanation* explanation;
  check(addend_results_explain(results, NULL, "top1", &explanation));

  printf("output %s = %.4f\n", addend_explanation_target(explanation),
         addend_explanation_number(explanation, ADDEND_NUMBER_VALUE));
  for (int64_t rank = 0; rank < 3; ++rank) {
    const int64_t word = addend_explanation_ranked(explanation, rank);
    printf("word %s: %+.4f\n", addend_explanation_name(explanation, word),
           addend_explanation_contribution(explanation, word));
  }
  printf("reference: %.4f\n", addend_explanation_number(explanation, ADDEND_NUMBER_REFERENCE));
  printf("recovery: %.4f\n", addend_explanation_number(explanation, ADDEND_NUMBER_RECOVERY));

  addend_explanation_release(explanation);
  addend_results_release(results);
  addend_request_release(request);
  addend_tensor_release(mask);
  addend_tensor_release(ids);
  addend_tensor_file_release(sample);
  addend_model_release(model);
  addend_program_release(program);
  return 0;
}
