// The release of the library, which stub and implementation tell alike.
#include "c_api/addend.h"

ADDEND_API int32_t addend_abi_version(void) { return ADDEND_ABI_VERSION; }
ADDEND_API int32_t addend_abi_min_version(void) { return 1; }
ADDEND_API const char* addend_version(void) { return ADDEND_VERSION; }
