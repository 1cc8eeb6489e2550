// The pages of page/, compiled in: page.html, reasons.html, interactions.html.
#ifndef ADDEND_CORE_DOCUMENT_PAGE_TEMPLATE_H_
#define ADDEND_CORE_DOCUMENT_PAGE_TEMPLATE_H_

namespace addend {

extern const char kPageTemplate[];
extern const char kReasonsPageTemplate[];
extern const char kInteractionsPageTemplate[];

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_PAGE_TEMPLATE_H_
