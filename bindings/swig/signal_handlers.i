/* A virtual machine lives by its signal handlers: a null reference is a SIGSEGV that it turns into an exception. The
 * LibTorch of some distributions brings UCX (through MPI), which takes them over while it is loaded, before any code of
 * ours runs. What this library needs is loaded before it: here they are given back. */
%{
#include <dlfcn.h>

namespace {

__attribute__((constructor)) void GiveBackSignalHandlers() {
  if (void* const disable = dlsym(RTLD_DEFAULT, "ucs_debug_disable_signals")) {
    reinterpret_cast<void (*)()>(disable)();
  }
}

}  // namespace
%}
