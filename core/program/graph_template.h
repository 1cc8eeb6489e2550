// page/graph.html, compiled in.
#ifndef ADDEND_CORE_PROGRAM_GRAPH_TEMPLATE_H_
#define ADDEND_CORE_PROGRAM_GRAPH_TEMPLATE_H_

namespace addend {

extern const char kGraphTemplate[];

}  // namespace addend

#endif  // ADDEND_CORE_PROGRAM_GRAPH_TEMPLATE_H_
