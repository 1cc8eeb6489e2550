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
 * Threads. There is no set-up call. Tensors, compositions, models, contexts, results and explanations never change and
 * may be used by any number of threads at once; builders (context options, requests, arguments, tensor files, rules)
 * and traces belong to one thread at a time. Anything may be released on any thread. Callbacks come on the thread that
 * called; the library starts no thread beside those of LibTorch, and keeps nothing per thread but an open trace.
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
typedef struct addend_trace addend_trace;
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
/* Place of the error in C++; "" unless the context asked for it. Borrowed. */
ADDEND_API const char* addend_status_detail(const addend_status* status) ADDEND_NOEXCEPT;
/* Data of the message: "op", "op_index", "module_path", "function", "file", "line", "parameters" of the operator to
 * blame, "callback" (the number that a callback returned). NULL where there is nothing. Borrowed. */
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
  ADDEND_HANDLE_DLPACK = 16
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
/* One choice of the policy, as text. Keys, with their values, the default first:
 *   preset           auto, faithful, fast
 *   segments         1, 2, ...
 *   nonlinearity     path, abs_affine, hybrid_affine, hybrid_affine(0.15), scaling, gradient, none
 *   bias             residual, abs, hybrid, hybrid_threshold, sign, sign_threshold, norm, and with a number in brackets
 *   freeze           what the preset freezes; none, or attention, normalizer, denominator, gate joined by "+"
 *   anchor           baseline, residual
 *   missing_rule     error, path, absorb
 *   on_failure       error, warn, absorb, ignore
 *   check            every_op, outputs, off
 *   tolerance        by dtype; a number
 * "KEY@SELECTOR" sets it for an operator ("aten::softmax") or a module path with all that is inside. See
 * docs/policies.md. */
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
/* Prints a tensor like PyTorch. out: out_text (new). */
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
/* Gives a tensor by name; NULL: the first one. out: out_tensor (new). errors: NOT_FOUND. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_tensor(const addend_tensor_file* file, const char* name,
                                                                     addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Metadata of the file under a key; NULL where there is none. Borrowed until the file changes. */
ADDEND_API const char* addend_tensor_file_metadata(const addend_tensor_file* file, const char* key) ADDEND_NOEXCEPT;
/* An empty file. out: out_file (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_create(addend_tensor_file** out_file) ADDEND_NOEXCEPT;
/* Replaces what has the same name. in: tensor (shared until it is written). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_add(addend_tensor_file* file, const char* name,
                                                                  const addend_tensor* tensor) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_set_metadata(addend_tensor_file* file, const char* key,
                                                                           const char* value) ADDEND_NOEXCEPT;
/* Writes the file as .safetensors, all or nothing. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_write(const addend_tensor_file* file,
                                                                    const char* path) ADDEND_NOEXCEPT;
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
/* Type of the value; the parts of half types are float32. */
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
  ADDEND_NUMBER_CONDITIONING = 5,   /* sum |c| / |sum c|: how much of the contributions cancels */
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
/* All of it as a JSON object, and as a page for a browser that needs nothing else. out: out_json, out_html (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_json(const addend_explanation* explanation,
                                                                   addend_string** out_json) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_html(const addend_explanation* explanation,
                                                                   addend_string** out_html) ADDEND_NOEXCEPT;
ADDEND_API void addend_explanation_release(addend_explanation* explanation) ADDEND_NOEXCEPT;

/* ---- Requests: what a model is asked ---------------------------------------------------------------------------- */

/* Makes an empty request. out: out_request (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_create(addend_request** out_request) ADDEND_NOEXCEPT;
/* The next input, plain so far: it has no components. The functions below say more about the input that was added
 * last. `name`: the argument of the model that it is for; NULL: the next one in order. in: value (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_input(addend_request* request, const char* name,
                                                                    const addend_tensor* value) ADDEND_NOEXCEPT;
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
/* The baseline: a tensor that broadcasts to the input, or one number (for ids: a token). Zero unless given.
 * in: baseline (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_baseline(addend_request* request,
                                                                       const addend_tensor* baseline) ADDEND_NOEXCEPT;
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_baseline_number(addend_request* request,
                                                                              double baseline) ADDEND_NOEXCEPT;
/* Sets the place of the input's components on the axis that all inputs share; -1, as at the beginning: right behind
 * those of the inputs before it. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_first_component(addend_request* request,
                                                                              int64_t first) ADDEND_NOEXCEPT;
/* The name of the input's next component; those without name are called by their position. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_name(addend_request* request,
                                                                   const char* name) ADDEND_NOEXCEPT;
/* An inner tensor whose composition is wanted: "layers.0.attention" (a module), "#28" (an operator by its number),
 * "aten::gelu" or "aten::gelu:2" (an operator by its name), "logits" (what a final softmax reads). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_probe(addend_request* request,
                                                                    const char* selector) ADDEND_NOEXCEPT;
/* A parameter or buffer of a live model, so that reports can name operators by what they read. in: tensor (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_parameter(addend_request* request, const char* name,
                                                                        const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* 1: every operator is checked, not only those that results depend on. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_everything(addend_request* request,
                                                                         int32_t everything) ADDEND_NOEXCEPT;
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
/* One number of the report: "operators", "nodes", "worst_recovery_error", "worst_bracket", "failures", "absorbed",
 * "absorbed_failures", "path_ruled", "stand_in_references", "unattributed", "trace_seconds", "linearize_seconds",
 * "sweep_seconds"; NaN where there is no such number. */
ADDEND_API double addend_results_report_number(const addend_results* results, const char* key) ADDEND_NOEXCEPT;
/* Notes that a reader has to know, one line each; NULL behind the last one. Borrowed. */
ADDEND_API const char* addend_results_note(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* The report as a JSON object: policy, counts, errors, notes, tracing failures, and every check, worst first.
 * out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_report(const addend_results* results,
                                                                 addend_string** out_json) ADDEND_NOEXCEPT;
ADDEND_API void addend_results_release(addend_results* results) ADDEND_NOEXCEPT;

/* ---- Traces: live models ---------------------------------------------------------------------------------------- */

/* From here to addend_trace_end every LibTorch operator that this thread calls is recorded, whoever calls it: a Python
 * model in this process, or C++. Operators run as ever. The inputs of the request are the live tensors, known by their
 * memory: contiguous, the whole of their storage, each on memory of its own. The run may write them; hand in copies
 * where that matters. in: context (borrowed, may be NULL), request (borrowed). out: out_trace (new). errors:
 * FAILED_PRECONDITION where this thread is traced already. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_begin(const addend_context* context,
                                                              const addend_request* request,
                                                              addend_trace** out_trace) ADDEND_NOEXCEPT;
/* Sets the module that the thread runs now, for reports, probes and policy: "encoder.layers.3"; "" outside.
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
/* Also stops recording, if nothing has yet. */
ADDEND_API void addend_trace_release(addend_trace* trace) ADDEND_NOEXCEPT;

/* ---- Operators by name ------------------------------------------------------------------------------------------ */

/* Makes an empty list of arguments. out: out_arguments (new). */
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
 * ("aten::add_") gives the new state as its result; the composition that was passed stays as it was. in: context
 * (borrowed, may be NULL), arguments (borrowed). out: out_results (new). errors: NOT_FOUND, UNIMPLEMENTED, INTERNAL on
 * a tracing failure. */
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
