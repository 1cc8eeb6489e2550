// page/page.html, compiled in.
#ifndef ADDEND_TOOLS_ADDEND_PAGE_TEMPLATE_H_
#define ADDEND_TOOLS_ADDEND_PAGE_TEMPLATE_H_

namespace addend::cli {

extern const char kPageTemplate[];

}  // namespace addend::cli

#endif  // ADDEND_TOOLS_ADDEND_PAGE_TEMPLATE_H_
