"""The graph of a program goes where graphs go."""

import os
import stat
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from unittest import mock

import torch
from torch import nn

import addend

try:
    import networkx
except ImportError:
    networkx = None

SPACE = {"g": "http://graphml.graphdrawing.org/xmlns"}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm1d(2)

    def forward(self, x):
        y = self.norm(self.conv(x))
        y[:, 0] += 1
        return y * y, y.flatten(1).softmax(-1)


class GraphTest(unittest.TestCase):
    def setUp(self):
        self.program = addend.compile(Model().eval()).record(torch.rand(2, 1, 5))
        self.graph = self.program.graph()
        self.names = [node["name"] for node in self.graph["nodes"]]
        self.edges = [(self.names[edge["from"]], self.names[edge["to"]], edge["argument"]) for edge in self.graph["edges"]]

    def test_graphml(self):
        count = self.program.num_operators
        text = self.program.graphml(numbers={"time": ("seconds", [0.5] * (count - 1) + [None]), "a<b": [2.0] * count})
        root = ElementTree.fromstring(text.encode("utf-8"))
        keys = {key.get("id"): (key.get("attr.name"), key.get("attr.type")) for key in root.findall("g:key", SPACE)}
        read = {}
        for node in root.findall("g:graph/g:node", SPACE):
            read[node.get("id")] = {keys[data.get("key")]: data.text or "" for data in node.findall("g:data", SPACE)}
        self.assertEqual(list(read), self.names)
        conv = read["conv1d"]
        self.assertEqual(conv["operator", "string"], "aten::conv1d")
        self.assertEqual(conv["tensors", "string"], "f32[2, 2, 5]")
        self.assertEqual(conv["arguments", "string"], "padding=[1]")
        self.assertEqual(conv["module_path", "string"], "conv")
        self.assertEqual(conv["view", "boolean"], "false")
        self.assertEqual((conv["time", "double"], conv["a<b", "double"]), ("0.5", "2.0"))
        self.assertNotIn(("time", "double"), read["softmax"])
        edges = root.findall("g:graph/g:edge", SPACE)
        argument = {key: name for key, (name, _) in keys.items()}
        found = []
        for edge in edges:
            data = {argument[one.get("key")]: one.text for one in edge.findall("g:data", SPACE)}
            found.append((edge.get("source"), edge.get("target"), data.get("argument")))
            self.assertEqual(data["kind"], self.graph["edges"][len(found) - 1]["kind"])
        self.assertEqual(found, self.edges)
        self.assertIn(("mul", "other"), [(target, argument) for _, target, argument in found])
        with self.assertRaisesRegex(addend.InvalidArgument, "depth is an attribute of nodes"):
            self.program.graphml(numbers={"depth": [1.0] * count})

    def test_graphml_of_names_that_xml_cannot_hold(self):
        model = nn.Module()
        model.add_module('in<"\x01', nn.Linear(3, 2))
        model.forward = model._modules['in<"\x01'].forward
        program = addend.compile(lambda x, net=model: net._modules['in<"\x01'](x)).record(torch.rand(1, 3))
        with addend.recording(torch.rand(1, 3), model=model) as trace:
            trace.output(model._modules['in<"\x01'](trace.inputs[0]))
        ElementTree.fromstring(program.graphml().encode("utf-8"))
        root = ElementTree.fromstring(trace.program.graphml().encode("utf-8"))
        ids = [node.get("id") for node in root.findall("g:graph/g:node", SPACE)]
        self.assertIn('in<"\\u0001.weight', ids)

    @unittest.skipIf(networkx is None, "networkx is not installed")
    def test_networkx(self):
        made = self.program.to_networkx(numbers={"time": [1.0] * self.program.num_operators})
        self.assertEqual(list(made.nodes), self.names)
        self.assertEqual([(a, b, data["argument"]) for a, b, data in made.edges(data=True)], sorted_by(made, self.edges))
        self.assertTrue(networkx.is_directed_acyclic_graph(made))
        self.assertEqual(made.nodes["conv1d"]["operator"], "aten::conv1d")
        self.assertEqual(made.nodes["conv1d"]["numbers"], [1.0])
        self.assertEqual(made.nodes["conv.weight"]["kind"], "parameter")
        self.assertIn("x", networkx.ancestors(made, "softmax"))
        place = {name: k for k, name in enumerate(made.nodes)}
        self.assertTrue(all(place[a] < place[b] for a, b in made.edges()), "nodes are in topological order")
        read = networkx.parse_graphml(self.program.graphml(), force_multigraph=True)
        self.assertEqual(list(read.nodes), list(made.nodes))
        self.assertEqual(sorted(read.edges()), sorted(made.edges()))
        self.assertEqual(read.nodes["conv1d"]["depth"], made.nodes["conv1d"]["depth"])
        self.assertIs(read.nodes["conv1d"]["view"], False)

    def test_without_networkx(self):
        with mock.patch.dict(sys.modules, {"networkx": None}):
            with self.assertRaisesRegex(ImportError, "pip install networkx"):
                self.program.to_networkx()

    def test_pictures(self):
        """Draws with a program that stands in for Graphviz's: it notes how it was called."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.svg")
            with mock.patch.dict(os.environ, {"PATH": folder}):
                with self.assertRaisesRegex(addend.FailedPrecondition, "dot is not installed"):
                    self.program.draw(path)
                stand_in = os.path.join(folder, "dot")
                with open(stand_in, "w", encoding="utf-8") as file:
                    file.write(
                        '#!/bin/sh\ncase "$1" in -Tsvg) { echo "$1" "$2"; /bin/cat; } > "$3";; '
                        '*) echo "Format: $1 not recognized" >&2; exit 1;; esac\n'
                    )
                os.chmod(stand_in, stat.S_IRWXU)
                self.program.draw(path, sources=True)
                with open(path, encoding="utf-8") as file:
                    self.assertEqual(file.read(), "-Tsvg -o\n" + self.program.dot(sources=True))
                with self.assertRaisesRegex(addend.InvalidArgument, "Format: -Tbad not recognized"):
                    self.program.draw(os.path.join(folder, "graph.bad"))
                with self.assertRaisesRegex(addend.InvalidArgument, "no ending"):
                    self.program.draw(os.path.join(folder, "graph"))


def sorted_by(made, edges):
    """Sorts edges by the node that they come from, as networkx lists them."""
    place = {name: k for k, name in enumerate(made.nodes)}
    return sorted(edges, key=lambda edge: place[edge[0]])


if __name__ == "__main__":
    unittest.main()
