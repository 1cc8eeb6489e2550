// An implementation for the test of the stub: it says which one it is, and has a status of its own.
#include <stddef.h>
#include <string.h>

#include "c_api/stub/implementation.h"

#ifdef NEEDS_LIBTORCH
extern int addend_test_libtorch(void);
int addend_test_use(void);
int addend_test_use(void) { return addend_test_libtorch(); }
#endif

// A function of LibTorch with the C++ ABI that this one was built for.
#ifdef BUILD_OPTIONS
extern void BUILD_OPTIONS(void);
void (*addend_test_build_options(void))(void);
void (*addend_test_build_options(void))(void) { return BUILD_OPTIONS; }
#endif

#ifndef DIGEST
#define DIGEST ADDEND_FUNCTIONS_DIGEST
#endif

static char own_status;

#ifdef REFUSES
static addend_status* Check(void) { return (addend_status*)&own_status; }
#else
static addend_status* Check(void) { return NULL; }
#endif
static addend_status* SucceedFrom(const char* folder) {
  (void)folder;
  return NULL;
}
static const char* Version(void) { return VERSION; }
static const char* ShowConfig(void) { return "LibTorch " VERSION ".9\n  devices: those of the implementation"; }
static addend_status* Fail(addend_request** out) {
  (void)out;
  return (addend_status*)&own_status;
}
static int32_t Code(const addend_status* status) { return (const char*)status == &own_status ? ADDEND_NOT_FOUND : -1; }
static const char* Message(const addend_status* status) {
  return (const char*)status == &own_status ? "of the implementation" : "of nobody";
}
static void Release(addend_status* status) { (void)status; }
static size_t Count(void) { return strlen(VERSION); }

ADDEND_API const struct addend_implementation addend_implementation = {
    .digest = DIGEST,
    .functions = {.addend_check_libtorch = Check,
                  .addend_load_libtorch = SucceedFrom,
                  .addend_libtorch_version = Version,
                  .addend_show_config = ShowConfig,
                  .addend_request_create = Fail,
                  .addend_status_code = Code,
                  .addend_status_message = Message,
                  .addend_status_release = Release,
                  .addend_op_count = Count},
};
