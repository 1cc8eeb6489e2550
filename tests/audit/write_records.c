/* The same in C: usage: write_records_c write LOG COUNT KEEP_INPUTS | verify LOG COUNT */
#include <addend/addend.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "docs/examples/models/breast_cancer/"
enum { ROWS = 200, COLUMNS = 30 };

static void check(addend_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", addend_status_message(status));
  addend_status_release(status);
  exit(1);
}

static void write_log(const char* path, long count, int keep) {
  const int64_t dims[] = {1, COLUMNS};
  const int64_t columns[] = {1};
  addend_model* model = NULL;
  addend_tensor_file* file = NULL;
  addend_tensor* rows = NULL;
  addend_tensor* baseline = NULL;
  addend_audit_log* log = NULL;
  long k;
  check(addend_model_load(FOLDER "model.pt", 0, &model));
  check(addend_tensor_file_read(FOLDER "heldout.safetensors", &file));
  check(addend_tensor_file_tensor(file, "input", &rows));
  addend_tensor_file_release(file);
  check(addend_tensor_file_read(FOLDER "baseline.npy", &file));
  check(addend_tensor_file_tensor(file, NULL, &baseline));
  addend_tensor_file_release(file);
  check(addend_audit_log_open(path, keep ? "{\"keep_inputs\": true}" : NULL, &log));
  for (k = 0; k < count; ++k) {
    const float* row = (const float*)addend_tensor_data(rows) + k % ROWS * COLUMNS;
    addend_tensor* input = NULL;
    addend_request* request = NULL;
    addend_attribution* attribution = NULL;
    addend_string* record = NULL;
    char options[256];
    snprintf(options, sizeof(options),
             "{\"salt\": \"%064lx\", \"time\": \"2026-01-01T00:00:00.%06ldZ\", \"context\": {\"application\": %ld}}",
             (unsigned long)k, k, k);
    check(addend_tensor_copy(row, COLUMNS * sizeof(float), ADDEND_FLOAT32, dims, 2, &input));
    check(addend_request_create(&request));
    check(addend_request_add_input(request, NULL, input));
    check(addend_request_split_dims(request, columns, 1));
    check(addend_request_set_baseline(request, baseline));
    check(addend_model_attribute(NULL, model, request, &attribution));
    check(addend_audit_log_append(log, attribution, options, &record));
    addend_string_release(record);
    addend_attribution_release(attribution);
    addend_request_release(request);
    addend_tensor_release(input);
  }
  addend_audit_log_release(log);
  addend_tensor_release(baseline);
  addend_tensor_release(rows);
  addend_model_release(model);
}

static int verify_log(const char* path, const char* count) {
  addend_string* found = NULL;
  char records[64];
  int whole;
  check(addend_audit_verify(path, NULL, &found));
  snprintf(records, sizeof(records), "\"records\":%s,", count);
  whole = strstr(addend_string_data(found), "\"verified\":true") != NULL &&
          strstr(addend_string_data(found), records) != NULL;
  if (!whole) fprintf(stderr, "%s\n", addend_string_data(found));
  addend_string_release(found);
  return whole ? 0 : 1;
}

int main(int argc, char** argv) {
  check(addend_set_num_threads(1));
  if (argc == 5 && strcmp(argv[1], "write") == 0) {
    write_log(argv[2], atol(argv[3]), atoi(argv[4]));
    return 0;
  }
  if (argc == 4 && strcmp(argv[1], "verify") == 0) return verify_log(argv[2], argv[3]);
  fprintf(stderr, "usage: %s write LOG COUNT KEEP_INPUTS | verify LOG COUNT\n", argv[0]);
  return 2;
}
