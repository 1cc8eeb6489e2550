// Statuses of calls that reach no implementation. They need none, and are never released.
#ifndef ADDEND_C_API_STUB_REFUSAL_H_
#define ADDEND_C_API_STUB_REFUSAL_H_

#include "c_api/addend.h"

// The status that says `message`, with the code ADDEND_FAILED_PRECONDITION: the same one for the same message.
addend_status* addend_refusal(const char* message);

// The message of such a status; NULL for every other status.
const char* addend_refusal_message(const addend_status* status);

#endif  // ADDEND_C_API_STUB_REFUSAL_H_
