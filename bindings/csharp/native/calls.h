// Calls of the library from C#, which the generated wrapper is made of, and what becomes of them when the process
// exits.
#ifndef ADDEND_BINDINGS_CSHARP_NATIVE_CALLS_H_
#define ADDEND_BINDINGS_CSHARP_NATIVE_CALLS_H_

#include <cstddef>

#define ADDEND_CSHARP_EXPORT extern "C" __attribute__((visibility("default")))

namespace addend_csharp {

// RAII: a call, as long as it takes. Threads of .NET go on while exit() runs the destructors of LibTorch: a call would
// use what is gone. So exit() waits for calls (csharp_at_exit), and no call begins or returns afterwards: its thread
// stays in it and ends with the process. An exception instead, which nobody catches, would abort the process.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
};

}  // namespace addend_csharp

// Makes exit(), before it runs any destructor, cancel what is given and wait for calls, for three seconds at most.
// Where a call of another thread goes on, the process ends right then, with its exit code and without destructors.
// cancellations: addend_cancellation handles; those released meanwhile are passed over.
ADDEND_CSHARP_EXPORT void csharp_at_exit(void* const* cancellations, size_t count);

#endif  // ADDEND_BINDINGS_CSHARP_NATIVE_CALLS_H_
