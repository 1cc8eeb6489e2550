// The functions that the stub does not hand on unseen: those of statuses, which may be its own, and those about the
// LibTorch that is loaded, or to be loaded.
#include "c_api/stub/libtorch.h"
#include "c_api/stub/open.h"
#include "c_api/stub/refusal.h"

ADDEND_API int32_t addend_status_code(const addend_status* status) {
  if (status == NULL) return ADDEND_OK;
  if (addend_refusal_message(status) != NULL) return ADDEND_FAILED_PRECONDITION;
  const struct addend_functions* to = addend_opened();
  return to == NULL ? (int32_t)ADDEND_INVALID_ARGUMENT : to->addend_status_code(status);
}

ADDEND_API const char* addend_status_message(const addend_status* status) {
  if (status == NULL) return "";
  const char* refusal = addend_refusal_message(status);
  if (refusal != NULL) return refusal;
  const struct addend_functions* to = addend_opened();
  return to == NULL ? "status was released" : to->addend_status_message(status);
}

ADDEND_API const char* addend_status_detail(const addend_status* status) {
  const struct addend_functions* to = addend_opened();
  if (status == NULL || to == NULL || addend_refusal_message(status) != NULL) return "";
  return to->addend_status_detail(status);
}

ADDEND_API const char* addend_status_payload(const addend_status* status, const char* key) {
  const struct addend_functions* to = addend_opened();
  if (status == NULL || to == NULL || addend_refusal_message(status) != NULL) return NULL;
  return to->addend_status_payload(status, key);
}

ADDEND_API const char* addend_status_payload_key(const addend_status* status, size_t index) {
  const struct addend_functions* to = addend_opened();
  if (status == NULL || to == NULL || addend_refusal_message(status) != NULL) return NULL;
  return to->addend_status_payload_key(status, index);
}

ADDEND_API void addend_status_release(addend_status* status) {
  const struct addend_functions* to = addend_opened();
  if (status != NULL && to != NULL && addend_refusal_message(status) == NULL) to->addend_status_release(status);
}

ADDEND_API const char* addend_libtorch_version(void) {
  const struct addend_functions* opened = addend_opened();
  const struct addend_functions* to = opened != NULL ? opened : addend_open().functions;
  return to == NULL ? "" : to->addend_libtorch_version();
}

ADDEND_API addend_status* addend_load_libtorch(const char* folder) {
  const struct addend_functions* to = addend_opened();
  if (to == NULL) {
    const struct addend_opening opening = addend_open_from(folder);
    if (opening.functions == NULL) return opening.refusal;
    to = opening.functions;
  }
  return to->addend_load_libtorch(folder);
}

ADDEND_API int32_t addend_libtorch_is_loaded(void) {
  struct addend_loaded loaded;
  addend_find_loaded("libtorch_cpu", &loaded);
  if (loaded.count == 0) addend_find_loaded("libc10", &loaded);
  return loaded.count != 0;
}
