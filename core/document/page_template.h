// The pages of page/, compiled in: page.html, reasons.html, interactions.html, job_report.html.
#ifndef ADDEND_CORE_DOCUMENT_PAGE_TEMPLATE_H_
#define ADDEND_CORE_DOCUMENT_PAGE_TEMPLATE_H_

namespace addend {

extern const char kPageTemplate[];
extern const char kReasonsPageTemplate[];
extern const char kInteractionsPageTemplate[];
extern const char kJobReportPageTemplate[];

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_PAGE_TEMPLATE_H_
