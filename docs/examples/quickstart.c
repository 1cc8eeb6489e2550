// Explains which digit a model sees in an image: the same program in five languages.
#include <addend/addend.h>
#include <stdio.h>
#include <stdlib.h>

// Ends the program where a call failed.
static void check(addend_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "quickstart: %s\n", addend_status_message(status));
  addend_status_release(status);
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: quickstart MODEL SAMPLE\n");
    return 2;
  }
  addend_model* model;
  check(addend_model_load(argv[1], 0, &model));
  addend_tensor_file* file;
  check(addend_tensor_file_read(argv[2], &file));
  addend_tensor* image;
  check(addend_tensor_file_tensor(file, "input", &image));

  // One component for each pixel, explained against an empty image.
  const int64_t height_and_width[] = {2, 3};
  addend_request* request;
  check(addend_request_create(&request));
  check(addend_request_add_input(request, NULL, image));
  check(addend_request_split_dims(request, height_and_width, 2));
  check(addend_request_set_baseline_number(request, 0));

  addend_results* results;
  check(addend_model_decompose(NULL, model, request, &results));
  addend_explanation* explanation;
  check(addend_results_explain(results, NULL, "top1", &explanation));

  printf("output %s = %.4f\n", addend_explanation_target(explanation),
         addend_explanation_number(explanation, ADDEND_NUMBER_VALUE));
  for (int64_t rank = 0; rank < 3; ++rank) {
    const int64_t pixel = addend_explanation_ranked(explanation, rank);
    printf("pixel %s: %+.4f\n", addend_explanation_name(explanation, pixel),
           addend_explanation_contribution(explanation, pixel));
  }
  printf("leftover: %.1e\n", addend_explanation_number(explanation, ADDEND_NUMBER_LEFTOVER));
  printf("recovery error: %.1e\n", addend_explanation_number(explanation, ADDEND_NUMBER_RECOVERY_ERROR));

  addend_explanation_release(explanation);
  addend_results_release(results);
  addend_request_release(request);
  addend_tensor_release(image);
  addend_tensor_file_release(file);
  addend_model_release(model);
  return 0;
}
