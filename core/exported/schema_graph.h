// Graphs, nodes, arguments and what is known about tensors, from the JSON of an exported program.
#ifndef ADDEND_CORE_EXPORTED_SCHEMA_GRAPH_H_
#define ADDEND_CORE_EXPORTED_SCHEMA_GRAPH_H_

#include "core/exported/json_reader.h"
#include "core/exported/program.h"

namespace addend::exported {

// Reads a graph, and those within it. Every value that it uses is an input of it or made by a node before.
Graph ReadGraph(JsonReader& json);

// Reads one of the alternatives of the schema's Argument.
Argument ReadArgument(JsonReader& json);
// Reads {"name": NAME}, a tensor or token.
Argument ReadNamed(JsonReader& json, const char* tag);

// Reads what is known about a tensor. `strided`: throws Unimplemented where its layout is another.
TensorMeta ReadTensorMeta(JsonReader& json, bool strided);

}  // namespace addend::exported

#endif  // ADDEND_CORE_EXPORTED_SCHEMA_GRAPH_H_
