// Interactions as JSON, and the page that shows them.
#ifndef ADDEND_CORE_DOCUMENT_INTERACTIONS_JSON_H_
#define ADDEND_CORE_DOCUMENT_INTERACTIONS_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/document/concepts.h"
#include "core/document/explanation.h"
#include "core/document/report_json.h"
#include "core/explain/interactions.h"

namespace addend {

// The group of each component, as AttributeInteractions() takes it: its concept's number.
std::vector<int64_t> GroupsOf(const std::vector<BoundConcept>& concepts, size_t numc);

// {"format": "addend.interactions", "version": 1, ...}. concepts: the groups.
Json InteractionsJson(const Interactions& interactions, const std::vector<BoundConcept>& concepts,
                      const ExplainedRun& run, const std::string& at, const Writer& writer);
// The page that shows them, from the text of their document; it needs nothing else. Throws InvalidArgument for any
// other text.
std::string InteractionsHtml(const std::string& json);

}  // namespace addend

#endif  // ADDEND_CORE_DOCUMENT_INTERACTIONS_JSON_H_
