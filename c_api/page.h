// tools/addend/page/page.html, compiled in.
#ifndef ADDEND_C_API_PAGE_H_
#define ADDEND_C_API_PAGE_H_

namespace addend::c_api {

extern const char kPage[];

}  // namespace addend::c_api

#endif  // ADDEND_C_API_PAGE_H_
