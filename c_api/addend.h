/* The C interface of Addend: explains neural networks by arithmetic that can be checked.
 *
 * C11, and as it stands C++17 and input of SWIG. The words are those of docs/glossary.md.
 *
 * Objects. Every noun is an opaque struct behind a pointer, a handle. Who makes one releases it: functions that give a
 * handle in an `out_` parameter give a new one, which is the caller's, unless the comment says "borrowed". A function
 * that is given a handle borrows it for the call; what it has to keep it shares. So handles may be released in any
 * order, each exactly once. addend_*_release(NULL) does nothing.
 *
 * Errors. A function that can fail returns a status: NULL is success, everything else is a handle with code, message
 * and data that the caller releases. On failure `out_` parameters stay untouched. Where it is not said otherwise, NULL
 * for a parameter, a handle that was released, a text that is no UTF-8, and numbers that do not fit each other give
 * ADDEND_INVALID_ARGUMENT, memory that runs out gives ADDEND_RESOURCE_EXHAUSTED, and comments name further codes only.
 * Functions without status answer 0, NULL or NaN to handles and positions that are not there. No exception leaves the
 * library, it prints nothing and it ends no process.
 *
 * Threads. There is no set-up call. Tensors, compositions, models, programs, contexts, results, explanations and
 * attributions never change and may be used by any number of threads at once; builders (context options, requests,
 * arguments, tensor files, rules) and traces belong to one thread at a time. Anything may be released on any thread.
 * Callbacks come on the thread that called; the library starts no thread beside those of LibTorch, and keeps nothing
 * per thread but an open trace.
 *
 * Text is UTF-8 and ends with NUL where no size is given. A returned `const char*` is borrowed: it lives as long as the
 * handle that it was asked from. Dimensions and indices are int64_t, counts and bytes size_t, flags int32_t 0 or 1.
 * Every function is there since ABI 1 unless its comment says otherwise.
 */
#ifndef ADDEND_C_API_ADDEND_H_
#define ADDEND_C_API_ADDEND_H_

#include <stddef.h>
#include <stdint.h>

#ifdef SWIG
#define ADDEND_API
#define ADDEND_NODISCARD
#define ADDEND_NOEXCEPT
#else
#if defined(__GNUC__)
#define ADDEND_API __attribute__((visibility("default")))
#define ADDEND_NODISCARD __attribute__((warn_unused_result))
#else
#define ADDEND_API
#define ADDEND_NODISCARD
#endif
#ifdef __cplusplus
#define ADDEND_NOEXCEPT noexcept
#else
#define ADDEND_NOEXCEPT
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The interface that this header describes; addend_abi_version() tells that of the library. */
#define ADDEND_ABI_VERSION 1

typedef struct addend_status addend_status;
typedef struct addend_string addend_string;
typedef struct addend_cancellation addend_cancellation;
typedef struct addend_context addend_context;
typedef struct addend_context_options addend_context_options;
typedef struct addend_tensor addend_tensor;
typedef struct addend_tensor_file addend_tensor_file;
typedef struct addend_composition addend_composition;
typedef struct addend_explanation addend_explanation;
typedef struct addend_model addend_model;
typedef struct addend_request addend_request;
typedef struct addend_results addend_results;
typedef struct addend_attribution addend_attribution;
typedef struct addend_program addend_program;
typedef struct addend_trace addend_trace;
typedef struct addend_frames addend_frames;
typedef struct addend_arguments addend_arguments;

/* Told once that `payload` is no longer needed, on whatever thread. */
typedef void (*addend_release_fn)(void* payload);

/* ---- Versions --------------------------------------------------------------------------------------------------- */

/* The newest and the oldest interface that the library serves: a client built for N runs if min <= N <= version. */
ADDEND_API int32_t addend_abi_version(void) ADDEND_NOEXCEPT;
ADDEND_API int32_t addend_abi_min_version(void) ADDEND_NOEXCEPT;
/* The release, as "0.1.0", and the LibTorch that it was built for, as "1.13.1". Borrowed, for ever. */
ADDEND_API const char* addend_version(void) ADDEND_NOEXCEPT;
ADDEND_API const char* addend_libtorch_version(void) ADDEND_NOEXCEPT;
/* Whether this process has loaded that LibTorch, and only one: ask before anything else. Functions that compute ask
 * themselves. errors: FAILED_PRECONDITION, which names both versions or both files. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_check_libtorch(void) ADDEND_NOEXCEPT;

/* ---- Status ----------------------------------------------------------------------------------------------------- */

/* The canonical codes of gRPC and Abseil. */
enum addend_code {
  ADDEND_OK = 0,
  ADDEND_CANCELLED = 1,
  ADDEND_UNKNOWN = 2,
  ADDEND_INVALID_ARGUMENT = 3,
  ADDEND_NOT_FOUND = 5,
  ADDEND_RESOURCE_EXHAUSTED = 8,
  ADDEND_FAILED_PRECONDITION = 9,
  ADDEND_OUT_OF_RANGE = 11,
  ADDEND_UNIMPLEMENTED = 12,
  ADDEND_INTERNAL = 13
};

/* One of addend_code; ADDEND_OK for NULL. */
ADDEND_API int32_t addend_status_code(const addend_status* status) ADDEND_NOEXCEPT;
/* One line that says what to do; "" for NULL. Borrowed. */
ADDEND_API const char* addend_status_message(const addend_status* status) ADDEND_NOEXCEPT;
/* Where in C++ it happened; "" unless the context asked for it. Borrowed. */
ADDEND_API const char* addend_status_detail(const addend_status* status) ADDEND_NOEXCEPT;
/* What the message says, as data: "op", "op_index", "module_path", "function", "file", "line", "parameters" of the
 * operator to blame, "callback" (the number that a callback returned). NULL where there is nothing. Borrowed. */
ADDEND_API const char* addend_status_payload(const addend_status* status, const char* key) ADDEND_NOEXCEPT;
ADDEND_API void addend_status_release(addend_status* status) ADDEND_NOEXCEPT;

/* ---- Text that was computed ------------------------------------------------------------------------------------- */

/* The bytes, which may hold NUL; one more NUL follows them. Borrowed. */
ADDEND_API const char* addend_string_data(const addend_string* text) ADDEND_NOEXCEPT;
ADDEND_API size_t addend_string_size(const addend_string* text) ADDEND_NOEXCEPT;
ADDEND_API void addend_string_release(addend_string* text) ADDEND_NOEXCEPT;

/* ---- The process ------------------------------------------------------------------------------------------------ */

/* How many threads LibTorch computes with, here and in everything else of this process. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_set_num_threads(int32_t num_threads) ADDEND_NOEXCEPT;

enum addend_handle_kind {
  ADDEND_HANDLE_ANY = 0,
  ADDEND_HANDLE_STATUS = 1,
  ADDEND_HANDLE_STRING = 2,
  ADDEND_HANDLE_CANCELLATION = 3,
  ADDEND_HANDLE_CONTEXT = 4,
  ADDEND_HANDLE_CONTEXT_OPTIONS = 5,
  ADDEND_HANDLE_TENSOR = 6,
  ADDEND_HANDLE_TENSOR_FILE = 7,
  ADDEND_HANDLE_COMPOSITION = 8,
  ADDEND_HANDLE_EXPLANATION = 9,
  ADDEND_HANDLE_MODEL = 10,
  ADDEND_HANDLE_REQUEST = 11,
  ADDEND_HANDLE_RESULTS = 12,
  ADDEND_HANDLE_TRACE = 13,
  ADDEND_HANDLE_ARGUMENTS = 14,
  ADDEND_HANDLE_RULES = 15,
  /* Not a handle: tensors that addend_tensor_to_dlpack gave and nobody has deleted yet. */
  ADDEND_HANDLE_DLPACK = 16,
  ADDEND_HANDLE_ATTRIBUTION = 17,
  ADDEND_HANDLE_PROGRAM = 18
};

/* How many handles of a kind (one of addend_handle_kind) are not released yet; -1 where there is no such kind. For
 * tests: a program that has released everything reads 0. */
ADDEND_API int64_t addend_debug_live(int32_t kind) ADDEND_NOEXCEPT;

/* ---- Cancellation ----------------------------------------------------------------------------------------------- */

/* A switch that ends runs from another thread; see addend_request_set_cancellation.
 * out: out_cancellation (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_cancellation_create(addend_cancellation** out_cancellation)
    ADDEND_NOEXCEPT;
/* Every run that holds it ends with ADDEND_CANCELLED before its next operator; so do runs that begin later. On any
 * thread at any time, also in a signal handler. */
ADDEND_API void addend_cancellation_cancel(addend_cancellation* cancellation) ADDEND_NOEXCEPT;
ADDEND_API void addend_cancellation_release(addend_cancellation* cancellation) ADDEND_NOEXCEPT;

/* ---- Context: a policy with what surrounds a run ---------------------------------------------------------------- */

enum addend_log_level { ADDEND_LOG_INFO = 1, ADDEND_LOG_WARNING = 2 };

/* Gets what a reader should know about a run: one line of text, borrowed. It must not throw. */
typedef void (*addend_log_fn)(void* payload, int32_t level, const char* message);
/* Gets how far a run is: stage "trace", "linearize" or "sweep", and `done` of `total` steps; a total of 0 means that
 * it is not known. 0 goes on; anything else ends the run with ADDEND_CANCELLED and that number as payload "callback"
 * (a binding keeps its own exception and rethrows it). It must not throw. */
typedef int32_t (*addend_progress_fn)(void* payload, const char* stage, int64_t done, int64_t total);

/* The defaults. out: out_options (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_options_create(addend_context_options** out_options)
    ADDEND_NOEXCEPT;
/* One choice of the policy, as text. Keys of the policy, with what they take, the default first:
 *   preset: auto, faithful, fast. How faithfully operators are linearized between the baseline and the input.
 *   segments: 1, or a whole number. How many pieces the line from baseline to input is cut into; what each gives is
 *     added up.
 *   nonlinearity: path, abs_affine, hybrid_affine(0.15), scaling, gradient, none. How elementwise functions of one
 *     tensor are linearized.
 *   bias: residual, abs, hybrid(0.15), hybrid_threshold(0.15), sign(0.4), sign_threshold(0.4), norm(inf). Who is paid
 *     the constant of an affine operator, its bias.
 *   freeze: preset (what the preset freezes), none, or some of attention, normalizer, denominator, gate joined by +.
 *     Which coefficients are used as plain factors, by their values; what their own parts bring is left over.
 *   content_first: attention+normalizer+denominator, none, or some of attention, normalizer, denominator, gate joined
 *     by +. Which coefficients move while the content that they multiply is the reference's, before the content moves;
 *     all other products share by half.
 *   conditions: value, baseline. Whose masks and indices the reference takes, where operators compute them from
 *     decomposed tensors.
 *   anchor: baseline, residual. What the reference of an operator is computed from.
 *   missing_rule: error, path, absorb. What happens at an operator that has no rule.
 *   on_failure: error, warn, absorb, ignore. What a tracing failure does.
 *   check: every_op, outputs, off. Where recovery and bracket are judged.
 *   tolerance: dtype (8 eps sqrt(numc * depth) of the dtype), or a number. How far recovery may be from the value,
 *     relative to the magnitudes that were summed.
 * "KEY@SELECTOR" sets it for an operator ("aten::softmax") or a module path with all that is inside, where a choice
 * says how an operator is linearized. A number in brackets may be another one. See docs/policies.md. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_options_set_policy(addend_context_options* options,
                                                                             const char* key,
                                                                             const char* value) ADDEND_NOEXCEPT;
/* NULL for `log` or `progress`: none, as at the beginning. `release` may be NULL; else it is called with the payload
 * when the callback is replaced, or the last that holds it is gone. If the call fails, the payload stays the
 * caller's. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_options_set_log(addend_context_options* options,
                                                                          addend_log_fn log, void* payload,
                                                                          addend_release_fn release) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_options_set_progress(
    addend_context_options* options, addend_progress_fn progress, void* payload,
    addend_release_fn release) ADDEND_NOEXCEPT;
/* 1: statuses tell in their detail where in C++ an error comes from. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_options_set_detail(addend_context_options* options,
                                                                             int32_t detail) ADDEND_NOEXCEPT;
ADDEND_API void addend_context_options_release(addend_context_options* options) ADDEND_NOEXCEPT;

/* The options as they are now; changing them later changes no context. Everywhere, a NULL context is that of the
 * defaults. in: options (borrowed). out: out_context (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_create(const addend_context_options* options,
                                                                 addend_context** out_context) ADDEND_NOEXCEPT;
/* Every choice of the policy as a JSON object of texts, overrides included. in: context (borrowed, may be NULL).
 * out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_policy(const addend_context* context,
                                                                 addend_string** out_json) ADDEND_NOEXCEPT;
ADDEND_API void addend_context_release(addend_context* context) ADDEND_NOEXCEPT;

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

/* DLPack's type code + 256 * bits; any other pair that LibTorch knows may be written in the same way. */
enum addend_dtype {
  ADDEND_UINT8 = 0x0801,
  ADDEND_INT8 = 0x0800,
  ADDEND_INT16 = 0x1000,
  ADDEND_INT32 = 0x2000,
  ADDEND_INT64 = 0x4000,
  ADDEND_FLOAT16 = 0x1002,
  ADDEND_FLOAT32 = 0x2002,
  ADDEND_FLOAT64 = 0x4002,
  ADDEND_BFLOAT16 = 0x1004,
  ADDEND_COMPLEX64 = 0x4005,
  ADDEND_COMPLEX128 = 0x8005,
  ADDEND_BOOL = 0x0806
};

/* Shares the memory of a DLManagedTensor (is_versioned 0) or DLManagedTensorVersioned (1) and takes it over: its
 * deleter is called when no handle needs it any more. On failure it stays the caller's. Memory on devices is taken as
 * ready on the current stream. in: managed (taken over). out: out_tensor (new). errors: UNIMPLEMENTED for devices and
 * types that LibTorch does not have. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_from_dlpack(void* managed, int32_t is_versioned,
                                                                     addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* A view of the tensor for other libraries: a DLManagedTensorVersioned where `max_major` is 1 or more, else the older
 * DLManagedTensor, which knows no bool (it is given as uint8). The caller calls its deleter once, on any thread.
 * out: out_managed (new), out_is_versioned. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_to_dlpack(const addend_tensor* tensor, uint32_t max_major,
                                                                   void** out_managed,
                                                                   int32_t* out_is_versioned) ADDEND_NOEXCEPT;
/* Shares `size` bytes of the caller's memory. `strides` count elements; NULL and 0: contiguous. `release` may be NULL,
 * then the memory has to outlive the process's use of it; else it is called with `payload` when no handle needs the
 * memory any more. On failure the memory stays the caller's. in: data (shared). out: out_tensor (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_wrap(void* data, size_t size, int32_t dtype,
                                                              const int64_t* dims, size_t num_dims,
                                                              const int64_t* strides, size_t num_strides,
                                                              addend_release_fn release, void* payload,
                                                              addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Copies `size` contiguous bytes. in: data (borrowed). out: out_tensor (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_copy(const void* data, size_t size, int32_t dtype,
                                                              const int64_t* dims, size_t num_dims,
                                                              addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* The tensor itself where it is contiguous and has that dtype (0: any) and device ("cpu", "cuda:0"; NULL: any), else a
 * contiguous copy. out: out_tensor (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_to(const addend_tensor* tensor, int32_t dtype,
                                                            const char* device,
                                                            addend_tensor** out_tensor) ADDEND_NOEXCEPT;
ADDEND_API size_t addend_tensor_num_dims(const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* -1 where there is no such dimension. */
ADDEND_API int64_t addend_tensor_size(const addend_tensor* tensor, size_t dim) ADDEND_NOEXCEPT;
ADDEND_API int32_t addend_tensor_dtype(const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* "cpu", "cuda:0". Borrowed. */
ADDEND_API const char* addend_tensor_device(const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* The elements of a contiguous tensor on the CPU, to be read; NULL for others. Borrowed. */
ADDEND_API const void* addend_tensor_data(const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* As PyTorch prints it. out: out_text (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_to_string(const addend_tensor* tensor,
                                                                   addend_string** out_text) ADDEND_NOEXCEPT;
ADDEND_API void addend_tensor_release(addend_tensor* tensor) ADDEND_NOEXCEPT;

/* ---- Tensors in files: .safetensors and .npy in, .safetensors out ----------------------------------------------- */

/* Reads a file, or its bytes (`name` stands for the path in messages). out: out_file (new). errors: NOT_FOUND. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_read(const char* path,
                                                                   addend_tensor_file** out_file) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_decode(const void* data, size_t size, const char* name,
                                                                     addend_tensor_file** out_file) ADDEND_NOEXCEPT;
ADDEND_API size_t addend_tensor_file_size(const addend_tensor_file* file) ADDEND_NOEXCEPT;
/* The name of a tensor; "" for that of a .npy file. Borrowed until the file changes. */
ADDEND_API const char* addend_tensor_file_name(const addend_tensor_file* file, size_t index) ADDEND_NOEXCEPT;
/* By name; NULL: the first one. out: out_tensor (new). errors: NOT_FOUND. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_tensor(const addend_tensor_file* file, const char* name,
                                                                     addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* What the file says under a key; NULL where it says nothing. Borrowed until the file changes. */
ADDEND_API const char* addend_tensor_file_metadata(const addend_tensor_file* file, const char* key) ADDEND_NOEXCEPT;
/* An empty file. out: out_file (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_create(addend_tensor_file** out_file) ADDEND_NOEXCEPT;
/* Replaces what has the same name. in: tensor (shared until it is written). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_add(addend_tensor_file* file, const char* name,
                                                                  const addend_tensor* tensor) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_set_metadata(addend_tensor_file* file, const char* key,
                                                                           const char* value) ADDEND_NOEXCEPT;
/* As .safetensors, all or nothing. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_write(const addend_tensor_file* file,
                                                                    const char* path) ADDEND_NOEXCEPT;
/* What addend_tensor_file_write would write. out: out_bytes (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_encode(const addend_tensor_file* file,
                                                                     addend_string** out_bytes) ADDEND_NOEXCEPT;
ADDEND_API void addend_tensor_file_release(addend_tensor_file* file) ADDEND_NOEXCEPT;

/* ---- Compositions: a tensor of shape S as components and a residual --------------------------------------------- */

enum addend_part {
  ADDEND_COMPONENTS = 0, /* [numc, *S] */
  ADDEND_REFERENCE = 1,
  ADDEND_LEFTOVER = 2,
  ADDEND_RESIDUAL = 3, /* reference + leftover */
  ADDEND_RECOVERY = 4, /* the sum of components and residual */
  ADDEND_VALUE = 5     /* what an operator or a model computed; else the recovery */
};

/* From components [numc, *S], reference and leftover (NULL: zeros). `in_graph` 1: autograd follows what is computed
 * from them, see addend_composition_grad. in: components, reference, leftover (shared).
 * out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_from_tensors(
    const addend_tensor* components, const addend_tensor* reference, const addend_tensor* leftover, int32_t in_graph,
    addend_composition** out_composition) ADDEND_NOEXCEPT;
/* One component for each position along `dims` of a value (negative ones count from the end; without any the whole
 * value is one component): component offset + i is value - baseline there and zero elsewhere. `baseline` NULL: zeros.
 * numc -1: no more than needed. out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_diagonal(
    const addend_tensor* value, const int64_t* dims, size_t num_dims, const addend_tensor* baseline, int64_t offset,
    int64_t numc, addend_composition** out_composition) ADDEND_NOEXCEPT;
/* One component for each label: integers of the value's shape or of its leading dimensions, -1 for no component.
 * `baseline` NULL: zeros. numc -1: the largest label + 1. out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_from_labels(
    const addend_tensor* value, const addend_tensor* labels, const addend_tensor* baseline, int64_t numc,
    addend_composition** out_composition) ADDEND_NOEXCEPT;
ADDEND_API int64_t addend_composition_numc(const addend_composition* composition) ADDEND_NOEXCEPT;
/* S; -1 where there is no such dimension. */
ADDEND_API size_t addend_composition_num_dims(const addend_composition* composition) ADDEND_NOEXCEPT;
ADDEND_API int64_t addend_composition_size(const addend_composition* composition, size_t dim) ADDEND_NOEXCEPT;
/* Of the value; the parts of half types are float32. */
ADDEND_API int32_t addend_composition_dtype(const addend_composition* composition) ADDEND_NOEXCEPT;
/* "cpu", "cuda:0". Borrowed. */
ADDEND_API const char* addend_composition_device(const addend_composition* composition) ADDEND_NOEXCEPT;
/* One of addend_part, sharing memory where it is stored. out: out_tensor (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_part(const addend_composition* composition, int32_t part,
                                                                   addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Component `index`, of shape S. out: out_tensor (new). errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_component(const addend_composition* composition,
                                                                        int64_t index,
                                                                        addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Some components, negative indices from the end, with the residual or with none. out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_select(
    const addend_composition* composition, const int64_t* indices, size_t num_indices, int32_t with_residual,
    addend_composition** out_composition) ADDEND_NOEXCEPT;
/* The gradient of sum(cotangent * composition), summed over components, reference and leftover, with respect to the
 * parts of `input`, which was made with in_graph 1 and led to `composition` by calls: a composition of the shape of
 * `input`. in: cotangent (borrowed), of the shape of `composition`. out: out_gradient (new). errors:
 * FAILED_PRECONDITION where no gradient connects the two. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_grad(const addend_composition* composition,
                                                                   const addend_composition* cotangent,
                                                                   const addend_composition* input,
                                                                   addend_composition** out_gradient) ADDEND_NOEXCEPT;
/* Explains one number of it: see addend_results_explain. Components are named by their position.
 * out: out_explanation (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_explain(
    const addend_composition* composition, const char* target, addend_explanation** out_explanation) ADDEND_NOEXCEPT;
/* "composition 0:\n<tensor>\n...residual:\n<tensor>". out: out_text (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_to_string(const addend_composition* composition,
                                                                        addend_string** out_text) ADDEND_NOEXCEPT;
ADDEND_API void addend_composition_release(addend_composition* composition) ADDEND_NOEXCEPT;

/* ---- Explanations: one number and what it is made of ------------------------------------------------------------ */

enum addend_number {
  ADDEND_NUMBER_VALUE = 0,
  ADDEND_NUMBER_REFERENCE = 1,
  ADDEND_NUMBER_LEFTOVER = 2,
  ADDEND_NUMBER_RECOVERY = 3,
  ADDEND_NUMBER_RECOVERY_ERROR = 4, /* recovery - value */
  ADDEND_NUMBER_CONDITIONING = 5,   /* (sum |c| + |leftover|) / |value - reference|: 1 where nothing cancels */
  ADDEND_NUMBER_MASS = 6            /* sum |c| + |leftover| + |reference|: what rounding is measured against */
};

/* One of addend_number; NaN where there is no such number. */
ADDEND_API double addend_explanation_number(const addend_explanation* explanation, int32_t number) ADDEND_NOEXCEPT;
/* "[0, 7]": the element that is explained; "[0, 7] minus [0, 2]" for a difference. Borrowed. */
ADDEND_API const char* addend_explanation_target(const addend_explanation* explanation) ADDEND_NOEXCEPT;
/* How many contributions there are: one for each component. */
ADDEND_API int64_t addend_explanation_numc(const addend_explanation* explanation) ADDEND_NOEXCEPT;
/* The contribution and the name of a component; NaN and NULL where there is none. Borrowed. */
ADDEND_API double addend_explanation_contribution(const addend_explanation* explanation,
                                                  int64_t component) ADDEND_NOEXCEPT;
ADDEND_API const char* addend_explanation_name(const addend_explanation* explanation,
                                               int64_t component) ADDEND_NOEXCEPT;
/* The component at a rank, the largest magnitude first (rank 0), equal ones in their order; -1 where there is none. */
ADDEND_API int64_t addend_explanation_ranked(const addend_explanation* explanation, int64_t rank) ADDEND_NOEXCEPT;
/* All of it as a JSON object, {"format": "addend.explanation", "version": 1, ...}, and as a page for a browser that needs
 * nothing else. docs/schemas has the schema of this and of every other document. out: out_json, out_html (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_json(const addend_explanation* explanation,
                                                                   addend_string** out_json) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_html(const addend_explanation* explanation,
                                                                   addend_string** out_html) ADDEND_NOEXCEPT;
/* An explanation from what addend_explanation_json gave: the same numbers, names, text and page. out: out_explanation
 * (new). errors: INVALID_ARGUMENT for another text. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_read(
    const char* json, addend_explanation** out_explanation) ADDEND_NOEXCEPT;
ADDEND_API void addend_explanation_release(addend_explanation* explanation) ADDEND_NOEXCEPT;

/* ---- Requests: what a model is asked ---------------------------------------------------------------------------- */

/* Nothing yet. out: out_request (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_create(addend_request** out_request) ADDEND_NOEXCEPT;
/* The next input, plain so far: it has no components. The functions below say more about the input that was added
 * last. `name`: the argument of the model that it is for; NULL: the next one in order. in: value (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_input(addend_request* request, const char* name,
                                                                    const addend_tensor* value) ADDEND_NOEXCEPT;
/* The next input is no argument of the model but a floating-point tensor inside it (heads of an attention, neurons,
 * experts), told as in addend_request_add_probe: components and baseline begin there, and what the model computes
 * before is the same for all of them. The functions below say more about it as about any input: it is split along
 * dimensions or by labels, and these and the baseline are those of the tensor, whose shape shows when the model runs.
 * The arguments of the model, added before or behind, stay plain. It is called by its selector, and what its elements
 * give (addend_attribution_results) has its shape. Takes one more run of the model. Looked at by addend_model_decompose
 * and addend_model_attribute; traces have the model run twice for it, see addend_trace_again; addend_model_shapley
 * refuses it, the others take the arguments alone. errors, beside those here, of the run: INVALID_ARGUMENT where
 * nothing inside is called so, where the tensor is what the model is given, where it is split otherwise or not at all,
 * where an argument is split too, and where dimensions, labels or baseline do not fit it; FAILED_PRECONDITION where it
 * depends on another one that is split. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_inside(addend_request* request,
                                                                     const char* selector) ADDEND_NOEXCEPT;
/* One component for each position along some dimensions; negative ones count from the end. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_split_dims(addend_request* request, const int64_t* dims,
                                                                     size_t num_dims) ADDEND_NOEXCEPT;
/* One component for each label; see addend_composition_from_labels. The only split for ids of tokens beside that along
 * dimensions. in: labels (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_split_labels(addend_request* request,
                                                                       const addend_tensor* labels) ADDEND_NOEXCEPT;
/* Components [numc, *shape] as given; the rest of the input is its reference. in: parts (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_split_parts(addend_request* request,
                                                                      const addend_tensor* parts) ADDEND_NOEXCEPT;
/* What means "nothing": a tensor that broadcasts to the input, or one number (for ids: a token). Zero unless given.
 * in: baseline (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_baseline(addend_request* request,
                                                                       const addend_tensor* baseline) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_baseline_number(addend_request* request,
                                                                              double baseline) ADDEND_NOEXCEPT;
/* The same by a word, for floating-point inputs:
 *   "mean:FILE", "median:FILE"   of the rows (the first dimension) of the tensor in a .npy or .safetensors file,
 *                                "FILE#NAME" where it holds several and none is called "baseline" or "input"
 *   "buffer:NAME"                a tensor that the model holds, such as the running mean of a batch normalization
 *                                of the input; also for ids
 *   "mean"                       each channel's mean over height and width, the last two dimensions of an image
 *   "blur", "blur:SIGMA"         the image under a Gaussian of SIGMA pixels, or of a twentieth of its longer side
 * The run, in which the word is looked up, says what does not fit: INVALID_ARGUMENT, or NOT_FOUND for a file. errors:
 * INVALID_ARGUMENT for another word. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_baseline_word(addend_request* request,
                                                                            const char* word) ADDEND_NOEXCEPT;
/* Where the input's components begin on the axis that all inputs share; -1, as at the beginning: right behind those of
 * the inputs before it. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_first_component(addend_request* request,
                                                                              int64_t first) ADDEND_NOEXCEPT;
/* The name of the input's next component; those without name are called by their position. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_name(addend_request* request,
                                                                   const char* name) ADDEND_NOEXCEPT;
/* An inner tensor whose composition is wanted: "layers.0.attention" (a module), "#28" (an operator by its number),
 * "aten::gelu" or "aten::gelu:2" (an operator by its name), "logits" (what a final softmax reads). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_probe(addend_request* request,
                                                                    const char* selector) ADDEND_NOEXCEPT;
/* One of the model's results that is decomposed, "output" or "output.1"; the others are left out. Without any, all are.
 * Looked at by addend_model_decompose; traces decompose what addend_trace_add_output names. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_output(addend_request* request,
                                                                     const char* name) ADDEND_NOEXCEPT;
/* A parameter or buffer of a live model, so that reports can name operators by what they read. in: tensor (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_parameter(addend_request* request, const char* name,
                                                                        const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* The same for a buffer: one that is not learned. in: tensor (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_buffer(addend_request* request, const char* name,
                                                                     const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* One more number for addend_model_attribute to explain: a target as addend_results_explain takes it, of the tensor
 * that addend_request_set_explained names. Without any it is "top1". */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_target(addend_request* request,
                                                                     const char* target) ADDEND_NOEXCEPT;
/* What the targets are elements of: "output.1", or an inner tensor as in addend_request_add_probe. NULL, as at the
 * beginning: the model's first output. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_explained(addend_request* request,
                                                                        const char* selector) ADDEND_NOEXCEPT;
/* 1: the first dimension of every split input and of the explained tensor counts examples, and each has a target of its
 * own in its row, whose index leaves out that dimension: one target for each example, or one for all. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_each_example(addend_request* request,
                                                                           int32_t each_example) ADDEND_NOEXCEPT;
/* 1: addend_model_attribute also finds what passes through every operator. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_operators(addend_request* request,
                                                                        int32_t operators) ADDEND_NOEXCEPT;
/* The inputs that are added from here on are a further example of what the model takes: other sizes to learn from, for
 * addend_model_record, or other values to try, for addend_model_check_trace. Nothing else takes several.
 * errors: FAILED_PRECONDITION where the example before it has no input yet. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_next_example(addend_request* request) ADDEND_NOEXCEPT;
/* How the inputs of the example, which are tensors, make up the arguments of a model that takes tuples, lists,
 * dictionaries or plain values. structure: JSON, a list of the arguments in the order of the model's, or an object of
 * them by name, each one of
 *   {"tensor": 0}                            an input by its number, counted from 0 in the order of adding
 *   null, true, 3, 3.0, "text"               a plain value; 3 is an integer, 3.0 is not
 *   {"float": "nan"}                         or "inf", "-inf"
 *   {"tuple": [...]}, {"list": [...]}        of any of these; a list of nothing says what it would hold, "type":
 *                                            "Tensor", "int", "float", "bool" or "str"
 *   {"dict": {"key": ...}}                   with the "type" of its values where it is empty
 * Every input is used. Names of inputs are then for results only, and each is split as ever: its components move
 * through the model like those of any other input. NULL, as at the beginning: every input is an argument. Looked at by
 * all functions of models and programs that take a request, and by addend_trace_record; these give what does not fit
 * as INVALID_ARGUMENT. errors: INVALID_ARGUMENT for text that is none of the above. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_structure(addend_request* request,
                                                                        const char* structure) ADDEND_NOEXCEPT;
/* 1: every operator is checked, not only those that results depend on. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_everything(addend_request* request,
                                                                         int32_t everything) ADDEND_NOEXCEPT;
/* What the parts of results and all rows on their way there may take together in addend_model_decompose, in bytes,
 * beside the model and its recorded run: components then move through the model in groups, which run it once all the
 * same and give the same to rounding. 0, as at the beginning: any amount. errors: INVALID_ARGUMENT for a negative
 * number; where not even one component fits, the run says so. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_memory(addend_request* request,
                                                                     int64_t bytes) ADDEND_NOEXCEPT;
/* Which way addend_model_decompose finds components: "forward", every component through every operator; "backward",
 * from the numbers that are asked for, while the sum of all components goes forward and is checked after every
 * operator; or "auto", as at the beginning: backward where there are few numbers and much to save, and not every
 * operator is to be checked (addend_request_set_everything). The same to rounding. errors: INVALID_ARGUMENT for another
 * text; under a policy that looks at all components together a run "backward" ends with FAILED_PRECONDITION. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_direction(addend_request* request,
                                                                        const char* direction) ADDEND_NOEXCEPT;
/* 1: the model keeps what it gives on the baselines, and takes it from there in later runs of such requests where the
 * baselines and everything else that it depends on are the same. What differs is computed as ever. Writes to
 * parameters are noticed where LibTorch counts them, which writes behind its operators escape: see
 * addend_model_forget_references. Looked at by addend_model_decompose and addend_model_attribute. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_keep_references(addend_request* request,
                                                                              int32_t keep) ADDEND_NOEXCEPT;
/* 1: the plain model also runs on the baseline, and the report says how far that is from the reference
 * ("reference_error"). Looked at by addend_model_decompose and addend_model_attribute, which give INVALID_ARGUMENT
 * where a split starts inside the model; traces refuse it, since their owner runs the model: see addend_trace_baseline.
 */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_verify_reference(addend_request* request,
                                                                               int32_t verify) ADDEND_NOEXCEPT;
/* Who may end runs of this request. NULL: nobody. in: cancellation (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_cancellation(
    addend_request* request, const addend_cancellation* cancellation) ADDEND_NOEXCEPT;
ADDEND_API void addend_request_release(addend_request* request) ADDEND_NOEXCEPT;

/* ---- Models ----------------------------------------------------------------------------------------------------- */

/* A TorchScript file, or its bytes, on the CPU and in evaluation mode. It is a program: load only what you trust.
 * dtype: converts parameters and floating-point buffers; 0: as they are. out: out_model (new). errors: NOT_FOUND,
 * UNIMPLEMENTED where the file holds compiled operations that tracing cannot see. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_load(const char* path, int32_t dtype,
                                                             addend_model** out_model) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_load_bytes(const void* data, size_t size, int32_t dtype,
                                                                   addend_model** out_model) ADDEND_NOEXCEPT;
/* A copy of a model from a TorchScript file whose parameters, buffers and constants are on another device, "cuda:0", or
 * of another dtype; NULL and 0: as they are. Its inputs have to be there too. out: out_copy (new). errors:
 * UNIMPLEMENTED for other models. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_to(const addend_model* model, int32_t dtype, const char* device,
                                                           addend_model** out_copy) ADDEND_NOEXCEPT;
/* The same model by other methods than forward(), named with commas between them: "encode,decode". They run one after
 * the other, each on as many of the inputs as it has arguments; several give what each gives, one behind the other, and
 * their arguments are called "encode.x". in: model (shared). out: out_model (new). errors: NOT_FOUND for a method that
 * the model does not have, UNIMPLEMENTED for models that are not from a TorchScript file. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_methods(const addend_model* model, const char* methods,
                                                                addend_model** out_model) ADDEND_NOEXCEPT;
/* The arguments that the model takes, in order. NULL where there is none. Borrowed. */
ADDEND_API size_t addend_model_num_inputs(const addend_model* model) ADDEND_NOEXCEPT;
ADDEND_API const char* addend_model_input_name(const addend_model* model, size_t index) ADDEND_NOEXCEPT;
/* The plain model: its tensors, without compositions; splits and probes are not looked at. in: model, request
 * (borrowed). out: out_results (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_run(const addend_model* model, const addend_request* request,
                                                            addend_results** out_results) ADDEND_NOEXCEPT;
/* The main job: the compositions of what the model computes, then those of the probes, and the report. in: context
 * (borrowed, may be NULL), model, request (borrowed). out: out_results (new). errors: UNIMPLEMENTED with the position
 * of an operator that no rule covers, INTERNAL with that of a tracing failure, CANCELLED. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_decompose(const addend_context* context,
                                                                  const addend_model* model,
                                                                  const addend_request* request,
                                                                  addend_results** out_results) ADDEND_NOEXCEPT;
/* The exact Shapley values of the components for the model's first output: at most 16 components, 2^numc runs. What
 * the other is compared with. in: model, request (borrowed). out: out_composition (new). errors: CANCELLED. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_shapley(const addend_model* model,
                                                                const addend_request* request,
                                                                addend_composition** out_composition) ADDEND_NOEXCEPT;
/* The same question asked the other way round: what did each element of the inputs give to these numbers? One sweep
 * back, at the same price for ten components and for ten thousand. Takes the targets of the request; its probes are not
 * looked at. in: context (borrowed, may be NULL), model, request (borrowed). out: out_attribution (new). errors: as
 * addend_model_decompose; FAILED_PRECONDITION for choices of the policy that look at all components together. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_attribute(const addend_context* context,
                                                                  const addend_model* model,
                                                                  const addend_request* request,
                                                                  addend_attribution** out_attribution) ADDEND_NOEXCEPT;
/* Runs the model once and keeps what it did; splits and probes are not looked at. Further examples (see
 * addend_request_next_example), of other sizes, teach the program which numbers follow which dimension of the inputs,
 * so that it runs for other sizes too; without any it runs for the sizes of the recording. in: model, request
 * (borrowed). out: out_program (new). errors: UNIMPLEMENTED with the position of what cannot be recorded,
 * FAILED_PRECONDITION with that of a number that follows no dimension. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_record(const addend_model* model, const addend_request* request,
                                                               addend_program** out_program) ADDEND_NOEXCEPT;
/* Whether a recording is the model: records twice, replays, and tries every further example of the request. options:
 * {"tolerance": 1e-5, "strict": true, "out_of_place": false}, a JSON object as addend_program_code_text describes it;
 * out_of_place also replays without writes in place, which finds aliases that nobody sees. out: out_json (new),
 * {"format": "addend.check_trace", "version": 1, "ok", "worst_error", "findings": [{"kind", "error", "input_set",
 * "position", "message"}]}. Fields of a trace check:
 *   ok: Whether no finding is an error.
 *   worst_error: The largest difference between a replay and the model, relative to the model's result.
 *   findings: Errors, and what is worth knowing, in the order in which they were found.
 * Fields of a finding:
 *   kind: What it is: "graph" (another run calls other operators, or with other arguments), "value" (results differ
 *     by more than the tolerance), "guard" (a number that left the tensors is another one for a further input),
 *     "constant" (a constant of the program is another one for a further input or in a second run), "random" (an
 *     operator draws random numbers), "training" (an operator runs in training mode), "state" (the model overwrites
 *     its own parameters or buffers) or "output" (the output holds lists or dictionaries, which the caller could
 *     change).
 *   error: Whether the program gives something else than the model; else it is worth knowing.
 *   input_set: Which further example showed it; nothing where the inputs of the recording did.
 *   position: The operator to blame, with its place; empty where none is.
 *   message: What was found, in one line. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_check_trace(const addend_model* model,
                                                                    const addend_request* request, const char* options,
                                                                    addend_string** out_json) ADDEND_NOEXCEPT;
/* What a run with the inputs of the request lacks, all of it, before anything runs: of a TorchScript model by reading
 * its source, branches that are not taken included; of a program by what it recorded. in: context (whose rules count;
 * borrowed, may be NULL), model, request (borrowed). out: out_json (new), {"format": "addend.requirements", "version":
 * 1, "unmet": [{"kind", "error", "position", "message"}]}. Fields of a requirement:
 *   kind: What it is about: "input" (number, kind, shape, dtype or device of what is given), "mode" (something runs
 *     as in training) or "operator" (it has no rule).
 *   error: Whether the run would fail; else it is worth knowing.
 *   position: The first operator concerned, with its place; empty for inputs.
 *   message: What is missing, in one line. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_requirements(const addend_context* context,
                                                                     const addend_model* model,
                                                                     const addend_request* request,
                                                                     addend_string** out_json) ADDEND_NOEXCEPT;
/* Forgets what was kept for addend_request_set_keep_references: to free the memory, or after writes to parameters that
 * no operator made. Runs that go on are not disturbed. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_forget_references(const addend_model* model) ADDEND_NOEXCEPT;
ADDEND_API void addend_model_release(addend_model* model) ADDEND_NOEXCEPT;

/* ---- Results: what a run or a call gives ------------------------------------------------------------------------ */

enum addend_result_kind {
  ADDEND_RESULT_NONE = 0,
  ADDEND_RESULT_COMPOSITION = 1,
  ADDEND_RESULT_TENSOR = 2, /* integers, bools, and everything where no composition was given */
  ADDEND_RESULT_NUMBER = 3
};

/* How many there are: of a model its outputs (integers and bools stay tensors), then the probes. */
ADDEND_API size_t addend_results_size(const addend_results* results) ADDEND_NOEXCEPT;
/* One of addend_result_kind. */
ADDEND_API int32_t addend_results_kind(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* "output", "output.1", the probe's selector, or what a trace was told; NULL where there is none. Borrowed. */
ADDEND_API const char* addend_results_name(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* out: out_composition (new). errors: OUT_OF_RANGE; INVALID_ARGUMENT where the result is of another kind. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_composition(
    const addend_results* results, size_t index, addend_composition** out_composition) ADDEND_NOEXCEPT;
/* The tensor, or the value of the composition. out: out_tensor (new). errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_tensor(const addend_results* results, size_t index,
                                                                 addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* out: out_number. errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_number(const addend_results* results, size_t index,
                                                                 double* out_number) ADDEND_NOEXCEPT;
/* Explains one number of a composition among the results. `name`: which, NULL for the first. `target`: "top1" (the
 * largest element), "2" or "0,2" (an element), "2-7" or "0,2-0,7" (the first minus the second).
 * out: out_explanation (new). errors: NOT_FOUND. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_explain(const addend_results* results, const char* name,
                                                                  const char* target,
                                                                  addend_explanation** out_explanation) ADDEND_NOEXCEPT;
/* One number of the report; NaN where there is no such number. Numbers of the report:
 *   operators: How many operators were recorded.
 *   nodes: How many operators components passed through.
 *   worst_recovery_error: The largest difference between the sum of an operator's parts and its value, over the
 *     largest magnitude there, of all operators that were checked: some roundings of the dtype where all is well.
 *   worst_bracket: The largest leftover that an operator made whose rule claims to leave nothing, over the largest
 *     magnitude there: some roundings of the dtype where all is well.
 *   conditioning: The magnitudes of all parts over that of the move that they sum to, of the result where that is
 *     the largest; 1 where nothing cancels.
 *   leftover_share: The magnitude of the leftover over that of the move, of the result where that is the largest; 0
 *     where nothing is left over.
 *   reference_error: How far the reference is from what the model gives on the baseline, over the largest magnitude
 *     there; NaN unless the request asked to verify the reference.
 *   backward: Whether components were found backward, from the numbers that are asked for. 1 or 0.
 *   failures: How many tracing failures there were that the policy did not make an error.
 *   absorbed: How many operators without a rule became leftover.
 *   absorbed_failures: How many of the tracing failures became leftover.
 *   path_ruled: How many operators were integrated along the path.
 *   stand_in_references: How many references have a stand-in, because they are not finite.
 *   unattributed: How many calls used ids in a way in which no component follows.
 *   trace_seconds: How long running the model and its references took. In seconds.
 *   linearize_seconds: How long coefficients took. In seconds.
 *   sweep_seconds: How long moving the components took. In seconds. */
ADDEND_API double addend_results_report_number(const addend_results* results, const char* key) ADDEND_NOEXCEPT;
/* One text of the report, borrowed; NULL where there is no such text. Texts of the report:
 *   reference_is_model_on_baseline: Whether the reference is what the model computes on the baseline: "yes" (it is),
 *     "no" (it is not) or "unknown" (the model reads a number that is another on the baseline).
 *   reference_reason: Why the reference is not what the model computes on the baseline; empty where it is. */
ADDEND_API const char* addend_results_report_text(const addend_results* results, const char* key) ADDEND_NOEXCEPT;
/* What a reader has to know, one line each; NULL behind the last one. Borrowed. */
ADDEND_API const char* addend_results_note(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* The report as a JSON object, {"format": "addend.report", "version": 1, ...}: policy, counts, errors, notes, tracing
 * failures, and every check, worst first. out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_report(const addend_results* results,
                                                                 addend_string** out_json) ADDEND_NOEXCEPT;
ADDEND_API void addend_results_release(addend_results* results) ADDEND_NOEXCEPT;

/* ---- Attributions: numbers, and what each element of the inputs gave to them ---------------------------------------
 */

/* How many numbers are explained: the targets of the request, or one for each example. */
ADDEND_API size_t addend_attribution_num_targets(const addend_attribution* attribution) ADDEND_NOEXCEPT;
/* One of them by component, as addend_results_explain would have it. Its leftover is what integrated gradients call the
 * convergence delta, with the other sign. out: out_explanation (new). errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_attribution_explain(
    const addend_attribution* attribution, size_t target, addend_explanation** out_explanation) ADDEND_NOEXCEPT;
/* The explained tensor, then for each input of the model what its elements give, by the input's name: [targets, *S], or
 * [*S] where each example has a target (for ids one number each); ADDEND_RESULT_NONE for plain inputs. The report is
 * that of the run. out: out_results (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_attribution_results(const addend_attribution* attribution,
                                                                      addend_results** out_results) ADDEND_NOEXCEPT;
/* All targets in one, as addend_explanation_json and addend_explanation_html have them. Where the request asked for
 * operators, the JSON has "operators": [{"index", "operator", "output", "call", "program_call", "module_path", "passed",
 * "leftover"}], numbers by target (one for all examples together). out: out_json, out_html (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_attribution_json(const addend_attribution* attribution,
                                                                   addend_string** out_json) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_attribution_html(const addend_attribution* attribution,
                                                                   addend_string** out_html) ADDEND_NOEXCEPT;
ADDEND_API void addend_attribution_release(addend_attribution* attribution) ADDEND_NOEXCEPT;

/* ---- Programs: what a model did, to be read, kept and run again ----------------------------------------------------
 */

/* A folder with program.json and weights.safetensors, made if there is none. errors: UNIMPLEMENTED, with the position,
 * for arguments that no file can hold. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_save(const addend_program* program,
                                                               const char* folder) ADDEND_NOEXCEPT;
/* Loading runs nothing, and refuses what is malformed or of another version. Running a program runs the operators that
 * the file names: run only what you trust. out: out_program (new). errors: NOT_FOUND. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_load(const char* folder,
                                                               addend_program** out_program) ADDEND_NOEXCEPT;
/* The program as a model, to be run, decomposed and attributed without the one that was recorded. in: program (shared).
 * out: out_model (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_model(const addend_program* program,
                                                                addend_model** out_model) ADDEND_NOEXCEPT;
/* Writes a TorchScript file, which LibTorch runs without this library: a module with a method forward() of the
 * program's inputs, with the parameters and buffers that were read, by their names. Each run of it begins with these as
 * they were when recorded. errors: FAILED_PRECONDITION, with the position, for a program with a number that depends on
 * elements and has left the tensors, which such a file could not compare; UNIMPLEMENTED for what TorchScript does not
 * have (plain values among the inputs, models without values); INVALID_ARGUMENT where the file cannot be written. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_export_torchscript(const addend_program* program,
                                                                             const char* path) ADDEND_NOEXCEPT;
/* The program with every floating-point tensor in the floating-point type `dtype`, and complex ones in the complex type
 * of it; integers and bools stay. It is replayed on inputs of these types, and stops at an operator that gives another
 * one. in: program (shared). out: out_copy (new). errors: INVALID_ARGUMENT where `dtype` is no floating-point type,
 * UNIMPLEMENTED where memory is seen as floating-point numbers and as something else. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_to(const addend_program* program, int32_t dtype,
                                                             addend_program** out_copy) ADDEND_NOEXCEPT;
/* As addend_model_requirements, of a replay. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_requirements(const addend_context* context,
                                                                       const addend_program* program,
                                                                       const addend_request* request,
                                                                       addend_string** out_json) ADDEND_NOEXCEPT;
/* Runs it on other inputs. options: {"values": [names of inner values that are wanted], "every_value": false, "guards":
 * true, "guard_tolerance": 0, "out_of_place": false}. out_of_place: every write goes into a copy of the memory, so that
 * inner values are as they were made. out: out_results (new), the outputs as addend_model_run gives them, then the
 * values by their names. errors: NOT_FOUND for a name that the program does not have; FAILED_PRECONDITION, with the
 * position, where a number that left the tensors is another one than in the recording (unless "guards" is false);
 * INVALID_ARGUMENT for inputs that are not like those of the recording. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_replay(const addend_program* program,
                                                                 const addend_request* request, const char* options,
                                                                 addend_results** out_results) ADDEND_NOEXCEPT;
/* How many operators were called. */
ADDEND_API size_t addend_program_num_operators(const addend_program* program) ADDEND_NOEXCEPT;
/* The tensors of the program: their names, which are unique, and what they are: "input", "parameter", "buffer",
 * "constant", "result" or "part". NULL where there is none. Borrowed. */
ADDEND_API size_t addend_program_num_values(const addend_program* program) ADDEND_NOEXCEPT;
ADDEND_API const char* addend_program_value_name(const addend_program* program, size_t index) ADDEND_NOEXCEPT;
ADDEND_API const char* addend_program_value_kind(const addend_program* program, size_t index) ADDEND_NOEXCEPT;
/* {"format": "addend.program_summary", "version": 1, "operators": 7, "inputs": [{"name", "structure"}], "output",
 * "values": [{"name", "kind", "dtype", "shape"}], "guards": [{"kind", "call", "value", "position"}], "free": [{"input",
 * "dim", "like"}]}: `free` has the dimensions of inputs that may have another size, with the one (a position in the
 * list, or null) whose size they share. out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_summary(const addend_program* program,
                                                                  addend_string** out_json) ADDEND_NOEXCEPT;
/* Its operators as text, each under the source lines that called it. options, here and elsewhere: a JSON object in
 * which every key may be left out, or NULL; unknown keys are refused. Here, with the defaults: {"succinct": true,
 * "color": false, "names": false, "marks": false, "include": [], "exclude": [LibTorch's Python package], "numbers":
 * []}. include, exclude: patterns for the files of lines, in which a star stands for anything. numbers: what is known
 * of the operators, [{"name": "time", "unit": "seconds", "values": [one for each operator, or null]}]; the unit is "",
 * "seconds" or "bytes". See docs/tracing.md. out: out_text (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_code_text(const addend_program* program, const char* options,
                                                                    addend_string** out_text) ADDEND_NOEXCEPT;
/* The same for programs. out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_code_json(const addend_program* program, const char* options,
                                                                    addend_string** out_json) ADDEND_NOEXCEPT;
/* Its graph: nodes in topological order and edges. options: {"numbers": []}. out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_graph_json(const addend_program* program, const char* options,
                                                                     addend_string** out_json) ADDEND_NOEXCEPT;
/* For Graphviz. options: {"sources": false, "modules": true}: parameters, buffers and constants as nodes, and modules
 * as boxes. out: out_dot (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_graph_dot(const addend_program* program, const char* options,
                                                                    addend_string** out_dot) ADDEND_NOEXCEPT;
/* A page for a browser that needs nothing else. options: {"title": "program", "numbers": []}. out: out_html (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_graph_html(const addend_program* program, const char* options,
                                                                     addend_string** out_html) ADDEND_NOEXCEPT;
ADDEND_API void addend_program_release(addend_program* program) ADDEND_NOEXCEPT;

/* ---- Traces: live models ---------------------------------------------------------------------------------------- */

/* From here to addend_trace_end every LibTorch operator that this thread calls is recorded, whoever calls it: a Python
 * model in this process, C++, or addend_call on plain tensors. Operators run as ever. The inputs of the request are the
 * live tensors, known by their memory: contiguous, the whole of their storage, each on memory of its own. The run may
 * write them; hand in copies where that matters. in: context (borrowed, may be NULL), request (borrowed). out:
 * out_trace (new). errors: FAILED_PRECONDITION where this thread is traced already. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_begin(const addend_context* context,
                                                              const addend_request* request,
                                                              addend_trace** out_trace) ADDEND_NOEXCEPT;
/* Where in the model the thread is now, for reports, probes and policy: "encoder.layers.3"; "" outside.
 * Thread: that of addend_trace_begin. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_set_module(addend_trace* trace,
                                                                   const char* module_path) ADDEND_NOEXCEPT;
/* A live tensor, known by its memory, whose composition is wanted. Thread: that of addend_trace_begin.
 * in: tensor (shared). errors: NOT_FOUND where no recorded operator has met that memory. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_add_output(addend_trace* trace, const char* name,
                                                                   const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Stops recording and decomposes the outputs, in order, then the probes. Fails with the first error of the recording
 * if there was one. Thread: that of addend_trace_begin. out: out_results (new). errors: as addend_model_decompose. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_end(addend_trace* trace,
                                                            addend_results** out_results) ADDEND_NOEXCEPT;
/* As addend_trace_begin, to end with addend_trace_end_attribution: takes the targets of the request, its probes are not
 * looked at. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_begin_attribution(const addend_context* context,
                                                                          const addend_request* request,
                                                                          addend_trace** out_trace) ADDEND_NOEXCEPT;
/* Stops recording and goes back from the targets, which are elements of the first output that was named, or of what
 * addend_request_set_explained says: an output by its name, or an inner tensor. Thread: that of
 * addend_trace_begin_attribution. out: out_attribution (new). errors: as addend_model_attribute. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_end_attribution(
    addend_trace* trace, addend_attribution** out_attribution) ADDEND_NOEXCEPT;
/* Where the request splits something inside the model: the model has run, so that it could be found, and its outputs
 * were named. From here on it runs once more, with the same numbers (random ones included); that run is the one which
 * is decomposed or attributed, and its outputs are to be named again. Thread: that of the beginning. errors:
 * INVALID_ARGUMENT where nothing inside is called so, FAILED_PRECONDITION where nothing inside is split. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_again(addend_trace* trace) ADDEND_NOEXCEPT;
/* A line that the notes of the report shall hold too: what the caller did to the model, say. Not for traces that become
 * programs. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_add_note(addend_trace* trace, const char* note) ADDEND_NOEXCEPT;
/* What the model would be given as the baseline of an input, by its number. Ends the recording, so that the caller may
 * run the model there and tell with addend_trace_add_on_baseline what it gave for outputs that are named already; the
 * trace is ended as ever. The random numbers and buffers of the recorded run are the caller's to put back. out:
 * out_baseline (new). errors: INVALID_ARGUMENT where there is no such input and where a split starts inside the model,
 * FAILED_PRECONDITION for traces that become programs. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_baseline(addend_trace* trace, size_t input,
                                                                 addend_tensor** out_baseline) ADDEND_NOEXCEPT;
/* in: tensor (copied). errors: NOT_FOUND where no output has that name. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_add_on_baseline(addend_trace* trace, const char* name,
                                                                        const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Asked at every operator outside TorchScript for the caller's own source lines, which it gives with addend_frames_add.
 * 0 goes on; anything else ends the recording with ADDEND_UNKNOWN and that number as payload "callback". It must not
 * throw. `frames` lives as long as the callback. */
typedef int32_t (*addend_frames_fn)(void* payload, addend_frames* frames);
/* The next source line, the outermost first. `line` counts from 1. `text` is the line without its indentation, of which
 * `length` bytes from `column` on are the expression that runs; NULL, 0 and -1 where they are not known. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_frames_add(addend_frames* frames, const char* file, int64_t line,
                                                             const char* function, const char* text, int64_t column,
                                                             int64_t length) ADDEND_NOEXCEPT;
/* Who gives the source lines of a trace that decomposes or attributes, so that notes tell the line of what derives
 * conditions, indices and numbers: asked at operators that read or give integers and bools alone. NULL: nobody, as at
 * the beginning. `release` as in addend_context_options_set_log. errors: FAILED_PRECONDITION for traces that become
 * programs, and on another thread. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_set_frames(addend_trace* trace, addend_frames_fn frames,
                                                                   void* payload,
                                                                   addend_release_fn release) ADDEND_NOEXCEPT;
/* As addend_trace_begin, to end with addend_trace_end_program: what the thread computes becomes a program. The inputs
 * of the request, whose splits are not looked at, become those of the program, its parameters are known by their names,
 * and tensors that come from elsewhere are constants. `frames` may be NULL, and `release` as in
 * addend_context_options_set_log. in: request (borrowed). out: out_trace (new). errors: FAILED_PRECONDITION where this
 * thread is traced already. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_record(const addend_request* request, addend_frames_fn frames,
                                                               void* payload, addend_release_fn release,
                                                               addend_trace** out_trace) ADDEND_NOEXCEPT;
/* Stops recording and gives the program, whose outputs are those of addend_trace_add_output, in order; integers and
 * bools may be among them. Thread: that of addend_trace_record. out: out_program (new). errors: NOT_FOUND where no
 * recorded operator has met the memory of an output, UNIMPLEMENTED with the position of what cannot be recorded. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_end_program(addend_trace* trace,
                                                                    addend_program** out_program) ADDEND_NOEXCEPT;
/* Runs a live model on these inputs and records that, from addend_trace_record to addend_trace_end_program, for
 * addend_live_record and addend_live_check_trace. example: which of the request's examples the inputs are, or which
 * they were cut from. in: inputs (borrowed while it runs; the run may write them). out: out_program, which is the
 * callback's and lives until the callback is called again or what called it has returned. 0 goes on; anything else ends
 * with ADDEND_UNKNOWN and that number as payload "callback". It must not throw. */
typedef int32_t (*addend_record_fn)(void* payload, size_t example, const addend_tensor* const* inputs,
                                    size_t num_inputs, addend_program** out_program);
/* As addend_model_record with several examples, for a live model. in: request (borrowed), whose inputs are tensors
 * without a structure. Thread: that of the model. out: out_program (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_live_record(const addend_request* request, addend_record_fn record,
                                                              void* payload,
                                                              addend_program** out_program) ADDEND_NOEXCEPT;
/* As addend_model_check_trace, for a live model; request as above. out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_live_check_trace(const addend_request* request, const char* options,
                                                                   addend_record_fn record, void* payload,
                                                                   addend_string** out_json) ADDEND_NOEXCEPT;
/* Also stops recording, if nothing has yet. */
ADDEND_API void addend_trace_release(addend_trace* trace) ADDEND_NOEXCEPT;

/* ---- Operators by name ------------------------------------------------------------------------------------------ */

/* Nothing yet. out: out_arguments (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_create(addend_arguments** out_arguments) ADDEND_NOEXCEPT;
/* Each adds one argument: the next in the order of the schema where `name` is NULL, else the one of that name. Between
 * addend_arguments_begin_list and _end_list each adds one element. in: composition, tensor (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_composition(
    addend_arguments* arguments, const char* name, const addend_composition* composition) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_tensor(addend_arguments* arguments, const char* name,
                                                                       const addend_tensor* tensor) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_none(addend_arguments* arguments,
                                                                     const char* name) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_i64(addend_arguments* arguments, const char* name,
                                                                    int64_t value) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_f64(addend_arguments* arguments, const char* name,
                                                                    double value) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_bool(addend_arguments* arguments, const char* name,
                                                                     int32_t value) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_str(addend_arguments* arguments, const char* name,
                                                                    const char* value) ADDEND_NOEXCEPT;
/* A dtype as in addend_dtype. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_dtype(addend_arguments* arguments, const char* name,
                                                                      int32_t dtype) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_i64s(addend_arguments* arguments, const char* name,
                                                                     const int64_t* values,
                                                                     size_t num_values) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_begin_list(addend_arguments* arguments,
                                                                       const char* name) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_end_list(addend_arguments* arguments) ADDEND_NOEXCEPT;
ADDEND_API void addend_arguments_release(addend_arguments* arguments) ADDEND_NOEXCEPT;

/* Calls an operator: "aten::add.Tensor", or "aten::add" where the arguments tell the overload. Compositions may stand
 * wherever the schema wants a tensor; without any the operator just runs. An operator that writes its argument
 * ("aten::add_") gives the new state as its result; what was passed stays as it was. While this thread records a trace,
 * a call on plain tensors is part of it. in: context (borrowed, may be NULL), arguments (borrowed). out: out_results
 * (new). errors: NOT_FOUND, UNIMPLEMENTED, INTERNAL on a tracing failure, FAILED_PRECONDITION for compositions while
 * this thread records a trace. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_call(const addend_context* context, const char* op,
                                                       const addend_arguments* arguments,
                                                       addend_results** out_results) ADDEND_NOEXCEPT;
/* The exact Shapley values of the components for the first result of such a call: at most 16, 2^numc runs.
 * out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_call_shapley(const char* op, const addend_arguments* arguments,
                                                               addend_composition** out_composition) ADDEND_NOEXCEPT;

/* The operators that have a rule, in the order of their names. */
ADDEND_API size_t addend_op_count(void) ADDEND_NOEXCEPT;
/* "aten::softmax", its kind ("path"), and the schemas that it serves in this LibTorch, one a line. NULL where there is
 * no such operator. Borrowed, for ever. */
ADDEND_API const char* addend_op_name(size_t index) ADDEND_NOEXCEPT;
ADDEND_API const char* addend_op_kind(size_t index) ADDEND_NOEXCEPT;
ADDEND_API const char* addend_op_schema(size_t index) ADDEND_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ADDEND_C_API_ADDEND_H_ */
