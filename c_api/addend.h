/* The C interface of Addend, which explains neural networks by arithmetic that can be checked.
 *
 * The header is C11, and as it stands C++17 and input of SWIG. Its words are those of docs/glossary.md; docs/c_api.md
 * is the guide. The comment of a function says first what the function does, then, where there is something to say:
 *   in:      what it does with arguments: "borrowed" for the call, "shared" (kept alive as long as needed), "copied" or
 *            "taken over"; without such a word, borrowed
 *   out:     what it gives: "new" handles are the caller's to release
 *   errors:  codes beside those that every function may give (below)
 *   thread:  where it may be called, if not on any thread
 *
 * Handles. Every noun is an opaque struct behind a pointer, a handle. Functions that give a handle in an `out_`
 * parameter give a new one, which the caller releases, exactly once. A function that is given a handle borrows it for
 * the call; a handle shares what it needs of others, so handles may be released in any order. addend_*_release(NULL)
 * does nothing. A handle is a number and no address: one that was released is refused for ever, however many handles
 * come later, and so is any other value. (Where a pointer has 32 bits, a number comes back after four million handles.)
 *
 * Errors. A function that can fail returns a status: NULL is success; any other status is a handle with code, message
 * and data that the caller releases. On failure `out_` parameters stay untouched. Every function may give
 * ADDEND_INVALID_ARGUMENT (NULL for a parameter that does not allow it, a handle that was released, text that is not
 * UTF-8, numbers that do not fit each other) and ADDEND_RESOURCE_EXHAUSTED (memory that runs out). Functions without a
 * status return 0, NULL or NaN for handles and positions that do not exist. No exception leaves the library; it prints
 * nothing and ends no process.
 *
 * LibTorch. The library needs none to be loaded: at the first call that computes it opens the implementation, a file
 * beside it, for the LibTorch that the process has loaded, or for the one that the system finds. Where none fits, every
 * function that gives a status gives the error of addend_check_libtorch.
 *
 * Threads. There is no set-up call. Tensors, compositions, models, programs, contexts, results, explanations,
 * attributions and concepts never change, and any number of threads may use them at once. Logs of decisions may be
 * shared in the same way. Builders (context options, requests, arguments, tensor files, rules) and traces belong to one
 * thread at a time. Anything may be released on any thread. Callbacks are called on the thread that called the library.
 * The library starts no thread beside those of LibTorch, and keeps nothing per thread but an open trace.
 *
 * Callbacks may call any function, further runs included, with these exceptions: a callback must not end or release
 * what called it (its trace, its rule call); a trace that it begins ends before it returns; while a trace is open on
 * the thread, runs are refused there as everywhere; and functions that release a payload call nothing. What callbacks
 * compute is not part of the run that called them. A callback returns, and leaves in no other way: no exception of C++,
 * longjmp or panic of another language may pass through the library, which would keep the state of a run that never
 * ended. It keeps its error for itself and returns a number that is not 0; its caller raises the error again when the
 * status comes, which has that number as payload "callback".
 *
 * Text is UTF-8, and ends with NUL where no size is given. A returned `const char*` is borrowed: it lives as long as
 * the handle that it was asked from.
 *
 * Numbers. Sizes and strides of dimensions, numbers and positions of components, lines and columns of sources, limits
 * of memory, and everything that may be negative or stands in an array are int64_t. Sizes of memory that is passed,
 * numbers of entries, and the position of one entry in a list are size_t. Flags are int32_t, 0 or 1; constants are
 * int32_t too, and never get another number. Every function is there since ABI 1 unless its comment says otherwise.
 */
#ifndef ADDEND_C_API_ADDEND_H_
#define ADDEND_C_API_ADDEND_H_

#include <stddef.h>
#include <stdint.h>

#ifdef SWIG
#define ADDEND_API
#define ADDEND_CALL
#define ADDEND_NODISCARD
#define ADDEND_NOEXCEPT
#else
/* The release that this header is of; addend_version() returns the library's. */
#define ADDEND_VERSION "0.1.0"
#define ADDEND_VERSION_MAJOR 0
#define ADDEND_VERSION_MINOR 1
#define ADDEND_VERSION_PATCH 0
/* The calling convention of callbacks, and of functions too: C's own. ADDEND_BUILDING is for the library itself. */
#if defined(_WIN32)
#ifdef ADDEND_BUILDING
#define ADDEND_API __declspec(dllexport)
#else
#define ADDEND_API __declspec(dllimport)
#endif
#define ADDEND_CALL __cdecl
#elif defined(__GNUC__)
#define ADDEND_API __attribute__((visibility("default")))
#define ADDEND_CALL
#else
#define ADDEND_API
#define ADDEND_CALL
#endif
#if defined(__GNUC__)
#define ADDEND_NODISCARD __attribute__((warn_unused_result))
#else
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

/* The version of the interface that this header describes; addend_abi_version() returns the library's. */
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
typedef struct addend_concepts addend_concepts;
typedef struct addend_model addend_model;
typedef struct addend_request addend_request;
typedef struct addend_results addend_results;
typedef struct addend_attribution addend_attribution;
typedef struct addend_plan addend_plan;
typedef struct addend_program addend_program;
typedef struct addend_audit_log addend_audit_log;
typedef struct addend_job addend_job;
typedef struct addend_trace addend_trace;
typedef struct addend_frames addend_frames;
typedef struct addend_arguments addend_arguments;

/* Tells a callback's owner, once and on any thread, that `payload` is no longer needed. It must not throw. */
typedef void(ADDEND_CALL* addend_release_fn)(void* payload);

/* ---- Versions ---------------------------------------------------------------------------------------------------- */

/* Returns the newest version of the interface that the library serves. A client built for version N runs if
 * addend_abi_min_version() <= N <= addend_abi_version(). */
ADDEND_API int32_t addend_abi_version(void) ADDEND_NOEXCEPT;
/* Returns the oldest version of the interface that the library serves. */
ADDEND_API int32_t addend_abi_min_version(void) ADDEND_NOEXCEPT;
/* Returns the release of the library, such as "0.1.0". Borrowed, for ever. */
ADDEND_API const char* addend_version(void) ADDEND_NOEXCEPT;
/* Returns the version of LibTorch that the implementation was built for, such as "1.13.1"; "" where none can be opened.
 * Borrowed, for ever. */
ADDEND_API const char* addend_libtorch_version(void) ADDEND_NOEXCEPT;
/* Opens the implementation that was built for the LibTorch of this process, and checks that the process has loaded only
 * one. Every function that gives a status does so before it computes, with the same errors; call it first to be told
 * early.
 * errors: FAILED_PRECONDITION, which names what the process has loaded, what would fit, and what to do. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_check_libtorch(void) ADDEND_NOEXCEPT;
/* Does what addend_check_libtorch does, with the LibTorch whose libraries lie in `folder` where the process has loaded
 * none: a process keeps what it has. Without a folder, ADDEND_LIBTORCH_PATH in the environment may name one; otherwise
 * the system finds it.
 * in: folder (borrowed; NULL and "" for none).
 * errors: as addend_check_libtorch; also where there is no LibTorch in the folder. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_load_libtorch(const char* folder) ADDEND_NOEXCEPT;
/* Returns what somebody who reports a problem pastes, as lines for people: the release and the sources that it was
 * built from, the files of the library, the implementation that was opened or why there is none, the system, and
 * LibTorch with its file, threads, instructions of the processor, devices and build. It opens the implementation as
 * addend_check_libtorch does, and never fails: what cannot be opened is told. The lines and their order may change from
 * release to release. Borrowed, for ever. */
ADDEND_API const char* addend_show_config(void) ADDEND_NOEXCEPT;
/* Returns 1 where the process has loaded a LibTorch, whoever did, and 0 where it has none. Opens nothing. */
ADDEND_API int32_t addend_libtorch_is_loaded(void) ADDEND_NOEXCEPT;

/* ---- Status ------------------------------------------------------------------------------------------------------ */

/* The canonical error codes of gRPC and Abseil. */
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

/* Returns one of addend_code; ADDEND_OK for NULL. */
ADDEND_API int32_t addend_status_code(const addend_status* status) ADDEND_NOEXCEPT;
/* Returns one line that says what went wrong and what to do; "" for NULL. Borrowed. */
ADDEND_API const char* addend_status_message(const addend_status* status) ADDEND_NOEXCEPT;
/* Returns the place in the C++ sources that the error comes from; "" unless the context asked for it
 * (addend_context_options_set_detail). Borrowed. */
ADDEND_API const char* addend_status_detail(const addend_status* status) ADDEND_NOEXCEPT;
/* Returns what the message says as data, by key; NULL where there is nothing. Borrowed.
 * in: key: "op", "op_index", "module_path", "function", "file", "line" and "parameters" of the operator to blame;
 * "callback": the number that a callback returned. */
ADDEND_API const char* addend_status_payload(const addend_status* status, const char* key) ADDEND_NOEXCEPT;
/* Returns the key of an entry of that data, in the order of keys; NULL behind the last one. Borrowed. */
ADDEND_API const char* addend_status_payload_key(const addend_status* status, size_t index) ADDEND_NOEXCEPT;
ADDEND_API void addend_status_release(addend_status* status) ADDEND_NOEXCEPT;

/* ---- Text that was computed -------------------------------------------------------------------------------------- */

/* Returns the bytes of a text, which may hold NUL; one more NUL follows them. Borrowed. */
ADDEND_API const char* addend_string_data(const addend_string* text) ADDEND_NOEXCEPT;
/* Returns the number of bytes, without the NUL at the end. */
ADDEND_API size_t addend_string_size(const addend_string* text) ADDEND_NOEXCEPT;
ADDEND_API void addend_string_release(addend_string* text) ADDEND_NOEXCEPT;

/* ---- The process ------------------------------------------------------------------------------------------------- */

/* Sets how many threads LibTorch computes with, in this library and everything else of the process. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_set_num_threads(int32_t num_threads) ADDEND_NOEXCEPT;

/* The kinds of handles, for addend_debug_live. */
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
  ADDEND_HANDLE_PROGRAM = 18,
  ADDEND_HANDLE_CONCEPTS = 19,
  ADDEND_HANDLE_AUDIT_LOG = 20,
  ADDEND_HANDLE_PLAN = 21,
  ADDEND_HANDLE_JOB = 22
};

/* Returns how many handles of a kind are not released yet; -1 where there is no such kind. For tests: a program that
 * has released everything reads 0.
 * in: kind: one of addend_handle_kind. */
ADDEND_API int64_t addend_debug_live(int32_t kind) ADDEND_NOEXCEPT;

/* ---- Cancellation ------------------------------------------------------------------------------------------------ */

/* Makes a switch that ends runs from another thread; see addend_request_set_cancellation.
 * out: out_cancellation (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_cancellation_create(addend_cancellation** out_cancellation)
    ADDEND_NOEXCEPT;
/* Ends every run that holds the switch, before its next operator, with ADDEND_CANCELLED; runs that begin later end in
 * the same way.
 * thread: any, at any time, also in a signal handler. */
ADDEND_API void addend_cancellation_cancel(addend_cancellation* cancellation) ADDEND_NOEXCEPT;
ADDEND_API void addend_cancellation_release(addend_cancellation* cancellation) ADDEND_NOEXCEPT;

/* ---- Context: a policy with what surrounds a run ----------------------------------------------------------------- */

/* How important a log line is. */
enum addend_log_level { ADDEND_LOG_INFO = 1, ADDEND_LOG_WARNING = 2 };

/* Receives one line of text (borrowed) that a reader should know about a run. It must not throw.
 * in: level: one of addend_log_level. */
typedef void(ADDEND_CALL* addend_log_fn)(void* payload, int32_t level, const char* message);
/* Receives how far a run is: `done` of `total` steps of a stage; a total of 0 means that it is not known. It must not
 * throw.
 * in: stage: "trace", "linearize" or "sweep".
 * out: 0 to go on. Any other number ends the run with ADDEND_CANCELLED and that number as payload "callback" (a binding
 * keeps its own exception and rethrows it). */
typedef int32_t(ADDEND_CALL* addend_progress_fn)(void* payload, const char* stage, int64_t done, int64_t total);

/* Makes options that hold the defaults.
 * out: out_options (new). */
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
 *   freeze: preset (what the preset freezes), none, or some of attention, normalizer, denominator, gate, activation
 *     joined by +. Which coefficients are used as plain factors, by their values; what their own parts bring is left
 *     over.
 *   content_first: attention+normalizer+denominator+gate, none, or some of attention, normalizer, denominator, gate,
 *     activation joined by +. Which coefficients move while the content that they multiply is the reference's, before
 *     the content moves; all other products share by half.
 *   by_magnitude: gate+activation, none, or some of attention, normalizer, denominator, gate, activation joined by +.
 *     Of the coefficients that content_first names, those that leave content a share of the interaction by what stands
 *     there, and not all of it.
 *   conditions: value, baseline. Whose masks and indices the reference takes, where operators compute them from
 *     decomposed tensors.
 *   compute_dtype: model, float32, float64. In which dtype the model is computed.
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
/* Sets the callback that receives log lines; NULL: none, the default.
 * in: release: may be NULL; otherwise called with `payload` once the callback is replaced, or once the last context
 * that holds it is gone. If the call fails, the payload stays the caller's. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_options_set_log(addend_context_options* options,
                                                                          addend_log_fn log, void* payload,
                                                                          addend_release_fn release) ADDEND_NOEXCEPT;
/* Sets the callback that receives progress; NULL: none, the default.
 * in: release: as in addend_context_options_set_log. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_options_set_progress(
    addend_context_options* options, addend_progress_fn progress, void* payload,
    addend_release_fn release) ADDEND_NOEXCEPT;
/* Sets whether statuses say in their detail where in C++ an error comes from (1) or not (0, the default). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_options_set_detail(addend_context_options* options,
                                                                             int32_t detail) ADDEND_NOEXCEPT;
ADDEND_API void addend_context_options_release(addend_context_options* options) ADDEND_NOEXCEPT;

/* Makes a context from the options as they are now; changing the options later changes no context. Wherever a function
 * takes a context, NULL stands for the defaults.
 * in: options (borrowed).
 * out: out_context (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_create(const addend_context_options* options,
                                                                 addend_context** out_context) ADDEND_NOEXCEPT;
/* Every choice of the policy as a JSON object of texts, overrides included. in: context (borrowed, may be NULL).
 * out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_context_policy(const addend_context* context,
                                                                 addend_string** out_json) ADDEND_NOEXCEPT;
ADDEND_API void addend_context_release(addend_context* context) ADDEND_NOEXCEPT;

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

/* Types of elements: DLPack's type code + 256 * bits. Any other pair that LibTorch knows may be written in the same
 * way. */
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

/* Structs of dlpack.h. Which of the two a pointer is shows only at run time, so that it is a void* here; addend.hpp has
 * functions for each. */
#ifndef SWIG
struct DLManagedTensor;
struct DLManagedTensorVersioned;
#endif

/* Makes a tensor on the memory of a DLManagedTensor (is_versioned 0) or DLManagedTensorVersioned (1), without a copy.
 * Memory on devices is taken as ready on the current stream.
 * in: managed (taken over: its deleter is called once no handle needs it; if the call fails, it stays the caller's).
 * out: out_tensor (new).
 * errors: UNIMPLEMENTED for devices and types that LibTorch does not have. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_from_dlpack(void* managed, int32_t is_versioned,
                                                                     addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Gives a view of the tensor to other libraries, without a copy: a DLManagedTensorVersioned where `max_major` is 1 or
 * more, otherwise the older DLManagedTensor, which has no bool (it becomes uint8). The memory must not be written: the
 * newer struct says so by DLPack's flag for read-only memory, for which the older one has no place.
 * out: out_managed (new: the caller calls its deleter once, on any thread), out_is_versioned. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_to_dlpack(const addend_tensor* tensor, uint32_t max_major,
                                                                   void** out_managed,
                                                                   int32_t* out_is_versioned) ADDEND_NOEXCEPT;
/* Makes a tensor of an at::Tensor of other code in this process that computes with the same LibTorch, without a copy:
 * the same storage with its strides and device, and the same place in autograd's graph, requires_grad included. A trace
 * knows such a tensor by its memory, as any other. TorchSharp calls this address Tensor.Handle; DJL's PyTorch engine
 * calls it the handle of an NDArray.
 * in: at_tensor: the address of an at::Tensor (the object may go after the call; what it refers to is shared). It is
 * not looked at unless addend_check_libtorch succeeds.
 * out: out_tensor (new).
 * errors: FAILED_PRECONDITION where addend_check_libtorch fails; INVALID_ARGUMENT for a tensor that is undefined;
 * UNIMPLEMENTED for sparse and quantized tensors, and for dtypes that addend_dtype cannot write. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_from_libtorch(const void* at_tensor,
                                                                       addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Gives the tensor to such code, without a copy. The memory must not be written.
 * out: out_at_tensor (new: the address of an at::Tensor, which its owner deletes once: a library that takes it over, as
 * TorchSharp's Tensor.UnsafeCreateTensor does; C++ by `delete`; others by addend_libtorch_tensor_release).
 * errors: FAILED_PRECONDITION where addend_check_libtorch fails. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_to_libtorch(const addend_tensor* tensor,
                                                                     void** out_at_tensor) ADDEND_NOEXCEPT;
/* Deletes an at::Tensor that addend_tensor_to_libtorch gave and nobody has taken over. */
ADDEND_API void addend_libtorch_tensor_release(void* at_tensor) ADDEND_NOEXCEPT;
/* Makes a tensor on `size` bytes of the caller's memory, without a copy.
 * in: data (shared); strides: counted in elements, or NULL with num_strides 0 for a contiguous tensor; release: called
 * with `payload` once no handle needs the memory, or NULL, in which case the memory has to outlive the process's use of
 * it. If the call fails, the memory stays the caller's.
 * out: out_tensor (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_wrap(void* data, size_t size, int32_t dtype,
                                                              const int64_t* dims, size_t num_dims,
                                                              const int64_t* strides, size_t num_strides,
                                                              addend_release_fn release, void* payload,
                                                              addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Makes a tensor from a copy of `size` contiguous bytes.
 * in: data (borrowed).
 * out: out_tensor (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_copy(const void* data, size_t size, int32_t dtype,
                                                              const int64_t* dims, size_t num_dims,
                                                              addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Gives the tensor itself if it is contiguous and has this dtype and device, otherwise a contiguous copy that has.
 * in: dtype: 0 for any; device: "cpu", "cuda:0", or NULL for any.
 * out: out_tensor (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_to(const addend_tensor* tensor, int32_t dtype,
                                                            const char* device,
                                                            addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Returns the number of dimensions. */
ADDEND_API size_t addend_tensor_num_dims(const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Returns the size of a dimension, in elements; -1 where there is no such dimension. */
ADDEND_API int64_t addend_tensor_size(const addend_tensor* tensor, size_t dim) ADDEND_NOEXCEPT;
/* Returns the stride of a dimension, in elements; -1 where there is no such dimension. */
ADDEND_API int64_t addend_tensor_stride(const addend_tensor* tensor, size_t dim) ADDEND_NOEXCEPT;
/* Returns how many bytes the elements take, one behind the other: the size that addend_tensor_data has. */
ADDEND_API size_t addend_tensor_num_bytes(const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Returns the dtype, as in addend_dtype. */
ADDEND_API int32_t addend_tensor_dtype(const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Returns the device: "cpu", "cuda:0". Borrowed. */
ADDEND_API const char* addend_tensor_device(const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Returns the elements of a contiguous tensor on the CPU, to be read; NULL for other tensors. Borrowed. */
ADDEND_API const void* addend_tensor_data(const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Prints the tensor as PyTorch does.
 * out: out_text (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_to_string(const addend_tensor* tensor,
                                                                   addend_string** out_text) ADDEND_NOEXCEPT;
ADDEND_API void addend_tensor_release(addend_tensor* tensor) ADDEND_NOEXCEPT;

/* ---- Tensors in files: .safetensors and .npy in, .safetensors out ------------------------------------------------ */

/* Reads a .safetensors or .npy file.
 * out: out_file (new).
 * errors: NOT_FOUND. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_read(const char* path,
                                                                   addend_tensor_file** out_file) ADDEND_NOEXCEPT;
/* Reads the bytes of a .safetensors or .npy file.
 * in: data (borrowed); name: stands for the path in messages.
 * out: out_file (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_decode(const void* data, size_t size, const char* name,
                                                                     addend_tensor_file** out_file) ADDEND_NOEXCEPT;
/* Returns the number of tensors in the file. */
ADDEND_API size_t addend_tensor_file_size(const addend_tensor_file* file) ADDEND_NOEXCEPT;
/* Returns the name of a tensor; "" for the tensor of a .npy file. Borrowed until the file changes. */
ADDEND_API const char* addend_tensor_file_name(const addend_tensor_file* file, size_t index) ADDEND_NOEXCEPT;
/* Gives a tensor of the file by its name; NULL: the first one.
 * out: out_tensor (new).
 * errors: NOT_FOUND. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_tensor(const addend_tensor_file* file, const char* name,
                                                                     addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Returns the file's metadata under a key; NULL where there is none. Borrowed until the file changes. */
ADDEND_API const char* addend_tensor_file_metadata(const addend_tensor_file* file, const char* key) ADDEND_NOEXCEPT;
/* Makes an empty file.
 * out: out_file (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_create(addend_tensor_file** out_file) ADDEND_NOEXCEPT;
/* Adds a tensor, in place of one with the same name.
 * in: tensor (shared until it is written). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_add(addend_tensor_file* file, const char* name,
                                                                  const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Sets the metadata under a key. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_set_metadata(addend_tensor_file* file, const char* key,
                                                                           const char* value) ADDEND_NOEXCEPT;
/* Writes the file as .safetensors: all of it or nothing. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_write(const addend_tensor_file* file,
                                                                    const char* path) ADDEND_NOEXCEPT;
/* Gives the bytes that addend_tensor_file_write would write.
 * out: out_bytes (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_tensor_file_encode(const addend_tensor_file* file,
                                                                     addend_string** out_bytes) ADDEND_NOEXCEPT;
ADDEND_API void addend_tensor_file_release(addend_tensor_file* file) ADDEND_NOEXCEPT;

/* ---- Compositions: a tensor of shape S as components and a residual ---------------------------------------------- */

/* The tensors of a composition, for addend_composition_part. */
enum addend_part {
  ADDEND_COMPONENTS = 0, /* [numc, *S] */
  ADDEND_REFERENCE = 1,
  ADDEND_LEFTOVER = 2,
  ADDEND_RESIDUAL = 3, /* reference + leftover */
  ADDEND_RECOVERY = 4, /* the sum of components and residual */
  ADDEND_VALUE = 5     /* what an operator or a model computed; else the recovery */
};

/* Makes a composition from its tensors.
 * in: components [numc, *S] (shared), reference, leftover (shared; NULL for zeros); in_graph: 1 keeps autograd's graph,
 * so that gradients of what is computed from the composition can be asked for (addend_composition_grad).
 * out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_from_tensors(
    const addend_tensor* components, const addend_tensor* reference, const addend_tensor* leftover, int32_t in_graph,
    addend_composition** out_composition) ADDEND_NOEXCEPT;
/* Splits a value along dimensions, with one component for each position along `dims`. Component offset + i is value -
 * baseline at position i and zero elsewhere. Without dimensions the whole value is one component.
 * in: dims: negative ones count from the end; baseline: NULL for zeros; numc: -1 for no more than needed.
 * out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_diagonal(
    const addend_tensor* value, const int64_t* dims, size_t num_dims, const addend_tensor* baseline, int64_t offset,
    int64_t numc, addend_composition** out_composition) ADDEND_NOEXCEPT;
/* Splits a value by labels, with one component for each label.
 * in: labels: integers of the value's shape or of its leading dimensions, -1 for no component; baseline: NULL for
 * zeros; numc: -1 for the largest label + 1.
 * out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_from_labels(
    const addend_tensor* value, const addend_tensor* labels, const addend_tensor* baseline, int64_t numc,
    addend_composition** out_composition) ADDEND_NOEXCEPT;
/* Returns the number of components. */
ADDEND_API int64_t addend_composition_numc(const addend_composition* composition) ADDEND_NOEXCEPT;
/* Returns the number of dimensions of S. */
ADDEND_API size_t addend_composition_num_dims(const addend_composition* composition) ADDEND_NOEXCEPT;
/* Returns the size of a dimension of S; -1 where there is no such dimension. */
ADDEND_API int64_t addend_composition_size(const addend_composition* composition, size_t dim) ADDEND_NOEXCEPT;
/* Returns the dtype of the value; the parts of half types are float32. */
ADDEND_API int32_t addend_composition_dtype(const addend_composition* composition) ADDEND_NOEXCEPT;
/* Returns the device: "cpu", "cuda:0". Borrowed. */
ADDEND_API const char* addend_composition_device(const addend_composition* composition) ADDEND_NOEXCEPT;
/* Gives one tensor of the composition; it shares the composition's memory where it is stored.
 * in: part: one of addend_part.
 * out: out_tensor (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_part(const addend_composition* composition, int32_t part,
                                                                   addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Gives component `index`, of shape S.
 * out: out_tensor (new).
 * errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_component(const addend_composition* composition,
                                                                        int64_t index,
                                                                        addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Gives a composition of some components, with the residual (with_residual 1) or without (0).
 * in: indices: negative ones count from the end.
 * out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_select(
    const addend_composition* composition, const int64_t* indices, size_t num_indices, int32_t with_residual,
    addend_composition** out_composition) ADDEND_NOEXCEPT;
/* Gives the gradient of sum(cotangent * composition), summed over components, reference and leftover, with respect to
 * the parts of `input`: a composition of the shape of `input`.
 * in: cotangent (borrowed), of the shape of `composition`; input: made with in_graph 1, and led to `composition` by
 * calls.
 * out: out_gradient (new).
 * errors: FAILED_PRECONDITION where no gradient connects the two. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_grad(const addend_composition* composition,
                                                                   const addend_composition* cotangent,
                                                                   const addend_composition* input,
                                                                   addend_composition** out_gradient) ADDEND_NOEXCEPT;
/* Explains one number of the composition. Components have the names of the run that gave it, else their positions.
 * in: target: as in addend_results_explain.
 * out: out_explanation (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_explain(
    const addend_composition* composition, const char* target, addend_explanation** out_explanation) ADDEND_NOEXCEPT;
/* Prints the composition: "composition 0:\n<tensor>\n...residual:\n<tensor>".
 * out: out_text (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_composition_to_string(const addend_composition* composition,
                                                                        addend_string** out_text) ADDEND_NOEXCEPT;
ADDEND_API void addend_composition_release(addend_composition* composition) ADDEND_NOEXCEPT;

/* ---- Explanations: one number and what it is made of ------------------------------------------------------------- */

/* The numbers of an explanation beside its contributions c. */
enum addend_number {
  ADDEND_NUMBER_VALUE = 0,
  ADDEND_NUMBER_REFERENCE = 1,
  ADDEND_NUMBER_LEFTOVER = 2,
  ADDEND_NUMBER_RECOVERY = 3,
  ADDEND_NUMBER_RECOVERY_ERROR = 4, /* recovery - value */
  ADDEND_NUMBER_CONDITIONING = 5,   /* the larger of sum |c| + |leftover| and |reference|, over the smaller of |value|
                                       and |value - reference|: 1 where nothing cancels */
  ADDEND_NUMBER_MASS = 6            /* sum |c| + |leftover| + |reference|: what rounding is measured against */
};

/* Returns one number of the explanation; NaN where there is no such number.
 * in: number: one of addend_number. */
ADDEND_API double addend_explanation_number(const addend_explanation* explanation, int32_t number) ADDEND_NOEXCEPT;
/* Returns what is explained: the element, "[0, 7]", the difference, "[0, 7] minus [0, 2]", or what else the target asks
 * for, "log-probability of [0, 5, 42]". Borrowed. */
ADDEND_API const char* addend_explanation_target(const addend_explanation* explanation) ADDEND_NOEXCEPT;
/* Returns the number of contributions: one for each component. */
ADDEND_API int64_t addend_explanation_numc(const addend_explanation* explanation) ADDEND_NOEXCEPT;
/* Returns the contribution of a component; NaN where there is no such component. */
ADDEND_API double addend_explanation_contribution(const addend_explanation* explanation,
                                                  int64_t component) ADDEND_NOEXCEPT;
/* Returns how many baselines the numbers are means over; 1 where there was one. */
ADDEND_API int64_t addend_explanation_num_baselines(const addend_explanation* explanation) ADDEND_NOEXCEPT;
/* Returns the standard error of a component's contribution, which is a mean over several baselines; NaN where there
 * were fewer than two, or no such component. */
ADDEND_API double addend_explanation_standard_error(const addend_explanation* explanation,
                                                    int64_t component) ADDEND_NOEXCEPT;
/* Returns the share of baselines, from 0 to 1, under which a component's contribution has the sign of their mean; NaN
 * where there was one baseline, or no such component. */
ADDEND_API double addend_explanation_same_sign(const addend_explanation* explanation,
                                               int64_t component) ADDEND_NOEXCEPT;
/* Returns the name of a component; NULL where there is no such component. Borrowed. */
ADDEND_API const char* addend_explanation_name(const addend_explanation* explanation,
                                               int64_t component) ADDEND_NOEXCEPT;
/* Returns the component at a rank, where rank 0 has the contribution of the largest magnitude and equal ones keep their
 * order; -1 where there is none. */
ADDEND_API int64_t addend_explanation_ranked(const addend_explanation* explanation, int64_t rank) ADDEND_NOEXCEPT;
/* Writes all of the explanation as a JSON object, {"format": "addend.explanation", "version": 1, ...}. docs/schemas has
 * the schema of this and of every other document.
 * out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_json(const addend_explanation* explanation,
                                                                   addend_string** out_json) ADDEND_NOEXCEPT;
/* Writes all of the explanation as a self-contained page for a browser.
 * out: out_html (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_html(const addend_explanation* explanation,
                                                                   addend_string** out_html) ADDEND_NOEXCEPT;
/* Draws the explanation as a picture in SVG, for reports and e-mails: the way from the reference to the value, a bar
 * for each of the largest contributions, one for the others, and all notes. It needs nothing else, and has no script.
 * out: out_svg (new).
 * errors: FAILED_PRECONDITION where a number is not finite. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_svg(const addend_explanation* explanation,
                                                                  addend_string** out_svg) ADDEND_NOEXCEPT;
/* Reads what addend_explanation_json or addend_attribution_json wrote (of the latter the first target): an explanation
 * with the same numbers, names, text and page.
 * out: out_explanation (new).
 * errors: INVALID_ARGUMENT for any other text. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_read(
    const char* json, addend_explanation** out_explanation) ADDEND_NOEXCEPT;
ADDEND_API void addend_explanation_release(addend_explanation* explanation) ADDEND_NOEXCEPT;

/* ---- Requests: what a model is asked ----------------------------------------------------------------------------- */

/* Makes an empty request.
 * out: out_request (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_create(addend_request** out_request) ADDEND_NOEXCEPT;
/* Adds an input. It is plain, without components, until one of the functions below splits it: these functions speak of
 * the input that was added last.
 * in: name: the argument of the model that the input is for, or NULL for the next one in order; value (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_input(addend_request* request, const char* name,
                                                                    const addend_tensor* value) ADDEND_NOEXCEPT;
/* Adds, as an input, a floating-point tensor inside the model (heads of an attention, neurons, experts): components and
 * baseline start there, and what the model computes before is the same for all of them. The functions below say more
 * about it as about any input. It is split along dimensions or by labels; dimensions, labels and baseline are those of
 * the tensor, whose shape is known when the model runs. It is named by its selector, and its elements' attributions
 * (addend_attribution_results) have its shape. The arguments of the model, added before or behind, stay plain. The
 * model runs once more for it in addend_model_decompose and addend_model_attribute; in traces its owner runs it twice
 * (addend_trace_again). addend_model_shapley refuses it; other functions look at the arguments alone.
 * in: selector: as in addend_request_add_probe.
 * errors: of the run: INVALID_ARGUMENT where nothing inside has this name, where the tensor is an argument of the
 * model, where it is split otherwise or not at all, where an argument is split too, and where dimensions, labels or
 * baseline do not fit it; FAILED_PRECONDITION where it depends on another tensor that is split. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_inside(addend_request* request,
                                                                     const char* selector) ADDEND_NOEXCEPT;
/* Splits the input along dimensions, with one component for each position along `dims`.
 * in: dims: negative ones count from the end. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_split_dims(addend_request* request, const int64_t* dims,
                                                                     size_t num_dims) ADDEND_NOEXCEPT;
/* Splits the input by labels, with one component for each label. Ids of tokens can be split in this way and along
 * dimensions.
 * in: labels (shared): as in addend_composition_from_labels. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_split_labels(addend_request* request,
                                                                       const addend_tensor* labels) ADDEND_NOEXCEPT;
/* Splits the input into given components; the rest of the input is its reference.
 * in: parts [numc, *shape] (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_split_parts(addend_request* request,
                                                                      const addend_tensor* parts) ADDEND_NOEXCEPT;
/* Sets the input that means "nothing"; zero unless given.
 * in: baseline (shared): a tensor that broadcasts to the input. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_baseline(addend_request* request,
                                                                       const addend_tensor* baseline) ADDEND_NOEXCEPT;
/* Sets one number as the baseline everywhere; for ids: a token. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_baseline_number(addend_request* request,
                                                                              double baseline) ADDEND_NOEXCEPT;
/* Sets the baseline by a word, which is looked up when the model runs. For floating-point inputs:
 *   "mean:FILE", "median:FILE"   of the rows (the first dimension) of the tensor in a .npy or .safetensors file,
 *                                "FILE#NAME" where it holds several and none is called "baseline" or "input"
 *   "buffer:NAME"                a tensor that the model holds, such as the running mean of a batch normalization
 *                                of the input; also for ids
 *   "mean"                       each channel's mean over height and width, the last two dimensions of an image
 *   "blur", "blur:SIGMA"         the image under a Gaussian of SIGMA pixels, or of a twentieth of its longer side
 *   "rows:FILE"                  all rows of such a tensor: several baselines, as of addend_request_set_baselines
 *   "nearest:COUNT:FILE"         those COUNT rows that are nearest to the input, or to each example, by the
 *                                standardized Euclidean distance: several baselines
 * errors: INVALID_ARGUMENT for any other word; of the run: INVALID_ARGUMENT where the baseline does not fit, NOT_FOUND
 * for a file. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_baseline_word(addend_request* request,
                                                                            const char* word) ADDEND_NOEXCEPT;
/* Sets several baselines for addend_model_attribute, which then gives means over all of them: contributions that are
 * exact to the value minus the mean of the model on the baselines (a median would add up to nothing). Where several
 * inputs have several baselines, there are equally many, and the first of each belong together. Other runs refuse them.
 * in: baselines [K, *] (shared): each broadcasts to the input, or to one example of it where each has a target.
 * errors: of the run: FAILED_PRECONDITION where the examples of a batch influence each other. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_baselines(addend_request* request,
                                                                        const addend_tensor* baselines) ADDEND_NOEXCEPT;
/* Sets where the input's components start on the component axis that all inputs share; -1, the default: right behind
 * those of the inputs before it. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_first_component(addend_request* request,
                                                                              int64_t first) ADDEND_NOEXCEPT;
/* Names the input's next component. Components without a name are called by their position. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_name(addend_request* request,
                                                                   const char* name) ADDEND_NOEXCEPT;
/* Asks for the composition of an inner tensor.
 * in: selector: "layers.0.attention" (what a module returned, and others read or the model returns; where nobody told
 * what it returned, as in traced and exported files, what it gave and they read), "encoder@1" (the same of one of
 * several calls, counted from 0), "attention:1" (one of several tensors, in the order in which they were returned; an
 * error where nobody told it, unless one operator of the module gives them all, as of recurrent layers), "encoder@*"
 * and "attention:*" (all of them, each a result of its own), "#28" (an operator by its number), "#28:1" (one of its
 * tensors), "aten::gelu" or "aten::gelu:2" (an operator by its name), "logits" (what the last softmax or sigmoid
 * reads). A name of several tensors is an error that lists them when the request is answered. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_probe(addend_request* request,
                                                                    const char* selector) ADDEND_NOEXCEPT;
/* Asks for one of the model's results; those that no call names are left out. Without any call, all count.
 * Attributions and plans explain the first of them, unless the option at says otherwise. A trace has to
 * have named it.
 * in: name: "output", "output.1"; "output.logits" of a dictionary. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_output(addend_request* request,
                                                                     const char* name) ADDEND_NOEXCEPT;
/* Names a parameter of a live model, so that reports can name operators by what they read.
 * in: tensor (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_parameter(addend_request* request, const char* name,
                                                                        const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Names a buffer of a live model: a tensor that is not learned.
 * in: tensor (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_buffer(addend_request* request, const char* name,
                                                                     const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Adds a number for addend_model_attribute to explain. Without any call it is "top1".
 * in: target: as in addend_results_explain, of the tensor that the option at names. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_add_target(addend_request* request,
                                                                     const char* target) ADDEND_NOEXCEPT;
/* Begins a further example of what the model takes: inputs that are added from here on belong to it.
 * addend_model_record learns other sizes from it, and addend_model_check_trace tries its values; nothing else takes
 * several examples.
 * errors: FAILED_PRECONDITION where the example before it has no input yet. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_next_example(addend_request* request) ADDEND_NOEXCEPT;
/* Sets how the inputs of the example, which are tensors, make up the arguments of a model that takes tuples, lists,
 * dictionaries or plain values. All functions of models and programs that take a request look at it, and so does
 * addend_trace_record. Every input has to be used. Names of inputs then serve for results only; inputs are split as
 * usual, and their components move through the model like those of any other input. Results count inputs and their
 * components as the arguments of the model hold them, in whatever order they were added or named.
 * in: structure: NULL, the default, where every input is an argument; otherwise JSON: a list of the arguments in the
 * model's order, or an object of the arguments by name, each one of
 *   {"tensor": 0}                            an input by its number, counted from 0 in the order of adding
 *   null, true, 3, 3.0, "text"               a plain value; 3 is an integer, 3.0 is not
 *   {"float": "nan"}                         or "inf", "-inf"
 *   {"tuple": [...]}, {"list": [...]}        of any of these; an empty list says what it would hold, "type":
 *                                            "Tensor", "int", "float", "bool" or "str"
 *   {"dict": {"key": ...}}                   with the "type" of its values where it is empty
 * errors: INVALID_ARGUMENT for text that is none of these; of the run: INVALID_ARGUMENT where the structure does not
 * fit. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_structure(addend_request* request,
                                                                        const char* structure) ADDEND_NOEXCEPT;
/* Sets an option. Flags are "true" or "false", the default.
 * in: key and value:
 *   at: The tensor that targets are elements of: "output.1", or an inner tensor as in addend_request_add_probe. An
 *     empty one or none stands for the model's first output. Looked at by addend_model_attribute, addend_model_plan,
 *     addend_model_interactions, addend_job_plan and addend_trace_begin_attribution.
 *   direction: auto, forward, backward. Which way addend_model_decompose finds components; the results are the same to
 *     rounding. "auto": backward where there are few numbers and much to save, unless everything is set; else forward.
 *     "forward": every component goes through every operator. "backward": components come back from the numbers that
 *     are asked for, while the sum of all goes forward and is checked after every operator. Looked at by
 *     addend_model_decompose and addend_trace_begin.
 *   each_example: Whether the first dimension of every split input and of the explained tensor counts examples, each of
 *     which has a target of its own in its row. The index of a target leaves out that dimension: there is one target
 *     for each example, or one for all. Looked at by addend_model_attribute, addend_model_plan and
 *     addend_trace_begin_attribution. Refused by addend_model_interactions.
 *   every_target: Whether, beside each_example, each example has all of the targets, rather than one of them. Targets
 *     of the attribution are then the first one for every example, then the second one, and attributions of an input
 *     are [targets, *shape]. Looked at by addend_model_attribute, addend_model_plan and addend_trace_begin_attribution.
 *   everything: Whether every operator is checked, not only those that results depend on. Looked at by
 *     addend_model_decompose and addend_trace_begin.
 *   keep_references: Whether the model keeps what it computes on the baselines, and takes it from there in later runs
 *     of such requests where the baselines and everything else that it depends on are the same. What differs is
 *     computed as usual. Writes to parameters are noticed where LibTorch counts them; writes that no operator makes
 *     escape it: see addend_model_forget_references. Looked at by addend_model_decompose and addend_model_attribute.
 *   learn_sizes: Whether addend_model_record, given one example, derives others of other sizes from it, parts and
 *     repetitions, and learns from these. The program then holds between the sizes that were tried; a dimension of
 *     which nothing can be learned keeps its size. The model runs about ten times for each dimension. Looked at by
 *     addend_model_record.
 *   memory: A limit of memory in bytes, beside the model; zero stands for any amount. In addend_model_decompose: for
 *     the parts of results and all rows on their way there together, beside the recorded run. Components then move
 *     through the model in groups; the model still runs once, and the results are the same to rounding. In
 *     addend_model_attribute and attributions of live models: for the recorded run and its coefficients, about. What
 *     does not fit is computed again, up to once, with the same bits; references are not kept for the next run. Looked
 *     at by addend_model_decompose, addend_model_attribute, addend_model_interactions, addend_trace_begin and
 *     addend_trace_begin_attribution. Refused by addend_model_plan and addend_job_plan.
 *   operators: Whether addend_model_attribute also finds what passes through every operator. Attention that a model
 *     writes out is then linearized as it is written, which rounds otherwise. Looked at by addend_model_attribute,
 *     addend_model_plan and addend_trace_begin_attribution. Refused by addend_model_interactions.
 *   timeout: The time after which a run ends before its next operator, with CANCELLED; zero stands for never. In
 *     seconds. Looked at by addend_model_decompose, addend_model_attribute, addend_model_plan,
 *     addend_model_interactions, addend_trace_begin and addend_trace_begin_attribution.
 *   verify_reference: Whether the plain model also runs on the baseline; the report then says how far the reference is
 *     from what the model gives there: "reference_error". Traces refuse it, since their owner runs the model: see
 *     addend_trace_baseline. Looked at by addend_model_decompose, addend_model_attribute, addend_model_plan and
 *     addend_model_interactions. Refused by addend_trace_begin and addend_trace_begin_attribution.
 * errors: INVALID_ARGUMENT for other keys and values; of a run: INVALID_ARGUMENT of a decomposition where not even one
 * component fits into memory, of an attribution within a memory under policies with segments, anchor=residual or a bias
 * other than residual, which need the whole run, and where a split starts inside the model and verify_reference is set;
 * FAILED_PRECONDITION of an attribution where an operator gives other bits when it runs again, and of
 * direction=backward under a policy that looks at all components together. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_option(addend_request* request, const char* key,
                                                                     const char* value) ADDEND_NOEXCEPT;
/* Sets the switch that may end runs of this request; NULL, the default: none.
 * in: cancellation (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_request_set_cancellation(
    addend_request* request, const addend_cancellation* cancellation) ADDEND_NOEXCEPT;
ADDEND_API void addend_request_release(addend_request* request) ADDEND_NOEXCEPT;

/* ---- Models ------------------------------------------------------------------------------------------------------ */

/* Loads a TorchScript file, a program that torch.export saved (.pt2), or an ONNX model, on the CPU and in evaluation
 * mode. The content decides which it is. Loading an exported program or an ONNX model runs nothing. Running it calls
 * the operators that the file names, and a TorchScript file is code: run only what you trust. Weights of an ONNX model
 * may stand in files beside it.
 * in: dtype: what parameters and floating-point buffers are converted to; 0: as they are.
 * out: out_model (new).
 * errors: NOT_FOUND; UNIMPLEMENTED, with the operator's position, where the file holds compiled operations, which
 * tracing cannot see, or calls operators that this LibTorch does not have. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_load(const char* path, int32_t dtype,
                                                             addend_model** out_model) ADDEND_NOEXCEPT;
/* Loads the bytes of such a file, which has no others beside it.
 * in: data (borrowed); dtype: as in addend_model_load.
 * out: out_model (new).
 * errors: as addend_model_load. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_load_bytes(const void* data, size_t size, int32_t dtype,
                                                                   addend_model** out_model) ADDEND_NOEXCEPT;
/* Tells the SHA-256 of a model, as plans of jobs and records of decisions have it: two models with the same one compute
 * with the same weights. That of a file is the SHA-256 of its bytes. That of an ONNX model with weights in files beside
 * it stands for all of these files, and that of the folder of a program for both files in it; see docs/audit.md. in:
 * path: a file that addend_model_load takes, or a folder that addend_program_save wrote. out: out_sha256 (new), 64
 * hexadecimal digits in lower case. errors: NOT_FOUND, also for weights beside an ONNX model; as addend_model_load for
 * an ONNX model that cannot be read. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_sha256(const char* path,
                                                               addend_string** out_sha256) ADDEND_NOEXCEPT;
/* Copies a model from a file to another device or dtype: parameters, buffers and constants. Its inputs have to be there
 * too.
 * in: dtype: 0 for the same; device: "cuda:0", or NULL for the same.
 * out: out_copy (new).
 * errors: UNIMPLEMENTED for other models. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_to(const addend_model* model, int32_t dtype, const char* device,
                                                           addend_model** out_copy) ADDEND_NOEXCEPT;
/* Makes a model that runs other methods than forward(), one after the other, each on as many of the inputs as it has
 * arguments. Several methods give their results one behind the other, and their arguments are called "encode.x".
 * in: model (shared); methods: names with commas between them, "encode,decode".
 * out: out_model (new).
 * errors: NOT_FOUND for a method that the model does not have; UNIMPLEMENTED for models that are not from a TorchScript
 * file. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_methods(const addend_model* model, const char* methods,
                                                                addend_model** out_model) ADDEND_NOEXCEPT;
/* Returns how many arguments the model takes. */
ADDEND_API size_t addend_model_num_inputs(const addend_model* model) ADDEND_NOEXCEPT;
/* Returns the name of an argument, in order; NULL where there is none. Borrowed. */
ADDEND_API const char* addend_model_input_name(const addend_model* model, size_t index) ADDEND_NOEXCEPT;
/* Runs the plain model and gives its tensors, without compositions; splits and probes are not looked at.
 * in: model, request (borrowed).
 * out: out_results (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_run(const addend_model* model, const addend_request* request,
                                                            addend_results** out_results) ADDEND_NOEXCEPT;
/* Decomposes the model: gives the compositions of what it computes, then those of the probes, and the report. This is
 * the main function of the library.
 * in: context (borrowed, may be NULL), model, request (borrowed).
 * out: out_results (new).
 * errors: UNIMPLEMENTED with the position of an operator that no rule covers; INTERNAL with the position of a tracing
 * failure; CANCELLED. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_decompose(const addend_context* context,
                                                                  const addend_model* model,
                                                                  const addend_request* request,
                                                                  addend_results** out_results) ADDEND_NOEXCEPT;
/* Computes the exact Shapley values of the components for the model's first output, by 2^numc runs: what other
 * attributions can be compared with.
 * in: model, request (borrowed), with at most 16 components.
 * out: out_composition (new).
 * errors: CANCELLED. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_shapley(const addend_model* model,
                                                                const addend_request* request,
                                                                addend_composition** out_composition) ADDEND_NOEXCEPT;
/* Attributes the targets of the request to every element of the inputs, by one sweep backward through the model, at the
 * same price for ten components and for ten thousand. Probes are not looked at.
 * in: context (borrowed, may be NULL), model, request (borrowed).
 * out: out_attribution (new).
 * errors: as addend_model_decompose; FAILED_PRECONDITION for choices of the policy that look at all components
 * together. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_attribute(const addend_context* context,
                                                                  const addend_model* model,
                                                                  const addend_request* request,
                                                                  addend_attribution** out_attribution) ADDEND_NOEXCEPT;
/* Finds the interactions of groups of components in one target of one example: a matrix whose row i says what group i's
 * contribution is made of. An entry off the diagonal, phi_ij = phi_i(x) - phi_i(x with group j at its baseline), is
 * what group i's contribution owes to group j; the diagonal is the rest, so that rows add up to the contributions
 * exactly. The entries depend on the path that the policy follows, and phi_ij need not be phi_ji. Takes one attribution
 * for each group and one more, in one batch where the model takes batches.
 * in: context (borrowed, may be NULL), model, request (borrowed), concepts (borrowed, may be NULL): the groups, where
 * components that no concept names are groups by themselves; NULL: all are.
 * out: out_json (new), {"format": "addend.interactions", "version": 1, ..., "groups": [{"name", "components",
 * "contribution", "interactions", "value_without", "leftover_without"}], "asymmetry"}.
 * errors: as addend_model_attribute; INVALID_ARGUMENT for several targets and for targets of each example;
 * FAILED_PRECONDITION where the examples of a batch influence each other. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_interactions(const addend_context* context,
                                                                     const addend_model* model,
                                                                     const addend_request* request,
                                                                     const addend_concepts* concepts,
                                                                     addend_string** out_json) ADDEND_NOEXCEPT;
/* Writes a self-contained page for a browser from what addend_model_interactions gave.
 * out: out_html (new).
 * errors: INVALID_ARGUMENT for any other text. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_interactions_html(const char* json,
                                                                    addend_string** out_html) ADDEND_NOEXCEPT;
/* Runs the model once and keeps what it did as a program; splits and probes are not looked at. Further examples of
 * other sizes (addend_request_next_example) teach the program which numbers follow which dimension of the inputs, so
 * that it runs for other sizes too; without any it runs for the sizes of the recording, unless the request asks for
 * others to be derived (the option learn_sizes).
 * in: model, request (borrowed).
 * out: out_program (new).
 * errors: UNIMPLEMENTED with the position of what cannot be recorded; FAILED_PRECONDITION with the position of a number
 * that follows no dimension. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_record(const addend_model* model, const addend_request* request,
                                                               addend_program** out_program) ADDEND_NOEXCEPT;
/* Checks whether a recording stands for the model: records twice, replays, and tries every further example of the
 * request.
 * in: options: {"tolerance": 1e-5, "strict": true, "out_of_place": false}, as described at addend_program_code_text.
 * out_of_place also replays without writes in place, which finds aliases that no operator shows.
 * out: out_json (new), {"format": "addend.check_trace", "version": 1, "ok", "worst_error", "findings": [{"kind",
 * "error", "input_set", "position", "message"}]}.
 * Fields of a trace check:
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
/* Lists everything that a run with the inputs of the request lacks, before anything runs: of a TorchScript model by
 * reading its source, branches that are not taken included; of a program by what it recorded.
 * in: context (whose rules count; borrowed, may be NULL), model, request (borrowed).
 * out: out_json (new), {"format": "addend.requirements", "version": 1, "unmet": [{"kind", "error", "position",
 * "message"}]}.
 * Fields of a requirement:
 *   kind: What it is about: "input" (number, kind, shape, dtype or device of what is given), "mode" (something runs
 *     as in training) or "operator" (it has no rule).
 *   error: Whether the run would fail; else it is worth knowing.
 *   position: The first operator concerned, with its place; empty for inputs.
 *   message: What is missing, in one line. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_requirements(const addend_context* context,
                                                                     const addend_model* model,
                                                                     const addend_request* request,
                                                                     addend_string** out_json) ADDEND_NOEXCEPT;
/* Forgets what was kept for the option keep_references: to free the memory, or after writes to parameters that
 * no operator made.
 * thread: any; runs that go on are not disturbed. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_forget_references(const addend_model* model) ADDEND_NOEXCEPT;
ADDEND_API void addend_model_release(addend_model* model) ADDEND_NOEXCEPT;

/* ---- Results: what a run or a call gives ------------------------------------------------------------------------- */

/* Kinds of results. */
enum addend_result_kind {
  ADDEND_RESULT_NONE = 0,
  ADDEND_RESULT_COMPOSITION = 1,
  ADDEND_RESULT_TENSOR = 2, /* integers, bools, and everything where no composition was given */
  ADDEND_RESULT_NUMBER = 3
};

/* Returns how many results there are: of a model its outputs (integers and bools stay tensors), then the probes. */
ADDEND_API size_t addend_results_size(const addend_results* results) ADDEND_NOEXCEPT;
/* Returns one of addend_result_kind. */
ADDEND_API int32_t addend_results_kind(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* Returns the name of a result: "output", "output.1", or by its place where a dictionary is in what the model gives
 * ("output.logits", "output.past.0"); the probe's selector, or the name that a trace was given; NULL where
 * there is none. Borrowed. */
ADDEND_API const char* addend_results_name(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* Returns the dtype of a result, as in addend_dtype: of a tensor, of the value of a composition, or of a number, which
 * is ADDEND_INT64, ADDEND_FLOAT64 or ADDEND_BOOL; 0 where there is none. */
ADDEND_API int32_t addend_results_dtype(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* Returns the number of dimensions of a result; 0 for a number. */
ADDEND_API size_t addend_results_num_dims(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* Returns the size of a dimension of a result; -1 where there is no such dimension. */
ADDEND_API int64_t addend_results_dim_size(const addend_results* results, size_t index, size_t dim) ADDEND_NOEXCEPT;
/* Gives a result that is a composition.
 * out: out_composition (new).
 * errors: OUT_OF_RANGE; INVALID_ARGUMENT where the result is of another kind. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_composition(
    const addend_results* results, size_t index, addend_composition** out_composition) ADDEND_NOEXCEPT;
/* Gives a result that is a tensor, the value of a composition, or a number as a tensor without dimensions, which keeps
 * every bit of an integer.
 * out: out_tensor (new).
 * errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_tensor(const addend_results* results, size_t index,
                                                                 addend_tensor** out_tensor) ADDEND_NOEXCEPT;
/* Gives a result that is a number. Integers beyond 2^53 are rounded; addend_results_tensor keeps them.
 * out: out_number.
 * errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_number(const addend_results* results, size_t index,
                                                                 double* out_number) ADDEND_NOEXCEPT;
/* Explains one number of a composition among the results.
 * in: name: which result, or NULL for the first; target: "top1" (the largest element), "2" or "0,2" (an element), "2-7"
 * or "0,2-0,7" (the first minus the second); "probability:2", "log_probability:2" (of an element, also of top1, under
 * softmax over the last dimension), "entropy" or "entropy:5" (of that distribution, at a position),
 * "continuation:12,55,7" (the log-probability of the last ids of the input), "sum:2+7+entropy" (of such targets). Of
 * [1, positions, classes] a class alone, top1, and an entropy without a position are those of the last position.
 * out: out_explanation (new).
 * errors: NOT_FOUND. */
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
 *   conditioning: The largest of the magnitudes of all parts and of the reference, over the value or the move,
 *     whichever is smaller, of the result where that is the largest; 1 where nothing cancels.
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
 *     "no" (it is not) or "unknown" (the model reads a number that is another on the baseline, or an input is NaN or
 *     infinite).
 *   reference_reason: Why the reference is not what the model computes on the baseline; empty where it is. */
ADDEND_API const char* addend_results_report_text(const addend_results* results, const char* key) ADDEND_NOEXCEPT;
/* Returns a note, one line that a reader of the results has to know; NULL behind the last one. Replays have them too,
 * which have no report. Borrowed. */
ADDEND_API const char* addend_results_note(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* Returns one of those notes that say that numbers may not mean what a reader takes them for; NULL behind the last one.
 * The other notes are remarks, on the preset that was chosen, say. Borrowed. */
ADDEND_API const char* addend_results_warning(const addend_results* results, size_t index) ADDEND_NOEXCEPT;
/* The report as a JSON object, {"format": "addend.report", "version": 1, ...}: policy, counts, errors, notes, tracing
 * failures, and every check, worst first. out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_results_report(const addend_results* results,
                                                                 addend_string** out_json) ADDEND_NOEXCEPT;
ADDEND_API void addend_results_release(addend_results* results) ADDEND_NOEXCEPT;

/* ---- Attributions: numbers, and what each element of the inputs contributed to them ------------------------------ */

/* Returns how many numbers are explained: the targets of the request, or one for each example. */
ADDEND_API size_t addend_attribution_num_targets(const addend_attribution* attribution) ADDEND_NOEXCEPT;
/* Explains one target by component, as addend_results_explain would. The leftover is what integrated gradients call the
 * convergence delta, with the opposite sign.
 * out: out_explanation (new).
 * errors: OUT_OF_RANGE. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_attribution_explain(
    const addend_attribution* attribution, size_t target, addend_explanation** out_explanation) ADDEND_NOEXCEPT;
/* Gives the explained tensor and then, for each input of the model by its name, the attributions of its elements:
 * [targets, *S], or [*S] where each example has a target (for ids one number each); ADDEND_RESULT_NONE for plain
 * inputs. The report is that of the run.
 * out: out_results (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_attribution_results(const addend_attribution* attribution,
                                                                      addend_results** out_results) ADDEND_NOEXCEPT;
/* Writes all targets into one JSON object, as addend_explanation_json does. Where the request asked for operators, the
 * object has "operators": [{"index", "operator", "output", "call", "program_call", "module_path", "passed",
 * "leftover"}], with numbers by target (one for all examples together).
 * out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_attribution_json(const addend_attribution* attribution,
                                                                   addend_string** out_json) ADDEND_NOEXCEPT;
/* Writes all targets into one page for a browser, as addend_explanation_html does.
 * out: out_html (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_attribution_html(const addend_attribution* attribution,
                                                                   addend_string** out_html) ADDEND_NOEXCEPT;
ADDEND_API void addend_attribution_release(addend_attribution* attribution) ADDEND_NOEXCEPT;

/* ---- Plans: an attribution made ready for many rows ---------------------------------------------------------------
 *
 * A plan fixes model, sizes, splits, baselines, targets and policy. The model runs when the plan is made; later rows go
 * through the operators that it called, with nothing looked up again. A plan gives the bits that addend_model_attribute
 * would give, or refuses. It keeps what the model's parameters were, and notices those that are written in place. Any
 * number of threads may use one plan at once. */

/* Plans attributions of requests like this one. If the request asks for the target of each example, later requests may
 * have another number of examples, for which the model runs once more; everything else keeps its size.
 * in: context (borrowed, may be NULL), model, request (borrowed).
 * out: out_plan (new).
 * errors: as addend_model_attribute; FAILED_PRECONDITION, with the position of an operator, where the model cannot be
 * planned: it draws random numbers, writes its own memory, gives sizes that depend on elements, or computes what no
 * operator shows; INVALID_ARGUMENT for a memory limit, several baselines, explicit parts, splits inside the model. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_model_plan(const addend_context* context, const addend_model* model,
                                                             const addend_request* request,
                                                             addend_plan** out_plan) ADDEND_NOEXCEPT;
/* Attributes the plan's targets for the inputs of a request. Of the request, only the names and values of its inputs,
 * its structure and its cancellation are looked at; inputs that are not split, and the structure with its plain values,
 * have to be as they were when the plan was made.
 * in: plan, request (borrowed).
 * out: out_attribution (new).
 * errors: INVALID_ARGUMENT for inputs of another size, dtype or device, for NaN and infinity, where an input that is
 * not split or the structure differs, and where the model fails on the inputs; FAILED_PRECONDITION where the model
 * would take another branch, or its parameters were written; CANCELLED. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_plan_attribute(const addend_plan* plan, const addend_request* request,
                                                                 addend_attribution** out_attribution) ADDEND_NOEXCEPT;
/* Attributes like addend_plan_attribute, into the caller's memory, without a handle for the result. A request that was
 * made once over memory of the caller's (addend_tensor_wrap) can be used again for each row that is written there.
 * in: plan, request (borrowed); contributions: a float64 tensor on the CPU, contiguous, over memory of the caller's
 * (addend_tensor_wrap, or DLPack that is not for reading only), with one number for each target and component,
 * [targets, components]; sums: the same [targets, 3], which gets value, reference and leftover of each target, or NULL.
 * errors: as addend_plan_attribute; INVALID_ARGUMENT for tensors that do not fit; INTERNAL where the parts of a target
 * do not add up, if the policy lets that pass elsewhere. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_plan_attribute_into(const addend_plan* plan,
                                                                      const addend_request* request,
                                                                      const addend_tensor* contributions,
                                                                      const addend_tensor* sums) ADDEND_NOEXCEPT;
ADDEND_API void addend_plan_release(addend_plan* plan) ADDEND_NOEXCEPT;

/* ---- Reasons: what people are told of a decision ------------------------------------------------------------------
 */

/* Reads a description of concepts: which components people are told of as one, which sign of a contribution speaks
 * against them, how many reasons are given and how large each has to be, and their texts. docs/reasons.md describes it.
 * A description serves any number of attributions and threads.
 * in: json: {"format": "addend.concepts", "version": 1, ...}.
 * out: out_concepts (new).
 * errors: INVALID_ARGUMENT for any other text, with the key or the concept; also for unknown placeholders in a text. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_concepts_read(const char* json,
                                                                addend_concepts** out_concepts) ADDEND_NOEXCEPT;
ADDEND_API void addend_concepts_release(addend_concepts* concepts) ADDEND_NOEXCEPT;
/* Finds the reasons of all targets of an attribution, or of all its examples: concepts with contributions of the sign
 * that the description asks for, the largest first, none below its threshold. Where nothing passes, there is none.
 * in: attribution, concepts (borrowed).
 * errors: INVALID_ARGUMENT where a concept names no component of the attribution, two concepts claim one, or a text
 * asks for a value that is no number of an input.
 * out: out_json (new), {"format": "addend.reasons", "version": 1, ..., "decisions": [...]}.
 * Fields of a decision:
 *   outcome: What came of it: "reasons" (there are some), "no_principal_reason" (nothing passes the threshold) or
 *     "not_finite" (numbers are not finite, so that no reason can be told).
 *   name: What is explained, for people.
 *   target: The same as a target's text.
 *   value: What the model computed.
 *   reference: What it is on the baseline.
 *   reasons: The largest first; none below the threshold.
 *   others: What all other concepts contribute together.
 *   leftover: What belongs to no concept.
 *   recovery_error: How far the sum of all parts is from the value.
 *   conditioning: The largest of the magnitudes of all parts and of the reference, over the value or the move,
 *     whichever is smaller.
 *   threshold: The least magnitude of a reason here.
 *   passing: How many concepts pass it, given as reasons or not.
 *   notes: What a reader of this decision has to know, one line each.
 * Fields of a reason:
 *   concept: Its name.
 *   code: What a catalogue of reasons calls it; empty where the description gives none.
 *   contribution: What its components contribute together.
 *   value: What the concept is in the input, as people are shown it; nothing where that is not known.
 *   unit: The unit of that value.
 *   baseline: The same of the baseline.
 *   text: The reason in words. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_attribution_reasons(const addend_attribution* attribution,
                                                                      const addend_concepts* concepts,
                                                                      addend_string** out_json) ADDEND_NOEXCEPT;
/* Finds the reasons of an explanation, also of one that was read, then of all targets that its document has. Such a
 * document tells values of components that are one number, where its writer knew them.
 * in: explanation, concepts (borrowed).
 * out: out_json (new), as of addend_attribution_reasons.
 * errors: as addend_attribution_reasons. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_explanation_reasons(const addend_explanation* explanation,
                                                                      const addend_concepts* concepts,
                                                                      addend_string** out_json) ADDEND_NOEXCEPT;
/* Writes a self-contained page for a browser from what addend_attribution_reasons or addend_explanation_reasons gave.
 * out: out_html (new).
 * errors: INVALID_ARGUMENT for any other text. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_reasons_html(const char* json,
                                                               addend_string** out_html) ADDEND_NOEXCEPT;

/* ---- Decision records: a log of what was decided and why, that can be checked later ------------------------------ */

/* Opens a log of decisions to append to it, or begins one; docs/audit.md says what a log is and what it can show. The
 * file is locked until the handle is released. What a crash left of a record that was never acknowledged is moved to
 * the file PATH.torn; the next record and addend_audit_log_state say so.
 * in: options: {"keep_inputs": false}, or NULL. keep_inputs: records hold the inputs themselves, so that they can be
 * computed again without anything but the model.
 * out: out_log (new). Any number of threads may use it at once.
 * errors: FAILED_PRECONDITION where the file is open as a log already, in this process or another, and where its last
 * record is damaged; INVALID_ARGUMENT for a file that is no log, which is left as it is, and for one that cannot be
 * written; NOT_FOUND where there is no such folder. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_audit_log_open(const char* path, const char* options,
                                                                 addend_audit_log** out_log) ADDEND_NOEXCEPT;
/* Appends one record: what the attribution says, what was asked, and digests of the model, the inputs and the request.
 * Once the call returns without an error the record is on the disk.
 * in: options: NULL, or {"context": any JSON that belongs to the decision, such as the number of an application;
 * "reasons": any JSON of reasons that were made of the contributions; "model_sha256": the digest of a model that
 * Addend did not load, as 64 hexadecimal digits; "salt", "time": for tests, what is otherwise drawn and read from the
 * clock, 64 hexadecimal digits and "2026-11-25T16:30:00.123456Z"}.
 * out: out_record (new): the line that was written, without its line end; its key "hash" is the end of the chain.
 * errors: INVALID_ARGUMENT where the file cannot be written, as on a full disk, in which case the log is as before, and
 * for options that are none of these; FAILED_PRECONDITION where something else wrote to the file or removed it, and
 * where the file that the model was loaded from is another one now. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_audit_log_append(addend_audit_log* log,
                                                                   const addend_attribution* attribution,
                                                                   const char* options,
                                                                   addend_string** out_record) ADDEND_NOEXCEPT;
/* Tells what the log ends with: {"path", "records": how many there are, "hash": that of the last one, or null,
 * "torn_bytes": how many were set aside when it was opened}. Keep the hash where the log is not: only it shows that a
 * log was not written anew from some record on (addend_audit_verify, "expect").
 * out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_audit_log_state(const addend_audit_log* log,
                                                                  addend_string** out_json) ADDEND_NOEXCEPT;
/* Verifies a log: reads every bit, names each record that is not as it was written, and computes records again where a
 * model is given. Writes nothing; somebody may have the log open.
 * in: options: NULL, or {"models": files and folders of models, whose records are computed again; "inputs": files of
 * tensors, in which inputs are found that records do not hold; "sample": how many records are computed again, drawn at
 * random (all unless given); "seed": of the draw; "expect": a hash that some record has to have}.
 * out: out_json (new), {"format": "addend.audit", "version": 1, "verified", "problems", "computed", ...}; see
 * docs/schemas.
 * errors: NOT_FOUND where there is no such file; INVALID_ARGUMENT for options that are none of these. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_audit_verify(const char* path, const char* options,
                                                               addend_string** out_json) ADDEND_NOEXCEPT;
/* Closes the log. Every record that was acknowledged is on the disk already. */
ADDEND_API void addend_audit_log_release(addend_audit_log* log) ADDEND_NOEXCEPT;

/* ---- Data sets: jobs, whose shards any engine may run; docs/jobs.md ---------------------------------------------- */

/* Makes the plan of a job: tries the request on the first rows, and takes the digests of all of them. Each row becomes
 * an example of its own. Whoever computes a shard has to have the same versions, BLAS, instructions and threads as
 * this process (addend_set_num_threads).
 * in: context (may be NULL); plan: where the plan is written, "rows.json"; results come beside it, in "rows.out";
 * model: a file or folder, as addend_model_load takes it, on every machine; request (borrowed): one row of each input,
 * [1, *row], with its split and its baseline, and targets; options: {"inputs": by input of the model a .npy or
 * .safetensors file whose tensor has the rows along dimension 0, "FILE" or "FILE#NAME"; "groups": tensors of integers
 * beside the first input, by which rows are put together; "dtype": what the numbers of the model are converted to;
 * "device": where workers compute: "cpu" (the default), or "cuda", the GPU that each worker is given; "names": of
 * components; "classes": of the elements of the output; "concepts": a description of concepts, whose reasons results
 * hold; "contributions": whether they hold those (true); "format": "safetensors" or "csv"; "stop_at_refusal": whether a
 * row that cannot be attributed ends its shard (false); "batch": rows that are attributed together (256); "shards": how
 * many (as many as take ten seconds each)}. All but "inputs" may be left out.
 * out: out_json (new), {"format": "addend.job_made", "version": 1, "rows", "shards", "rows_per_second", ...}; see
 * docs/schemas.
 * errors: NOT_FOUND where a file is missing; INVALID_ARGUMENT for requests and options that no job can have, and where
 * the plan cannot be written; FAILED_PRECONDITION where rows influence each other, and where the results of another
 * plan stand beside it; and what addend_model_attribute has. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_job_plan(const addend_context* context, const char* plan,
                                                           const char* model, const addend_request* request,
                                                           const char* options,
                                                           addend_string** out_json) ADDEND_NOEXCEPT;
/* Opens a plan to compute shards of it: loads the model.
 * in: plan: the file.
 * out: out_job (new). Threads may share one, and wait for each other: give each thread its own.
 * errors: NOT_FOUND where a file is missing; INVALID_ARGUMENT for what is no plan, or was changed; FAILED_PRECONDITION
 * where the model is another one, and where this process would compute other bits than the one that made the plan,
 * with what differs; UNIMPLEMENTED for rows of tables and folders of images, which the program addend reads. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_job_open(const char* plan, addend_job** out_job) ADDEND_NOEXCEPT;
/* How many shards there are; 0 for what is no job. */
ADDEND_API size_t addend_job_num_shards(const addend_job* job) ADDEND_NOEXCEPT;
/* Computes a shard and commits it, as a whole, under the digest of its bytes. One that is there already is left as it
 * is.
 * in: shard: from 0; options: {"again": true} computes one that is there once more, or NULL.
 * out: out_receipt (new), {"format": "addend.shard", "version": 1, "rows", "refused", "aggregates", ...}; see
 * docs/schemas.
 * errors: INVALID_ARGUMENT for a shard that there is not, where the result cannot be written, as on a full disk, and
 * where a row is refused and the plan stops at that; FAILED_PRECONDITION where rows are others than when the plan was
 * made, and where the results beside it are those of another plan; NOT_FOUND where the file of rows is gone. Nothing is
 * visible of a shard that failed. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_job_run(addend_job* job, int64_t shard, const char* options,
                                                          addend_string** out_receipt) ADDEND_NOEXCEPT;
/* Tells how far a job is. Reads the receipts of what is committed; needs no model.
 * in: plan: the file.
 * out: out_json (new), {"format": "addend.job_status", "version": 1, "shards", "done", "missing", "wrong", ...}; see
 * docs/schemas.
 * errors: NOT_FOUND where there is no such file; INVALID_ARGUMENT for what is no plan. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_job_status(const char* plan,
                                                             addend_string** out_json) ADDEND_NOEXCEPT;
/* Checks every shard by its digest, and puts all rows into one file, in their order.
 * in: plan: the file.
 * out: out_json (new), {"format": "addend.job_merged", "version": 1, "path", "sha256", "rows", ...}; see docs/schemas.
 * errors: as addend_job_status; FAILED_PRECONDITION where shards are missing, are damaged, belong to another plan, or
 * have two results, which names both machines. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_job_merge(const char* plan, addend_string** out_json) ADDEND_NOEXCEPT;
ADDEND_API void addend_job_release(addend_job* job) ADDEND_NOEXCEPT;

/* ---- Programs: what a model did, to be read, kept and run again -------------------------------------------------- */

/* Saves a program as a folder with program.json and weights.safetensors; makes the folder if there is none.
 * errors: UNIMPLEMENTED, with the position, for arguments that no file can hold. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_save(const addend_program* program,
                                                               const char* folder) ADDEND_NOEXCEPT;
/* Loads a saved program. Loading runs nothing, and refuses what is malformed or of another version. Running a program
 * runs the operators that the file names: run only what you trust.
 * out: out_program (new).
 * errors: NOT_FOUND. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_load(const char* folder,
                                                               addend_program** out_program) ADDEND_NOEXCEPT;
/* Makes a model of the program, to be run, decomposed and attributed without the model that was recorded.
 * in: program (shared).
 * out: out_model (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_model(const addend_program* program,
                                                                addend_model** out_model) ADDEND_NOEXCEPT;
/* Writes a TorchScript file, which LibTorch runs without this library: a module with a method forward() of the
 * program's inputs, and with the parameters and buffers that were read, by their names. Each run of the file begins
 * with these as they were when recorded.
 * errors: FAILED_PRECONDITION, with the position, for a program with a number that depends on elements and has left the
 * tensors, which such a file could not compare; UNIMPLEMENTED for what TorchScript does not have (plain values among
 * the inputs, models without values); NOT_FOUND where its folder is missing, INVALID_ARGUMENT where the file cannot be
 * written otherwise. What was there is replaced whole or not at all. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_export_torchscript(const addend_program* program,
                                                                             const char* path) ADDEND_NOEXCEPT;
/* Converts a program: every floating-point tensor to the floating-point type `dtype`, complex tensors to the complex
 * type of it; integers and bools stay. The result is replayed on inputs of these types, and stops at an operator that
 * gives another type.
 * in: program (shared).
 * out: out_copy (new).
 * errors: INVALID_ARGUMENT where `dtype` is no floating-point type; UNIMPLEMENTED where memory is seen as
 * floating-point numbers and as something else. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_to(const addend_program* program, int32_t dtype,
                                                             addend_program** out_copy) ADDEND_NOEXCEPT;
/* Lists everything that a replay with the inputs of the request lacks, as addend_model_requirements does for a run.
 * in: context (borrowed, may be NULL), program, request (borrowed).
 * out: out_json (new), as there. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_requirements(const addend_context* context,
                                                                       const addend_program* program,
                                                                       const addend_request* request,
                                                                       addend_string** out_json) ADDEND_NOEXCEPT;
/* Runs the program on other inputs.
 * in: options: {"values": [names of inner values that are wanted], "every_value": false, "guards": true,
 * "guard_tolerance": 0, "out_of_place": false}, as described at addend_program_code_text. out_of_place: every write
 * goes into a copy of the memory, so that inner values stay as they were made.
 * out: out_results (new), the outputs as addend_model_run gives them, then the values by their names.
 * errors: NOT_FOUND for a name that the program does not have; FAILED_PRECONDITION, with the position, where a number
 * that left the tensors is another one than in the recording (unless "guards" is false); INVALID_ARGUMENT for inputs
 * that are not like those of the recording. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_replay(const addend_program* program,
                                                                 const addend_request* request, const char* options,
                                                                 addend_results** out_results) ADDEND_NOEXCEPT;
/* Returns how many operators the program calls. */
ADDEND_API size_t addend_program_num_operators(const addend_program* program) ADDEND_NOEXCEPT;
/* Returns how many tensors the program has. */
ADDEND_API size_t addend_program_num_values(const addend_program* program) ADDEND_NOEXCEPT;
/* Returns the name of a tensor, which is unique; NULL where there is none. Borrowed. */
ADDEND_API const char* addend_program_value_name(const addend_program* program, size_t index) ADDEND_NOEXCEPT;
/* Returns what a tensor is: "input", "parameter", "buffer", "constant", "result" or "part"; NULL where there is none.
 * Borrowed. */
ADDEND_API const char* addend_program_value_kind(const addend_program* program, size_t index) ADDEND_NOEXCEPT;
/* Returns how many tensors the program gives. */
ADDEND_API size_t addend_program_num_outputs(const addend_program* program) ADDEND_NOEXCEPT;
/* Returns the name of an output, which its result has: see addend_results_name; NULL where there is none. Borrowed. */
ADDEND_API const char* addend_program_output_name(const addend_program* program, size_t index) ADDEND_NOEXCEPT;
/* Returns the dtype of an output, as in addend_dtype; 0 where there is none. */
ADDEND_API int32_t addend_program_output_dtype(const addend_program* program, size_t index) ADDEND_NOEXCEPT;
/* Returns the number of dimensions of an output. */
ADDEND_API size_t addend_program_output_num_dims(const addend_program* program, size_t index) ADDEND_NOEXCEPT;
/* Returns the size of a dimension of an output in the recording (other inputs may give another one); -1 where there is
 * no such dimension. */
ADDEND_API int64_t addend_program_output_size(const addend_program* program, size_t index, size_t dim) ADDEND_NOEXCEPT;
/* Writes a summary of the program as JSON.
 * out: out_json (new), {"format": "addend.program_summary", "version": 1, "operators": 7, "inputs": [{"name",
 * "structure"}], "output", "values": [{"name", "kind", "dtype", "shape"}], "guards": [{"kind", "call", "value",
 * "position"}], "free": [{"input", "dim", "like"}]}. `free` has the dimensions of inputs that may have another size,
 * with the dimension (a position in the list, or null) whose size they share. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_summary(const addend_program* program,
                                                                  addend_string** out_json) ADDEND_NOEXCEPT;
/* Prints the operators of the program as text, each under the source lines that called it; see docs/tracing.md.
 * in: options: here and elsewhere a JSON object in which every key may be left out, or NULL; unknown keys are refused.
 * Here, with the defaults: {"succinct": true, "color": false, "names": false, "marks": false, "include": [], "exclude":
 * [LibTorch's Python package], "numbers": []}. include, exclude: patterns for the files of lines, in which a star
 * stands for anything. numbers: what is known of the operators, [{"name": "time", "unit": "seconds", "values": [one for
 * each operator, or null]}]; the unit is "", "seconds" or "bytes".
 * out: out_text (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_code_text(const addend_program* program, const char* options,
                                                                    addend_string** out_text) ADDEND_NOEXCEPT;
/* Writes what addend_program_code_text prints as JSON, for programs.
 * in: options: as there.
 * out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_code_json(const addend_program* program, const char* options,
                                                                    addend_string** out_json) ADDEND_NOEXCEPT;
/* Writes the graph of the program as JSON: nodes in topological order, and edges.
 * in: options: {"numbers": []}.
 * out: out_json (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_graph_json(const addend_program* program, const char* options,
                                                                     addend_string** out_json) ADDEND_NOEXCEPT;
/* Writes the graph of the program for Graphviz.
 * in: options: {"sources": false, "modules": true}: parameters, buffers and constants as nodes, and modules as boxes.
 * out: out_dot (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_graph_dot(const addend_program* program, const char* options,
                                                                    addend_string** out_dot) ADDEND_NOEXCEPT;
/* Writes the graph of the program as a self-contained page for a browser.
 * in: options: {"title": "program", "numbers": []}.
 * out: out_html (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_program_graph_html(const addend_program* program, const char* options,
                                                                     addend_string** out_html) ADDEND_NOEXCEPT;
ADDEND_API void addend_program_release(addend_program* program) ADDEND_NOEXCEPT;

/* ---- Traces: live models ----------------------------------------------------------------------------------------- */

/* Begins a trace of a live model: until addend_trace_end every LibTorch operator that this thread calls is recorded,
 * whichever code calls it: a Python model in this process, C++, or addend_call on plain tensors. Operators run as
 * usual. The inputs of the request are the live tensors, recognized by their memory: contiguous, the whole of their
 * storage, each on memory of its own. The run may write them; hand in copies where that matters.
 * in: context (borrowed, may be NULL), request (borrowed).
 * out: out_trace (new).
 * errors: FAILED_PRECONDITION where this thread is traced already. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_begin(const addend_context* context,
                                                              const addend_request* request,
                                                              addend_trace** out_trace) ADDEND_NOEXCEPT;
/* Sets where in the model the thread is now, for reports, probes and policy: "encoder.layers.3"; "" outside.
 * thread: that of addend_trace_begin. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_set_module(addend_trace* trace,
                                                                   const char* module_path) ADDEND_NOEXCEPT;
/* Tells what a module has returned, when it has: one tensor after the other, in the order of their nesting. The path of
 * the module then means these tensors in probes, targets and splits, and in a recorded program too.
 * in: index: of the tensor among those that the module returns; 0 begins another call of the module. tensor (shared,
 * may be NULL): NULL as index 0 where the module returns none, else where it cannot be handed over. Those and tensors
 * that no recorded operator has met count, and cannot be asked for.
 * errors: INVALID_ARGUMENT where the indices of a call do not count up from 0.
 * thread: that of addend_trace_begin. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_add_module_output(addend_trace* trace, const char* module_path,
                                                                          int64_t index,
                                                                          const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Names a live tensor, recognized by its memory, whose composition is wanted.
 * in: tensor (shared).
 * errors: NOT_FOUND where no recorded operator has met that memory.
 * thread: that of addend_trace_begin. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_add_output(addend_trace* trace, const char* name,
                                                                   const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Ends the recording and decomposes the outputs, in order, then the probes. Fails with the first error of the
 * recording, if there was one.
 * out: out_results (new).
 * errors: as addend_model_decompose.
 * thread: that of addend_trace_begin. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_end(addend_trace* trace,
                                                            addend_results** out_results) ADDEND_NOEXCEPT;
/* Begins a trace as addend_trace_begin does, to end with addend_trace_end_attribution. It takes the targets of the
 * request; probes are not looked at.
 * in: context (borrowed, may be NULL), request (borrowed).
 * out: out_trace (new).
 * errors: FAILED_PRECONDITION where this thread is traced already. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_begin_attribution(const addend_context* context,
                                                                          const addend_request* request,
                                                                          addend_trace** out_trace) ADDEND_NOEXCEPT;
/* Ends the recording and attributes the targets, which are elements of the first output that was named, or of the
 * tensor that the option at names: an output by its name, or an inner tensor.
 * out: out_attribution (new).
 * errors: as addend_model_attribute.
 * thread: that of addend_trace_begin_attribution. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_end_attribution(
    addend_trace* trace, addend_attribution** out_attribution) ADDEND_NOEXCEPT;
/* Ends the recording and plans attributions as addend_trace_end_attribution would give, for inputs of the same sizes.
 * What addend_trace_add_on_baseline told is compared with what the plan computes there.
 * out: out_plan (new).
 * errors: as addend_model_plan; FAILED_PRECONDITION also where notes were added to the trace.
 * thread: that of addend_trace_begin_attribution. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_end_plan(addend_trace* trace,
                                                                 addend_plan** out_plan) ADDEND_NOEXCEPT;
/* Begins the second run of the model, where the request splits a tensor inside the model. The first run has found that
 * tensor, and its outputs were named. The model now runs once more, with the same numbers (random ones included); the
 * second run is decomposed or attributed, and its outputs are to be named again.
 * errors: INVALID_ARGUMENT where nothing inside has the name of the split; FAILED_PRECONDITION where nothing inside is
 * split.
 * thread: that of the beginning. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_again(addend_trace* trace) ADDEND_NOEXCEPT;
/* Adds a line to the notes of the report: what the caller did to the model, for example. Not for traces that become
 * programs. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_add_note(addend_trace* trace, const char* note) ADDEND_NOEXCEPT;
/* Gives what the model would be given as the baseline of an input, and ends the recording, so that the caller may run
 * the model there. addend_trace_add_on_baseline then takes what the model gave for outputs that are named already, and
 * the trace is ended as usual. The caller restores the random numbers and buffers of the recorded run.
 * in: input: the number of the input.
 * out: out_baseline (new).
 * errors: INVALID_ARGUMENT where there is no such input and where a split starts inside the model; FAILED_PRECONDITION
 * for traces that become programs. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_baseline(addend_trace* trace, size_t input,
                                                                 addend_tensor** out_baseline) ADDEND_NOEXCEPT;
/* Takes what the model gave on the baseline for an output; see addend_trace_baseline.
 * in: tensor (copied).
 * errors: NOT_FOUND where no output has that name. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_add_on_baseline(addend_trace* trace, const char* name,
                                                                        const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Asks the caller for its own source lines, at every operator outside TorchScript; they are given with
 * addend_frames_add. It must not throw.
 * in: frames (lives as long as the callback).
 * out: 0 to go on. Any other number ends the recording with ADDEND_UNKNOWN and that number as payload "callback". */
typedef int32_t(ADDEND_CALL* addend_frames_fn)(void* payload, addend_frames* frames);
/* Adds the next source line, the outermost first.
 * in: line: counts from 1; text: the line without its indentation, of which `length` bytes from `column` on are the
 * expression that runs. NULL, 0 and -1 where they are not known. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_frames_add(addend_frames* frames, const char* file, int64_t line,
                                                             const char* function, const char* text, int64_t column,
                                                             int64_t length) ADDEND_NOEXCEPT;
/* Sets who gives the source lines of a trace that decomposes or attributes, so that notes can name the line that
 * derives conditions, indices and numbers; NULL: nobody, the default. The callback is asked at operators that read or
 * give integers and bools only.
 * in: release: as in addend_context_options_set_log.
 * errors: FAILED_PRECONDITION for traces that become programs, and on another thread. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_set_frames(addend_trace* trace, addend_frames_fn frames,
                                                                   void* payload,
                                                                   addend_release_fn release) ADDEND_NOEXCEPT;
/* Begins a trace as addend_trace_begin does, to end with addend_trace_end_program: what the thread computes becomes a
 * program. The inputs of the request, whose splits are not looked at, become those of the program; parameters have the
 * names that the request gives them; tensors from elsewhere are constants.
 * in: request (borrowed); frames: may be NULL; release: as in addend_context_options_set_log.
 * out: out_trace (new).
 * errors: FAILED_PRECONDITION where this thread is traced already. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_record(const addend_request* request, addend_frames_fn frames,
                                                               void* payload, addend_release_fn release,
                                                               addend_trace** out_trace) ADDEND_NOEXCEPT;
/* Shows what a trace that becomes a program records: from now on, every operator once it has finished, as
 * addend_program_code_text prints it. Such a trace need not become one; addend_trace_release ends it.
 * in: options: as there, without names and numbers; log: is given ADDEND_LOG_INFO and the lines of one operator, each
 * ending in a newline, on the thread of the trace; release: as in addend_context_options_set_log.
 * errors: INVALID_ARGUMENT for names and numbers, which are not known before the end; FAILED_PRECONDITION for traces
 * that decompose or attribute, and on another thread. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_show_code(addend_trace* trace, const char* options,
                                                                  addend_log_fn log, void* payload,
                                                                  addend_release_fn release) ADDEND_NOEXCEPT;
/* Ends the recording and gives the program. Its outputs are those of addend_trace_add_output, in order; integers and
 * bools may be among them.
 * out: out_program (new).
 * errors: NOT_FOUND where no recorded operator has met the memory of an output; UNIMPLEMENTED with the position of what
 * cannot be recorded.
 * thread: that of addend_trace_record. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_trace_end_program(addend_trace* trace,
                                                                    addend_program** out_program) ADDEND_NOEXCEPT;
/* Runs a live model on these inputs and records the run, from addend_trace_record to addend_trace_end_program, for
 * addend_live_record and addend_live_check_trace. It must not throw.
 * in: example: which of the request's examples the inputs are, or which they were cut from; inputs (borrowed while it
 * runs; the run may write them).
 * out: out_program (the callback's; it has to live until the callback is called again, or until the function that
 * called it has returned). 0 to go on; any other number ends with ADDEND_UNKNOWN and that number as payload "callback".
 */
typedef int32_t(ADDEND_CALL* addend_record_fn)(void* payload, size_t example, const addend_tensor* const* inputs,
                                               size_t num_inputs, addend_program** out_program);
/* Records a live model with several examples, as addend_model_record does; with one example, it derives others from it
 * as the option learn_sizes says.
 * in: request (borrowed), whose inputs are tensors without a structure.
 * out: out_program (new).
 * thread: that of the model. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_live_record(const addend_request* request, addend_record_fn record,
                                                              void* payload,
                                                              addend_program** out_program) ADDEND_NOEXCEPT;
/* Checks recordings of a live model, as addend_model_check_trace does.
 * in: request: as in addend_live_record; options: as in addend_model_check_trace.
 * out: out_json (new).
 * thread: that of the model. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_live_check_trace(const addend_request* request, const char* options,
                                                                   addend_record_fn record, void* payload,
                                                                   addend_string** out_json) ADDEND_NOEXCEPT;
/* Releases the trace, and ends its recording if nothing has yet. */
ADDEND_API void addend_trace_release(addend_trace* trace) ADDEND_NOEXCEPT;

/* ---- Operators by name ------------------------------------------------------------------------------------------- */

/* Makes an empty list of arguments.
 * out: out_arguments (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_create(addend_arguments** out_arguments) ADDEND_NOEXCEPT;
/* Adds an argument, as all functions of this name do: where `name` is NULL the next one in the order of the schema,
 * otherwise the one of that name. Between addend_arguments_begin_list and addend_arguments_end_list it adds an element.
 * in: composition (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_composition(
    addend_arguments* arguments, const char* name, const addend_composition* composition) ADDEND_NOEXCEPT;
/* Adds a tensor.
 * in: tensor (shared). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_tensor(addend_arguments* arguments, const char* name,
                                                                       const addend_tensor* tensor) ADDEND_NOEXCEPT;
/* Adds None. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_none(addend_arguments* arguments,
                                                                     const char* name) ADDEND_NOEXCEPT;
/* Adds an integer. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_i64(addend_arguments* arguments, const char* name,
                                                                    int64_t value) ADDEND_NOEXCEPT;
/* Adds a floating-point number. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_f64(addend_arguments* arguments, const char* name,
                                                                    double value) ADDEND_NOEXCEPT;
/* Adds a bool, 0 or 1. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_bool(addend_arguments* arguments, const char* name,
                                                                     int32_t value) ADDEND_NOEXCEPT;
/* Adds a text. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_str(addend_arguments* arguments, const char* name,
                                                                    const char* value) ADDEND_NOEXCEPT;
/* Adds a dtype, as in addend_dtype. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_dtype(addend_arguments* arguments, const char* name,
                                                                      int32_t dtype) ADDEND_NOEXCEPT;
/* Adds a list of integers. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_add_i64s(addend_arguments* arguments, const char* name,
                                                                     const int64_t* values,
                                                                     size_t num_values) ADDEND_NOEXCEPT;
/* Begins a list; its elements are the arguments that are added up to addend_arguments_end_list. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_begin_list(addend_arguments* arguments,
                                                                       const char* name) ADDEND_NOEXCEPT;
/* Ends the list that addend_arguments_begin_list began. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_arguments_end_list(addend_arguments* arguments) ADDEND_NOEXCEPT;
ADDEND_API void addend_arguments_release(addend_arguments* arguments) ADDEND_NOEXCEPT;

/* Calls an operator on compositions, which may stand wherever the schema wants a tensor; without any the operator just
 * runs. An operator that writes its argument ("aten::add_") gives the new state as its result; what was passed stays as
 * it was. While this thread records a trace, a call on plain tensors is part of the trace.
 * Results have the warnings of runs that gave compositions among the arguments, too.
 * in: context (borrowed, may be NULL); op: "aten::add.Tensor", or "aten::add" where the arguments tell the overload;
 * arguments (borrowed).
 * out: out_results (new).
 * errors: NOT_FOUND; UNIMPLEMENTED; INTERNAL on a tracing failure; FAILED_PRECONDITION for compositions while this
 * thread records a trace. */
ADDEND_API ADDEND_NODISCARD addend_status* addend_call(const addend_context* context, const char* op,
                                                       const addend_arguments* arguments,
                                                       addend_results** out_results) ADDEND_NOEXCEPT;
/* Computes the exact Shapley values of the components for the first result of such a call, by 2^numc runs.
 * in: arguments (borrowed), with at most 16 components.
 * out: out_composition (new). */
ADDEND_API ADDEND_NODISCARD addend_status* addend_call_shapley(const char* op, const addend_arguments* arguments,
                                                               addend_composition** out_composition) ADDEND_NOEXCEPT;

/* Returns how many operators have a rule. */
ADDEND_API size_t addend_op_count(void) ADDEND_NOEXCEPT;
/* Returns the name of an operator that has a rule, in the order of names: "aten::softmax"; NULL where there is none.
 * Borrowed, for ever. */
ADDEND_API const char* addend_op_name(size_t index) ADDEND_NOEXCEPT;
/* Returns the kind of its rule: "path"; NULL where there is none. Borrowed, for ever. */
ADDEND_API const char* addend_op_kind(size_t index) ADDEND_NOEXCEPT;
/* Returns the schemas that the rule serves in this LibTorch, one a line; NULL where there is none. Borrowed, for ever.
 */
ADDEND_API const char* addend_op_schema(size_t index) ADDEND_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ADDEND_C_API_ADDEND_H_ */
