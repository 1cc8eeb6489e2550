/* The testee of the conformance suite in C, over addend.h: executes requests of PROTOCOL.md and expects nothing. */
#define _POSIX_C_SOURCE 200809L

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef ADDEND_INSTALLED
#include <addend/addend.h>
#else
#include "c_api/addend.h"
#endif

#define TRY(call)                          \
  do {                                     \
    addend_status* const failed_ = (call); \
    if (failed_ != NULL) return failed_;   \
  } while (0)
#define MAX_THREADS 64

static char device[32] = "cpu";

/* ---- What a request makes is released when it has been answered ---------------------------------------------------
 */

typedef struct owned {
  int32_t kind; /* of addend_handle_kind; ADDEND_HANDLE_ANY: memory */
  void* what;
  struct owned* next;
} owned;

static owned* all_owned;

static void* own(int32_t kind, void* what) {
  owned* const entry = malloc(sizeof(owned));
  if (entry == NULL) abort();
  entry->kind = kind;
  entry->what = what;
  entry->next = all_owned;
  all_owned = entry;
  return what;
}

static void release_all(void) {
  while (all_owned != NULL) {
    owned* const entry = all_owned;
    all_owned = entry->next;
    switch (entry->kind) {
      case ADDEND_HANDLE_ANY:
        free(entry->what);
        break;
      case ADDEND_HANDLE_STRING:
        addend_string_release(entry->what);
        break;
      case ADDEND_HANDLE_CANCELLATION:
        addend_cancellation_release(entry->what);
        break;
      case ADDEND_HANDLE_CONTEXT:
        addend_context_release(entry->what);
        break;
      case ADDEND_HANDLE_CONTEXT_OPTIONS:
        addend_context_options_release(entry->what);
        break;
      case ADDEND_HANDLE_TENSOR:
        addend_tensor_release(entry->what);
        break;
      case ADDEND_HANDLE_TENSOR_FILE:
        addend_tensor_file_release(entry->what);
        break;
      case ADDEND_HANDLE_COMPOSITION:
        addend_composition_release(entry->what);
        break;
      case ADDEND_HANDLE_EXPLANATION:
        addend_explanation_release(entry->what);
        break;
      case ADDEND_HANDLE_MODEL:
        addend_model_release(entry->what);
        break;
      case ADDEND_HANDLE_REQUEST:
        addend_request_release(entry->what);
        break;
      case ADDEND_HANDLE_RESULTS:
        addend_results_release(entry->what);
        break;
      case ADDEND_HANDLE_ARGUMENTS:
        addend_arguments_release(entry->what);
        break;
      case ADDEND_HANDLE_ATTRIBUTION:
        addend_attribution_release(entry->what);
        break;
      case ADDEND_HANDLE_PROGRAM:
        addend_program_release(entry->what);
        break;
      default:
        abort();
    }
    free(entry);
  }
}

static void* memory(size_t size) {
  void* const bytes = calloc(size + 1, 1);
  if (bytes == NULL) abort();
  return own(ADDEND_HANDLE_ANY, bytes);
}

/* ---- Texts --------------------------------------------------------------------------------------------------------
 */

/* "%s" and the like, in memory that lives as long as the request. */
static char* text_of(const char* format, const char* a, const char* b) {
  char* const text = memory(strlen(format) + strlen(a) + strlen(b));
  sprintf(text, format, a, b);
  return text;
}

/* Cuts the next piece off a text; NULL behind the last one. */
static char* cut(char** rest, char separator) {
  char* const piece = *rest;
  if (piece == NULL) return NULL;
  char* const end = strchr(piece, separator);
  *rest = end == NULL ? NULL : end + 1;
  if (end != NULL) *end = '\0';
  return piece;
}

/* The fields of a line; those that it lacks are empty. */
static void cut_fields(char* line, char** fields, int count) {
  for (int k = 0; k < count; ++k) {
    fields[k] = cut(&line, '\t');
    if (fields[k] == NULL) fields[k] = (char*)"";
  }
}

static size_t integers(const char* text, int64_t** numbers) {
  char* rest = *text == '\0' ? NULL : text_of("%s%s", text, "");
  *numbers = memory(sizeof(int64_t) * (strlen(text) + 1));
  size_t count = 0;
  for (char* piece; (piece = cut(&rest, ',')) != NULL;) (*numbers)[count++] = strtoll(piece, NULL, 10);
  return count;
}

static double number_of(const char* digits) {
  const uint64_t bits = strtoull(digits, NULL, 16);
  double number;
  memcpy(&number, &bits, sizeof(number));
  return number;
}

static char* digits_of(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof(bits));
  char* const digits = memory(16);
  sprintf(digits, "%016" PRIx64, bits);
  return digits;
}

static char* decimal(int64_t number) {
  char* const digits = memory(24);
  sprintf(digits, "%" PRId64, number);
  return digits;
}

static const struct {
  const char* name;
  int32_t code;
} dtypes[] = {{"float64", ADDEND_FLOAT64},     {"float32", ADDEND_FLOAT32}, {"float16", ADDEND_FLOAT16},
              {"bfloat16", ADDEND_BFLOAT16},   {"int64", ADDEND_INT64},     {"int32", ADDEND_INT32},
              {"int16", ADDEND_INT16},         {"int8", ADDEND_INT8},       {"uint8", ADDEND_UINT8},
              {"complex64", ADDEND_COMPLEX64}, {"bool", ADDEND_BOOL},       {"complex128", ADDEND_COMPLEX128}};

static int32_t dtype_of(const char* name) {
  for (size_t k = 0; k < sizeof(dtypes) / sizeof(dtypes[0]); ++k) {
    if (strcmp(dtypes[k].name, name) == 0) return dtypes[k].code;
  }
  return 0;
}

static const char* code_name(int32_t code) {
  switch (code) {
    case ADDEND_OK:
      return "OK";
    case ADDEND_CANCELLED:
      return "CANCELLED";
    case ADDEND_INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case ADDEND_NOT_FOUND:
      return "NOT_FOUND";
    case ADDEND_RESOURCE_EXHAUSTED:
      return "RESOURCE_EXHAUSTED";
    case ADDEND_FAILED_PRECONDITION:
      return "FAILED_PRECONDITION";
    case ADDEND_OUT_OF_RANGE:
      return "OUT_OF_RANGE";
    case ADDEND_UNIMPLEMENTED:
      return "UNIMPLEMENTED";
    case ADDEND_INTERNAL:
      return "INTERNAL";
    default:
      return "UNKNOWN";
  }
}

/* ---- The request and the answer -------------------------------------------------------------------------------------
 */

static addend_tensor_file* request;
static addend_tensor_file* answer;

static const char* entry(const char* key) {
  const char* const value = addend_tensor_file_metadata(request, key);
  return value == NULL ? "" : value;
}
static const char* entry_of(const char* key, const char* name) { return entry(text_of("%s.%s", key, name)); }
static int64_t integer_of(const char* text, int64_t otherwise) {
  return *text == '\0' ? otherwise : strtoll(text, NULL, 10);
}
/* The lines of a list, to be cut. */
static char* list_of(const char* value) { return *value == '\0' ? NULL : text_of("%s%s", value, ""); }

static addend_status* set(const char* key, const char* value) {
  return addend_tensor_file_set_metadata(answer, key, value);
}
static addend_status* append(const char* key, const char* line) {
  const char* const before = addend_tensor_file_metadata(answer, key);
  return set(key, before == NULL ? line : text_of("%s\n%s", before, line));
}

static addend_status* call_plain(const char* op, const addend_tensor* tensor, addend_tensor** out) {
  addend_arguments* arguments = NULL;
  addend_results* results = NULL;
  TRY(addend_arguments_create(&arguments));
  own(ADDEND_HANDLE_ARGUMENTS, arguments);
  TRY(addend_arguments_add_tensor(arguments, NULL, tensor));
  TRY(addend_call(NULL, op, arguments, &results));
  own(ADDEND_HANDLE_RESULTS, results);
  TRY(addend_results_tensor(results, 0, out));
  own(ADDEND_HANDLE_TENSOR, *out);
  return NULL;
}

static size_t size_of(const addend_tensor* tensor, int64_t* dims) {
  size_t size = (size_t)(addend_tensor_dtype(tensor) >> 8) / 8;
  for (size_t d = 0; d < addend_tensor_num_dims(tensor); ++d) {
    dims[d] = addend_tensor_size(tensor, d);
    size *= (size_t)dims[d];
  }
  return size;
}

/* The same numbers in memory of this program, which is freed when the tensor needs it no more. */
static addend_status* through_memory(const addend_tensor* tensor, addend_tensor** out) {
  int64_t dims[64];
  const size_t size = size_of(tensor, dims);
  void* const bytes = malloc(size + 1);
  if (bytes == NULL) abort();
  if (size > 0) memcpy(bytes, addend_tensor_data(tensor), size);
  addend_status* const status = addend_tensor_wrap(bytes, size, addend_tensor_dtype(tensor), dims,
                                                   addend_tensor_num_dims(tensor), NULL, 0, free, bytes, out);
  if (status != NULL) {
    free(bytes);
    return status;
  }
  own(ADDEND_HANDLE_TENSOR, *out);
  return NULL;
}

static addend_status* raw_tensor(const char* name, addend_tensor** out) {
  TRY(addend_tensor_file_tensor(request, name, out));
  own(ADDEND_HANDLE_TENSOR, *out);
  return NULL;
}

static int in_list(const char* value, const char* name) {
  char* rest = list_of(value);
  for (char* line; (line = cut(&rest, '\n')) != NULL;) {
    if (strcmp(line, name) == 0) return 1;
  }
  return 0;
}

static addend_status* get(const char* name, addend_tensor** out) {
  addend_tensor* raw = NULL;
  TRY(raw_tensor(name, &raw));
  TRY(through_memory(raw, out));
  if (in_list(entry("complex"), name)) TRY(call_plain("aten::view_as_complex", *out, out));
  if (strcmp(device, "cpu") != 0 && !in_list(entry("host"), name)) {
    TRY(addend_tensor_to(*out, 0, device, out));
    own(ADDEND_HANDLE_TENSOR, *out);
  }
  return NULL;
}

static int has(const char* name) {
  for (size_t k = 0; k < addend_tensor_file_size(request); ++k) {
    if (strcmp(addend_tensor_file_name(request, k), name) == 0) return 1;
  }
  return 0;
}

/* NULL where the request has no such tensor. */
static addend_status* get_optional(const char* key, const char* part, addend_tensor** out) {
  const char* const name = text_of("%s.%s", key, part);
  *out = NULL;
  return has(name) ? get(name, out) : NULL;
}

static addend_status* add_tensor(const char* name, addend_tensor* tensor) {
  const int32_t dtype = addend_tensor_dtype(tensor);
  if (dtype == ADDEND_COMPLEX64 || dtype == ADDEND_COMPLEX128) {
    TRY(append("complex", name));
    TRY(call_plain("aten::resolve_conj", tensor, &tensor));
    TRY(call_plain("aten::view_as_real", tensor, &tensor));
  }
  TRY(addend_tensor_to(tensor, 0, "cpu", &tensor));
  own(ADDEND_HANDLE_TENSOR, tensor);
  TRY(through_memory(tensor, &tensor));
  return addend_tensor_file_add(answer, name, tensor);
}

static const char* const part_names[] = {"components", "reference", "leftover", "residual", "recovery", "value"};

static addend_status* add_parts(const char* key, const addend_composition* composition, const char* parts) {
  char* rest = text_of("%s%s", parts, "");
  for (char* name; (name = cut(&rest, ' ')) != NULL;) {
    for (int32_t part = 0; part < 6; ++part) {
      if (strcmp(name, part_names[part]) != 0) continue;
      addend_tensor* tensor = NULL;
      TRY(addend_composition_part(composition, part, &tensor));
      own(ADDEND_HANDLE_TENSOR, tensor);
      TRY(add_tensor(text_of("%s.%s", key, name), tensor));
    }
  }
  return NULL;
}

static addend_status* add_composition(const char* key, const char* name, const addend_composition* composition) {
  const char* const parts = *entry("parts") == '\0' ? "components reference leftover value" : entry("parts");
  TRY(append("results", text_of("%s\t%s", text_of("composition\t%s%s", name, ""), key)));
  return add_parts(key, composition, parts);
}

static addend_status* add_results(const char* prefix, const addend_results* results) {
  for (size_t k = 0; k < addend_results_size(results); ++k) {
    const char* const key = text_of("%s%s", prefix, decimal((int64_t)k));
    const char* const name = addend_results_name(results, k) == NULL ? "" : addend_results_name(results, k);
    addend_composition* composition = NULL;
    addend_tensor* tensor = NULL;
    double number = 0;
    switch (addend_results_kind(results, k)) {
      case ADDEND_RESULT_COMPOSITION:
        TRY(addend_results_composition(results, k, &composition));
        own(ADDEND_HANDLE_COMPOSITION, composition);
        TRY(add_composition(key, name, composition));
        break;
      case ADDEND_RESULT_TENSOR:
        TRY(addend_results_tensor(results, k, &tensor));
        own(ADDEND_HANDLE_TENSOR, tensor);
        TRY(append("results", text_of("tensor\t%s\t%s", name, key)));
        TRY(add_tensor(key, tensor));
        break;
      case ADDEND_RESULT_NUMBER:
        TRY(addend_results_number(results, k, &number));
        TRY(append("results", text_of("number\t%s\t%s", name, digits_of(number))));
        break;
      default:
        TRY(append("results", text_of("none\t%s\t%s", name, "")));
    }
  }
  return NULL;
}

/* ---- What requests speak of -----------------------------------------------------------------------------------------
 */

static addend_status* make_composition(const char* key, addend_composition** out) {
  addend_tensor *value = NULL, *other = NULL, *leftover = NULL;
  const char* const make = entry_of(key, "make");
  const int64_t numc = integer_of(entry_of(key, "numc"), -1);
  if (strcmp(make, "tensors") == 0) {
    TRY(get(text_of("%s.%s", key, "components"), &value));
    TRY(get_optional(key, "reference", &other));
    TRY(get_optional(key, "leftover", &leftover));
    return addend_composition_from_tensors(value, other, leftover, 0, out);
  }
  TRY(get(text_of("%s.%s", key, "value"), &value));
  TRY(get_optional(key, "baseline", &other));
  if (strcmp(make, "labels") == 0) {
    addend_tensor* labels = NULL;
    TRY(get(text_of("%s.%s", key, "labels"), &labels));
    return addend_composition_from_labels(value, labels, other, numc, out);
  }
  int64_t* dims = NULL;
  const size_t num_dims = integers(entry_of(key, "dims"), &dims);
  return addend_composition_diagonal(value, dims, num_dims, other, integer_of(entry_of(key, "offset"), 0), numc, out);
}

static int32_t stop(void* payload, const char* stage, int64_t done, int64_t total) {
  (void)stage, (void)done, (void)total;
  return --*(int64_t*)payload == 0 ? 1 : 0;
}

/* NULL where nothing is chosen. */
static addend_status* make_context(addend_context** out) {
  char* rest = list_of(entry("policy"));
  int64_t* const stop_after = memory(sizeof(int64_t));
  *stop_after = integer_of(entry("stop_after"), 0);
  *out = NULL;
  if (rest == NULL && *stop_after == 0) return NULL;
  addend_context_options* options = NULL;
  TRY(addend_context_options_create(&options));
  own(ADDEND_HANDLE_CONTEXT_OPTIONS, options);
  for (char* line; (line = cut(&rest, '\n')) != NULL;) {
    char* fields[2];
    cut_fields(line, fields, 2);
    TRY(addend_context_options_set_policy(options, fields[0], fields[1]));
  }
  if (*stop_after != 0) TRY(addend_context_options_set_progress(options, stop, stop_after, NULL));
  TRY(addend_context_create(options, out));
  own(ADDEND_HANDLE_CONTEXT, *out);
  return NULL;
}

typedef struct {
  const char* key;
  addend_composition* composition;
} named_composition;
static named_composition compositions[64];
static size_t num_compositions;

static addend_status* make_arguments(addend_arguments** out) {
  TRY(addend_arguments_create(out));
  own(ADDEND_HANDLE_ARGUMENTS, *out);
  num_compositions = 0;
  char* rest = list_of(entry("args"));
  for (char* line; (line = cut(&rest, '\n')) != NULL;) {
    char* fields[3];
    cut_fields(line, fields, 3);
    const char *const kind = fields[0], *const value = fields[2];
    const char* const name = *fields[1] == '\0' ? NULL : fields[1];
    addend_tensor* tensor = NULL;
    if (strcmp(kind, "composition") == 0 && num_compositions < 64) {
      named_composition* const made = &compositions[num_compositions];
      made->key = value;
      TRY(make_composition(value, &made->composition));
      own(ADDEND_HANDLE_COMPOSITION, made->composition);
      ++num_compositions;
      TRY(addend_arguments_add_composition(*out, name, made->composition));
    } else if (strcmp(kind, "tensor") == 0) {
      TRY(get(value, &tensor));
      TRY(addend_arguments_add_tensor(*out, name, tensor));
    } else if (strcmp(kind, "i64") == 0) {
      TRY(addend_arguments_add_i64(*out, name, strtoll(value, NULL, 10)));
    } else if (strcmp(kind, "i64s") == 0) {
      int64_t* numbers = NULL;
      const size_t count = integers(value, &numbers);
      TRY(addend_arguments_add_i64s(*out, name, numbers, count));
    } else if (strcmp(kind, "f64") == 0) {
      TRY(addend_arguments_add_f64(*out, name, number_of(value)));
    } else if (strcmp(kind, "bool") == 0) {
      TRY(addend_arguments_add_bool(*out, name, *value == '1'));
    } else if (strcmp(kind, "str") == 0) {
      TRY(addend_arguments_add_str(*out, name, entry(value)));
    } else if (strcmp(kind, "dtype") == 0) {
      TRY(addend_arguments_add_dtype(*out, name, dtype_of(value)));
    } else if (strcmp(kind, "list") == 0) {
      TRY(addend_arguments_begin_list(*out, name));
    } else if (strcmp(kind, "end") == 0) {
      TRY(addend_arguments_end_list(*out));
    } else {
      TRY(addend_arguments_add_none(*out, name));
    }
  }
  return NULL;
}

/* The model of the last request: the next one is often about the same. */
static addend_model* last_model;
static char* last_model_name;

static void forget_model(void) {
  addend_model_release(last_model);
  free(last_model_name);
  last_model = NULL;
  last_model_name = NULL;
}

/* The model on the device of all requests; releases what it is given. */
static addend_status* there(addend_model* loaded, addend_model** out) {
  if (strcmp(device, "cpu") == 0) {
    *out = loaded;
    return NULL;
  }
  addend_status* const status = addend_model_to(loaded, 0, device, out);
  addend_model_release(loaded);
  return status;
}

static addend_status* load_model(addend_model** out) {
  const int32_t dtype = dtype_of(entry("model_dtype"));
  addend_model* loaded = NULL;
  if (has("model")) {
    int64_t dims[64];
    addend_tensor* bytes = NULL;
    TRY(raw_tensor("model", &bytes));
    TRY(addend_model_load_bytes(addend_tensor_data(bytes), size_of(bytes, dims), dtype, &loaded));
    TRY(there(loaded, out));
    own(ADDEND_HANDLE_MODEL, *out);
    return NULL;
  }
  const char* const name = text_of("%s\n%s", entry("model"), entry("model_dtype"));
  if (last_model_name == NULL || strcmp(last_model_name, name) != 0) {
    TRY(addend_model_load(entry("model"), dtype, &loaded));
    TRY(there(loaded, &loaded));
    forget_model();
    last_model = loaded;
    last_model_name = strdup(name);
  }
  *out = last_model;
  return NULL;
}

static addend_status* make_input(addend_request* made, const char* name, const char* key) {
  addend_tensor* tensor = NULL;
  TRY(get(text_of("%s.%s", key, "value"), &tensor));
  TRY(addend_request_add_input(made, *name == '\0' ? NULL : name, tensor));
  const char* const split = entry_of(key, "split");
  if (strcmp(split, "dims") == 0) {
    int64_t* dims = NULL;
    const size_t num_dims = integers(entry_of(key, "dims"), &dims);
    TRY(addend_request_split_dims(made, dims, num_dims));
  } else if (strcmp(split, "labels") == 0) {
    TRY(get(text_of("%s.%s", key, "labels"), &tensor));
    TRY(addend_request_split_labels(made, tensor));
  } else if (strcmp(split, "parts") == 0) {
    TRY(get(text_of("%s.%s", key, "parts"), &tensor));
    TRY(addend_request_split_parts(made, tensor));
  }
  const char* const number = entry_of(key, "baseline_number");
  if (*number != '\0') TRY(addend_request_set_baseline_number(made, number_of(number)));
  TRY(get_optional(key, "baseline", &tensor));
  if (tensor != NULL) TRY(addend_request_set_baseline(made, tensor));
  const char* const first = entry_of(key, "first");
  if (*first != '\0') TRY(addend_request_set_first_component(made, strtoll(first, NULL, 10)));
  char* names = list_of(entry_of(key, "names"));
  for (char* line; (line = cut(&names, '\n')) != NULL;) TRY(addend_request_add_name(made, line));
  return NULL;
}

static addend_status* make_request(addend_request** out) {
  TRY(addend_request_create(out));
  own(ADDEND_HANDLE_REQUEST, *out);
  char* inputs = list_of(entry("inputs"));
  for (char* line; (line = cut(&inputs, '\n')) != NULL;) {
    char* fields[2];
    cut_fields(line, fields, 2);
    TRY(make_input(*out, fields[0], fields[1]));
  }
  char* probes = list_of(entry("probes"));
  for (char* line; (line = cut(&probes, '\n')) != NULL;) TRY(addend_request_add_probe(*out, line));
  if (*entry("everything") == '1') TRY(addend_request_set_option(*out, "everything", "true"));
  if (*entry("direction") != '\0') TRY(addend_request_set_option(*out, "direction", entry("direction")));
  if (*entry("cancel") == '1') {
    addend_cancellation* cancellation = NULL;
    TRY(addend_cancellation_create(&cancellation));
    own(ADDEND_HANDLE_CANCELLATION, cancellation);
    addend_cancellation_cancel(cancellation);
    TRY(addend_request_set_cancellation(*out, cancellation));
  }
  return NULL;
}

/* Puts a program in the model's place, which was a folder in between. */
static addend_status* record(addend_model** model, const addend_request* request) {
  addend_program *recorded = NULL, *loaded = NULL;
  const char* const temporary = getenv("TMPDIR");
  char* const folder = text_of("%s/%s", temporary == NULL ? "/tmp" : temporary, "addend_program_XXXXXX");
  TRY(addend_model_record(*model, request, &recorded));
  own(ADDEND_HANDLE_PROGRAM, recorded);
  if (mkdtemp(folder) == NULL) abort();
  addend_status* status = addend_program_save(recorded, folder);
  if (status == NULL) status = addend_program_load(folder, &loaded);
  unlink(text_of("%s/%s", folder, "program.json"));
  unlink(text_of("%s/%s", folder, "weights.safetensors"));
  rmdir(folder);
  if (status != NULL) return status;
  own(ADDEND_HANDLE_PROGRAM, loaded);
  TRY(addend_program_model(loaded, model));
  own(ADDEND_HANDLE_MODEL, *model);
  return NULL;
}

/* What a call or a decomposition needs, made once. */
typedef struct {
  const char* verb;
  const char* op;
  addend_context* context;
  addend_arguments* arguments;
  addend_model* model;
  addend_request* request;
} job;

static addend_status* prepare(const char* verb, job* out) {
  memset(out, 0, sizeof(*out));
  out->verb = verb;
  out->op = entry("op");
  TRY(make_context(&out->context));
  if (strcmp(verb, "call") == 0) return make_arguments(&out->arguments);
  TRY(make_request(&out->request));
  TRY(load_model(&out->model));
  return *entry("program") == '1' ? record(&out->model, out->request) : NULL;
}

static addend_status* compute(const job* work, addend_results** out) {
  if (strcmp(work->verb, "call") == 0) return addend_call(work->context, work->op, work->arguments, out);
  if (strcmp(work->verb, "run") == 0) return addend_model_run(work->model, work->request, out);
  return addend_model_decompose(work->context, work->model, work->request, out);
}

/* ---- Verbs ----------------------------------------------------------------------------------------------------------
 */

static addend_status* hello(void) {
  const int64_t dims[] = {1};
  const float one = 1;
  addend_tensor *tensor = NULL, *moved = NULL;
  snprintf(device, sizeof(device), "%s", entry("device"));
  TRY(addend_check_libtorch());
  TRY(addend_set_num_threads((int32_t)integer_of(entry("threads"), 1)));
  TRY(addend_tensor_copy(&one, sizeof(one), ADDEND_FLOAT32, dims, 1, &tensor));
  own(ADDEND_HANDLE_TENSOR, tensor);
  TRY(addend_tensor_to(tensor, 0, device, &moved));
  own(ADDEND_HANDLE_TENSOR, moved);
  const int on_cpu = strcmp(device, "cpu") == 0;
  TRY(set("suite", "1"));
  TRY(set("language", "c"));
  TRY(set("library_version", addend_version()));
  TRY(set("abi_version", decimal(addend_abi_version())));
  TRY(set("libtorch_version", addend_libtorch_version()));
  TRY(set("device", device));
  TRY(set("devices", on_cpu ? "cpu" : text_of("cpu %s%s", device, "")));
  TRY(set("dtypes", "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128"));
  return set("features", "models attribution directions distributions limits programs shapley explain threads lifecycle share stop read operators");
}

static addend_status* add_explanation(const char* key, const addend_explanation* told) {
  const int64_t numc = addend_explanation_numc(told), five[] = {5};
  double* const contributions = memory(sizeof(double) * (size_t)numc);
  int64_t* const ranked = memory(sizeof(int64_t) * (size_t)numc);
  double numbers[5];
  for (int32_t k = 0; k < 5; ++k) numbers[k] = addend_explanation_number(told, k);
  for (int64_t k = 0; k < numc; ++k) {
    contributions[k] = addend_explanation_contribution(told, k);
    ranked[k] = addend_explanation_ranked(told, k);
    TRY(append(text_of("%s.%s", key, "names"), addend_explanation_name(told, k)));
  }
  TRY(set(text_of("%s.%s", key, "target"), addend_explanation_target(told)));
  addend_tensor* tensor = NULL;
  TRY(addend_tensor_copy(numbers, sizeof(numbers), ADDEND_FLOAT64, five, 1, &tensor));
  own(ADDEND_HANDLE_TENSOR, tensor);
  TRY(add_tensor(text_of("%s.%s", key, "numbers"), tensor));
  TRY(addend_tensor_copy(contributions, sizeof(double) * (size_t)numc, ADDEND_FLOAT64, &numc, 1, &tensor));
  own(ADDEND_HANDLE_TENSOR, tensor);
  TRY(add_tensor(text_of("%s.%s", key, "contributions"), tensor));
  TRY(addend_tensor_copy(ranked, sizeof(int64_t) * (size_t)numc, ADDEND_INT64, &numc, 1, &tensor));
  own(ADDEND_HANDLE_TENSOR, tensor);
  return add_tensor(text_of("%s.%s", key, "ranked"), tensor);
}

static addend_status* attribute(void) {
  job work;
  addend_attribution* attribution = NULL;
  TRY(prepare("attribute", &work));
  char* targets = list_of(entry("targets"));
  for (char* line; (line = cut(&targets, '\n')) != NULL;) TRY(addend_request_add_target(work.request, line));
  if (*entry("memory_limit") != '\0') TRY(addend_request_set_option(work.request, "memory", entry("memory_limit")));
  TRY(addend_model_attribute(work.context, work.model, work.request, &attribution));
  own(ADDEND_HANDLE_ATTRIBUTION, attribution);
  for (size_t k = 0; k < addend_attribution_num_targets(attribution); ++k) {
    addend_explanation* told = NULL;
    TRY(addend_attribution_explain(attribution, k, &told));
    own(ADDEND_HANDLE_EXPLANATION, told);
    TRY(add_explanation(text_of("attribution.%s%s", decimal((int64_t)k), ""), told));
  }
  return NULL;
}

static addend_status* execute(const char* verb) {
  job work;
  addend_results* results = NULL;
  num_compositions = 0;
  TRY(prepare(verb, &work));
  TRY(compute(&work, &results));
  own(ADDEND_HANDLE_RESULTS, results);
  TRY(add_results("r", results));
  if (*entry("echo") == '1') {
    for (size_t k = 0; k < num_compositions; ++k) {
      TRY(add_parts(compositions[k].key, compositions[k].composition, "components reference leftover"));
    }
  }
  if (strcmp(verb, "decompose") != 0) return NULL;
  char* keys = text_of("%s%s", "operators nodes worst_recovery_error worst_bracket failures absorbed ",
                       "absorbed_failures path_ruled stand_in_references unattributed");
  for (char* key; (key = cut(&keys, ' ')) != NULL;) {
    TRY(append("report", text_of("%s\t%s", key, digits_of(addend_results_report_number(results, key)))));
  }
  const char* note = NULL;
  for (size_t k = 0; (note = addend_results_note(results, k)) != NULL; ++k) TRY(append("notes", note));
  char* explain = list_of(entry("explain"));
  int64_t index = 0;
  for (char* line; (line = cut(&explain, '\n')) != NULL; ++index) {
    char* fields[2];
    cut_fields(line, fields, 2);
    addend_explanation* told = NULL;
    TRY(addend_results_explain(results, *fields[0] == '\0' ? NULL : fields[0], fields[1], &told));
    own(ADDEND_HANDLE_EXPLANATION, told);
    TRY(add_explanation(text_of("explanation.%s%s", decimal(index), ""), told));
  }
  return NULL;
}

static addend_status* shapley(void) {
  addend_composition* values = NULL;
  if (*entry("op") != '\0') {
    addend_arguments* arguments = NULL;
    TRY(make_arguments(&arguments));
    TRY(addend_call_shapley(entry("op"), arguments, &values));
  } else {
    addend_model* model = NULL;
    addend_request* made = NULL;
    TRY(load_model(&model));
    TRY(make_request(&made));
    TRY(addend_model_shapley(model, made, &values));
  }
  own(ADDEND_HANDLE_COMPOSITION, values);
  return add_composition("r0", "", values);
}

typedef struct {
  const job* work;
  addend_results* results;
  addend_status* status;
} one_thread;

static void* run_thread(void* payload) {
  one_thread* const own_part = payload;
  own_part->status = compute(own_part->work, &own_part->results);
  return NULL;
}

static addend_status* run_threads(void) {
  job work;
  pthread_t threads[MAX_THREADS];
  one_thread parts[MAX_THREADS];
  const int64_t count = integer_of(entry("count"), 1);
  TRY(prepare(entry("inner_verb"), &work));
  for (int64_t k = 0; k < count && k < MAX_THREADS; ++k) {
    parts[k].work = &work;
    parts[k].results = NULL;
    parts[k].status = NULL;
    if (pthread_create(&threads[k], NULL, run_thread, &parts[k]) != 0) abort();
  }
  addend_status* failed = NULL;
  for (int64_t k = 0; k < count && k < MAX_THREADS; ++k) {
    pthread_join(threads[k], NULL);
    if (parts[k].results != NULL) own(ADDEND_HANDLE_RESULTS, parts[k].results);
    if (failed == NULL) {
      failed = parts[k].status;
    } else {
      addend_status_release(parts[k].status);
    }
  }
  if (failed != NULL) return failed;
  for (int64_t k = 0; k < count && k < MAX_THREADS; ++k) {
    TRY(add_results(text_of("t%sr%s", decimal(k), ""), parts[k].results));
  }
  return NULL;
}

typedef struct {
  const char* name;
  addend_composition* composition;
} object;

static void* release_object(void* payload) {
  addend_composition_release(payload);
  return NULL;
}

/* Pointers stay where they were: what is released is known to the library, which has to refuse it. */
static addend_status* step(object* objects, size_t* count, char** fields, int64_t before, const char** code) {
  object* x = NULL;
  for (size_t k = 0; k < *count; ++k) {
    if (strcmp(objects[k].name, fields[1]) == 0) x = &objects[k];
  }
  if (x == NULL && *count < 64) {
    x = &objects[(*count)++];
    x->name = fields[1];
    x->composition = NULL;
  }
  *code = "OK";
  if (strcmp(fields[0], "make") == 0) return make_composition(fields[1], &x->composition);
  if (strcmp(fields[0], "read") == 0) {
    addend_tensor* tensor = NULL;
    TRY(addend_composition_part(x->composition, ADDEND_COMPONENTS, &tensor));
    addend_tensor_release(tensor);
  } else if (strcmp(fields[0], "release") == 0) {
    addend_composition_release(x->composition);
  } else if (strcmp(fields[0], "release_elsewhere") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, release_object, x->composition) != 0) abort();
    pthread_join(thread, NULL);
  } else if (strcmp(fields[0], "live") == 0) {
    *code = decimal(addend_debug_live(ADDEND_HANDLE_ANY) - before);
  } else { /* call */
    addend_arguments* arguments = NULL;
    addend_results* results = NULL;
    addend_composition* argument = NULL;
    for (size_t k = 0; k < *count; ++k) {
      if (strcmp(objects[k].name, fields[3]) == 0) argument = objects[k].composition;
    }
    TRY(addend_arguments_create(&arguments));
    addend_status* status = addend_arguments_add_composition(arguments, NULL, argument);
    if (status == NULL) status = addend_call(NULL, fields[2], arguments, &results);
    if (status == NULL) status = addend_results_composition(results, 0, &x->composition);
    addend_results_release(results);
    addend_arguments_release(arguments);
    return status;
  }
  return NULL;
}

static addend_status* lifecycle(void) {
  object objects[64];
  size_t count = 0;
  char* steps = list_of(entry("steps"));
  /* The tensors that `make` passes on are not the library's business. */
  owned* const others = all_owned;
  forget_model();
  const int64_t before = addend_debug_live(ADDEND_HANDLE_ANY);
  for (char* line; (line = cut(&steps, '\n')) != NULL;) {
    char* fields[4];
    const char* code = NULL;
    cut_fields(line, fields, 4);
    all_owned = NULL;
    addend_status* const status = step(objects, &count, fields, before, &code);
    if (status != NULL) code = code_name(addend_status_code(status));
    addend_status_release(status);
    addend_status* const told = append("codes", code);
    release_all();
    all_owned = others;
    TRY(told);
  }
  return NULL;
}

static addend_status* memory_views(void) {
  int64_t dims[64];
  addend_tensor *data = NULL, *after = NULL, *shared = NULL, *copied = NULL;
  TRY(raw_tensor("data", &data));
  TRY(raw_tensor("after", &after));
  const size_t size = size_of(data, dims), num_dims = addend_tensor_num_dims(data);
  void* const bytes = memory(size);
  memcpy(bytes, addend_tensor_data(data), size);
  TRY(addend_tensor_wrap(bytes, size, ADDEND_FLOAT64, dims, num_dims, NULL, 0, NULL, NULL, &shared));
  own(ADDEND_HANDLE_TENSOR, shared);
  TRY(addend_tensor_copy(bytes, size, ADDEND_FLOAT64, dims, num_dims, &copied));
  own(ADDEND_HANDLE_TENSOR, copied);
  memcpy(bytes, addend_tensor_data(after), size);
  TRY(add_tensor("shared", shared));
  return add_tensor("copied", copied);
}

static addend_status* read_file(void) {
  int64_t dims[64];
  addend_tensor *bytes = NULL, *tensor = NULL;
  addend_tensor_file* file = NULL;
  TRY(raw_tensor("file", &bytes));
  TRY(addend_tensor_file_decode(addend_tensor_data(bytes), size_of(bytes, dims), "file", &file));
  own(ADDEND_HANDLE_TENSOR_FILE, file);
  for (size_t k = 0; k < addend_tensor_file_size(file); ++k) {
    const char* const name = addend_tensor_file_name(file, k);
    TRY(append("names", name));
    TRY(addend_tensor_file_tensor(file, name, &tensor));
    own(ADDEND_HANDLE_TENSOR, tensor);
    TRY(add_tensor(text_of("file.%s%s", name, ""), tensor));
  }
  return NULL;
}

static addend_status* operators(void) {
  size_t size = 0;
  for (size_t k = 0; k < addend_op_count(); ++k) size += strlen(addend_op_name(k)) + strlen(addend_op_kind(k)) + 2;
  char* const lines = memory(size);
  char* end = lines;
  for (size_t k = 0; k < addend_op_count(); ++k) {
    end += sprintf(end, "%s%s\t%s", k == 0 ? "" : "\n", addend_op_name(k), addend_op_kind(k));
  }
  return set("operators", lines);
}

static addend_status* dispatch(const char* verb) {
  if (strcmp(verb, "hello") == 0) return hello();
  if (strcmp(verb, "call") == 0 || strcmp(verb, "run") == 0 || strcmp(verb, "decompose") == 0) return execute(verb);
  if (strcmp(verb, "attribute") == 0) return attribute();
  if (strcmp(verb, "shapley") == 0) return shapley();
  if (strcmp(verb, "threads") == 0) return run_threads();
  if (strcmp(verb, "lifecycle") == 0) return lifecycle();
  if (strcmp(verb, "memory") == 0) return memory_views();
  if (strcmp(verb, "read") == 0) return read_file();
  if (strcmp(verb, "operators") == 0) return operators();
  if (strcmp(verb, "bye") == 0 || strcmp(verb, "stats") == 0) return NULL;
  TRY(set("message", text_of("no verb is called %s%s", verb, "")));
  return set("code", "PROTOCOL");
}

/* ---- Frames
 * ----------------------------------------------------------------------------------------------------------- */

static void must(addend_status* status) {
  if (status == NULL) return;
  fprintf(stderr, "testee: %s\n", addend_status_message(status));
  exit(1);
}

/* Makes the answer that there is so far one about an error. */
static void answer_error(addend_status* status) {
  addend_tensor_file_release(answer);
  must(addend_tensor_file_create(&answer));
  must(set("code", code_name(addend_status_code(status))));
  must(set("message", addend_status_message(status)));
  const char* const keys[] = {"op", "module_path"};
  for (int k = 0; k < 2; ++k) {
    const char* const value = addend_status_payload(status, keys[k]);
    if (value != NULL) must(append("payload", text_of("%s\t%s", keys[k], value)));
  }
  addend_status_release(status);
}

/* Whether it was the last one. */
static int respond(const void* blob, size_t size) {
  must(addend_tensor_file_decode(blob, size, "request", &request));
  must(addend_tensor_file_create(&answer));
  must(set("code", "OK"));
  const char* const verb = text_of("%s%s", entry("verb"), "");
  const char* const id = text_of("%s%s", entry("id"), "");
  const int last = strcmp(verb, "bye") == 0;
  addend_status* const status = dispatch(verb);
  if (status != NULL) answer_error(status);
  if (strcmp(verb, "stats") == 0) {
    forget_model();
    addend_tensor_file_release(request);
    addend_tensor_file_release(answer);
    request = NULL;
    const int64_t live = addend_debug_live(ADDEND_HANDLE_ANY);
    must(addend_tensor_file_create(&answer));
    must(set("code", "OK"));
    must(set("live", decimal(live)));
  }
  must(set("id", id));
  addend_string* encoded = NULL;
  must(addend_tensor_file_encode(answer, &encoded));
  const uint32_t length = (uint32_t)addend_string_size(encoded);
  const unsigned char frame[] = {(unsigned char)length, (unsigned char)(length >> 8), (unsigned char)(length >> 16),
                                 (unsigned char)(length >> 24)};
  fwrite(frame, 1, sizeof(frame), stdout);
  fwrite(addend_string_data(encoded), 1, length, stdout);
  fflush(stdout);
  addend_string_release(encoded);
  addend_tensor_file_release(answer);
  addend_tensor_file_release(request);
  release_all();
  return last;
}

int main(void) {
  /* Before LibTorch asks for it. */
  setenv("NVIDIA_TF32_OVERRIDE", "0", 0);
  unsigned char length[4];
  while (fread(length, 1, sizeof(length), stdin) == sizeof(length)) {
    const size_t size = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
    void* const blob = malloc(size + 1);
    if (blob == NULL || fread(blob, 1, size, stdin) != size) return 1;
    const int last = respond(blob, size);
    free(blob);
    if (last) return 0;
  }
  return 0;
}
