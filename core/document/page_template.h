// page/page.html, compiled in.
#ifndef ADDEND_CORE_DOCUMENT_PAGE_TEMPLATE_H_
#define ADDEND_CORE_DOCUMENT_PAGE_TEMPLATE_H_

namespace addend {

extern const char kPageTemplate[];

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_PAGE_TEMPLATE_H_
