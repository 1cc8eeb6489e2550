#!/usr/bin/env python3
"""Writes networks of the conformance suite and two trained example models as ONNX, with the weights of their TorchScript
files: NAME.onnx beside NAME.pt.

    make_onnx.py            writes the files
    make_onnx.py --check    fails where a committed file is another

It is plain Python, and no exporter: what a node of ONNX means is written here by hand, from the same architectures.
"""

import argparse
import math
import sys
from pathlib import Path

# Not resolved: where a build links its files into another folder, they are those that are meant.
FOLDER = Path(__file__).absolute().parent
EXAMPLES = FOLDER.parents[2] / "docs" / "examples" / "models"
sys.path.insert(0, str(FOLDER.parent / "runner" / "reference"))
sys.dont_write_bytecode = True

import models  # noqa: E402
import onnx_file  # noqa: E402
from onnx_file import BOOL, INT64, Graph  # noqa: E402


class Network(Graph):
    """A graph with the parameters of a TorchScript file, and the layers that several networks have."""

    def __init__(self, path, name):
        super().__init__(name)
        self.parameters = models.read_parameters(path)

    def weight(self, name):
        tensor = self.parameters[name]
        return self.floats(name, tensor.shape, tensor.data)

    def weights(self, name, *parts):
        return [self.weight("%s.%s" % (name, part)) for part in parts or ("weight", "bias")]

    def gemm(self, name, x, to=None):
        """A linear layer of rows."""
        return self.node("Gemm", [x, *self.weights(name)], name, transB=1, to=to)

    def linear(self, name, x, weight=None, bias=None):
        """A linear layer of any rank: the product with the transposed weight, then the bias."""
        weight, bias = weight or name + ".weight", bias or name + ".bias"
        turned = self.parameters[weight].transpose(0, 1)
        product = self.node("MatMul", [x, self.floats(weight, turned.shape, turned.data)], name)
        return self.node("Add", [product, self.weight(bias)], name)

    def convolution(self, name, x, stride=1, padding=0):
        kernel = list(self.parameters[name + ".weight"].shape[2:])
        return self.node("Conv", [x, *self.weights(name)], name, kernel_shape=kernel, strides=[stride] * 2,
                         pads=[padding] * 4)

    def batch_norm(self, name, x):
        parts = self.weights(name, "weight", "bias", "running_mean", "running_var")
        return self.node("BatchNormalization", [x, *parts], name, epsilon=1e-5)

    def layer_norm(self, name, x):
        return self.node("LayerNormalization", [x, *self.weights(name)], name, axis=-1, epsilon=1e-5)

    def pool(self, kind, x, module=""):
        return self.node(kind, [x], module, kernel_shape=[2, 2], strides=[2, 2])

    def heads(self, x, heads, width, order, module):
        """[n, length, heads * width] by heads, in an order of its four dimensions."""
        apart = self.node("Reshape", [x, self.integers("heads", [0, 0, heads, width])], module)
        return self.node("Transpose", [apart], module, perm=order)

    def attention(self, query, key, value, heads, width, module):
        query = self.heads(query, heads, width, [0, 2, 1, 3], module)
        key = self.heads(key, heads, width, [0, 2, 3, 1], module)
        value = self.heads(value, heads, width, [0, 2, 1, 3], module)
        scores = self.node("MatMul", [query, key], module)
        scores = self.node("Mul", [scores, self.floats("scale", [], [1 / math.sqrt(width)])], module)
        mixed = self.node("MatMul", [self.node("Softmax", [scores], module, axis=-1), value], module)
        mixed = self.node("Transpose", [mixed], module, perm=[0, 2, 1, 3])
        return self.node("Reshape", [mixed, self.integers("joined", [0, 0, heads * width])], module)


def mlp(net):
    x = net.input("table", ["rows", 6])
    for layer in (0, 2):
        x = net.node("Relu", [net.gemm("layers.%d" % layer, x)], "layers.%d" % (layer + 1))
    net.gemm("layers.4", x, to="logits")
    net.output("logits", ["rows", 3])


def relu_network(net):
    x = net.node("Relu", [net.convolution("first", net.input("image", ["n", 1, 8, 8]), padding=1)])
    x = net.node("Relu", [net.convolution("second", net.pool("AveragePool", x), stride=2)])
    net.gemm("output", net.node("Flatten", [x], axis=1), to="scores")
    net.output("scores", ["n", 3])


def cnn(net):
    x = net.input("image", ["n", 3, 8, 8])
    for first in (0, 4):
        x = net.convolution("features.%d" % first, x, padding=1)
        x = net.batch_norm("features.%d" % (first + 1), x)
        x = net.node("Relu", [x], "features.%d" % (first + 2))
        x = net.pool("MaxPool", x, "features.%d" % (first + 3))
    net.gemm("output", net.node("Flatten", [x], axis=1), to="scores")
    net.output("scores", ["n", 4])


def gates(tensor, order):
    """The blocks of a recurrent layer's parameter in another order."""
    size = tensor.shape[0] // len(order)
    return [x for gate in order for x in tensor.narrow(0, gate * size, size).data]


def recurrent_weights(net, order, *suffixes):
    """Weights and biases of a layer as ONNX has them: directions first, both biases in one tensor."""
    hidden = net.parameters["recurrent.weight_hh_" + suffixes[0]].shape[1]
    given = []
    for part in ("weight_ih", "weight_hh"):
        tensors = [net.parameters["recurrent.%s_%s" % (part, suffix)] for suffix in suffixes]
        numbers = [x for tensor in tensors for x in gates(tensor, order)]
        dims = [len(suffixes), len(order) * hidden, tensors[0].shape[1]]
        given.append(net.floats("recurrent.%s_%s" % (part, suffixes[0]), dims, numbers))
    biases = []
    for suffix in suffixes:
        for part in ("bias_ih", "bias_hh"):
            biases += gates(net.parameters["recurrent.%s_%s" % (part, suffix)], order)
    given.append(net.floats("recurrent.bias_" + suffixes[0], [len(suffixes), 2 * len(order) * hidden], biases))
    return given


def lstm(net):
    """Two layers, each a node; its gates come in the order input, output, forget, cell."""
    x = net.node("Transpose", [net.input("sequence", ["n", "steps", 4])], perm=[1, 0, 2])
    for layer in (0, 1):
        weights = recurrent_weights(net, [0, 3, 1, 2], "l%d" % layer)
        x = net.node("LSTM", [x, *weights], "recurrent", outputs=2, hidden_size=6)[0]
        x = net.node("Squeeze", [x, net.integers("direction", [1])], "recurrent")
    last = net.node("Gather", [x, net.integers("last", -1)], axis=0)
    net.gemm("output", last, to="scores")
    net.output("scores", ["n", 3])


def lstm_loop(net):
    """Both layers of lstm written out, as a loop over the steps of the sequence."""
    x = net.input("sequence", ["n", "steps", 4])
    sizes = net.node("Shape", [x])
    steps = net.node("Gather", [sizes, net.integers("second", 1)], axis=0)
    rows = net.node("Gather", [sizes, net.integers("first", [0])], axis=0)
    zeros = net.node("ConstantOfShape", [net.node("Concat", [rows, net.integers("width", [6])], axis=0)])
    for layer in (0, 1):
        body = Graph("steps", "layer%d" % layer)
        turn, goes_on = body.input("turn", [], INT64), body.input("goes_on", [], BOOL)
        hidden, cells = body.input("hidden", ["n", 6]), body.input("cells", ["n", 6])
        given = body.node("Gather", [x, turn], axis=1)

        def weights(part):
            return [net.weight("recurrent.%s_%s_l%d" % (kind, part, layer)) for kind in ("weight", "bias")]

        sums = body.node("Add", [body.node("Gemm", [given, *weights("ih")], transB=1),
                                 body.node("Gemm", [hidden, *weights("hh")], transB=1)])
        split = body.node("Split", [sums, net.integers("gates", [6] * 4)], outputs=4, axis=1)
        taken, kept, shown = (body.node("Sigmoid", [split[gate]]) for gate in (0, 1, 3))
        new = body.node("Mul", [taken, body.node("Tanh", [split[2]])])
        cells = body.node("Add", [body.node("Mul", [kept, cells]), new])
        hidden = body.node("Mul", [shown, body.node("Tanh", [cells])])
        body.output(body.node("Identity", [goes_on]), [], BOOL)
        for value in (hidden, cells, body.node("Identity", [hidden])):
            body.output(value, ["n", 6])
        last, _, states = net.node("Loop", [steps, "", zeros, zeros], "recurrent", outputs=3, body=body)
        x = net.node("Transpose", [states], "recurrent", perm=[1, 0, 2])
    net.gemm("output", last, to="scores")
    net.output("scores", ["n", 3])


def gru(net):
    """Both directions in one node, whose gates come in the order update, reset, hidden."""
    x = net.node("Transpose", [net.input("sequence", ["n", "steps", 4])], perm=[1, 0, 2])
    weights = recurrent_weights(net, [1, 0, 2], "l0", "l0_reverse")
    states, last = net.node("GRU", [x, *weights], "recurrent", outputs=2, hidden_size=5, direction="bidirectional",
                            linear_before_reset=1)
    states = net.node("Transpose", [states], perm=[2, 0, 1, 3])
    states = net.node("Reshape", [states, net.integers("joined_states", [0, 0, 10])])
    last = net.node("Reshape", [net.node("Transpose", [last], perm=[1, 0, 2]), net.integers("joined", [0, 10])])
    mean = net.node("ReduceMean", [states], axes=[1], keepdims=0)
    net.node("Add", [net.gemm("output", mean), net.gemm("output", last)], to="scores")
    net.output("scores", ["n", 3])


def transformer_encoder(net):
    x = net.node("Gather", [net.weight("embedding.weight"), net.input("tokens", ["n", 7], INT64)], "embedding")
    x = net.node("Add", [x, net.weight("position")])
    for layer in (0, 1):
        name = "encoder.layers.%d" % layer
        inside = name + ".self_attn"
        packed = net.linear(inside, x, inside + ".in_proj_weight", inside + ".in_proj_bias")
        parts = net.node("Split", [packed, net.integers("thirds", [16] * 3)], inside, outputs=3, axis=-1)
        mixed = net.linear(inside + ".out_proj", net.attention(*parts, heads=4, width=4, module=inside))
        x = net.layer_norm(name + ".norm1", net.node("Add", [x, mixed], name))
        hidden = net.node("Gelu", [net.linear(name + ".linear1", x)], name)
        x = net.node("Add", [x, net.linear(name + ".linear2", hidden)], name)
        x = net.layer_norm(name + ".norm2", x)
    x = net.node("ReduceMean", [x, net.integers("length", [1])], keepdims=0)
    net.gemm("output", x, to="scores")
    net.output("scores", ["n", 3])


def mixed(net):
    table, image = net.input("table", ["n", 4]), net.input("image", ["n", 1, 6, 6])
    tokens = net.input("tokens", ["n", "length"], INT64)
    columns = net.node("Tanh", [net.gemm("table_tower.0", table)], "table_tower.1")
    pixels = net.node("Relu", [net.convolution("image_tower.0", image)], "image_tower.1")
    pixels = net.node("Flatten", [net.pool("AveragePool", pixels, "image_tower.2")], axis=1)
    words = net.node("Gather", [net.weight("embedding.weight"), tokens], "embedding")
    words = net.node("ReduceMean", [words], axes=[1], keepdims=0)
    words = net.node("Mul", [words, net.node("Sigmoid", [net.gemm("gate", columns)])])
    hidden = net.gemm("head.0", net.node("Concat", [columns, pixels, words], axis=1))
    net.gemm("head.2", net.node("Elu", [hidden], "head.1", alpha=1.0), to="scores")
    net.output("scores", ["n", 3])


def awkward(net):
    """A branch that depends on the data. What is written in place in the module is a new value here."""
    table = net.input("table", [2, 6])
    halves = net.integers("halves", [3, 3])
    states = net.node("MatMul", [table, net.weight("weight")])
    left, right = net.node("Split", [states, halves], outputs=2, axis=1)
    added = net.node("Split", [table, halves], outputs=2, axis=1)[1]
    states = net.node("Concat", [net.node("Add", [left, added]), right], axis=1)
    states = net.node("Mul", [states, net.floats("two", [], [2.0])])
    states = net.node("Add", [states, net.floats("half", [], [0.5])])
    left, right = net.node("Split", [states, halves], outputs=2, axis=1)
    left = net.node("Relu", [left])
    states = net.node("Concat", [left, right], axis=1)
    turned = net.node("Slice", [right] + [net.integers(name, [number]) for name, number in (
        ("begin", 2), ("end", -4), ("columns", 1), ("step", -1))])
    buffer = net.node("Concat", [net.node("Mul", [left, turned]), right], axis=1)
    buffer = net.node("Mul", [buffer, net.floats("signs", [2, 6], [-1.0] + [1.0] * 11)])
    total = net.node("ReduceSum", [table], keepdims=0)
    up, down = Graph("up", "up"), Graph("down", "down")
    up.output(up.node("Add", [buffer, states]), [2, 6])
    down.output(down.node("Tanh", [buffer]), [2, 6])
    is_up = net.node("Greater", [total, net.floats("zero", [], [0.0])])
    net.gemm("output", net.node("If", [is_up], then_branch=up, else_branch=down), to="scores")
    net.output("scores", [2, 2])


def nested(net):
    """Several results, integers among them."""
    hidden = net.node("Softplus", [net.gemm("body", net.input("table", ["n", 5]))], to="hidden")
    logits = net.gemm("head", hidden, to="logits")
    net.output(logits, ["n", 3])
    net.output(hidden, ["n", 6])
    net.output(net.node("Softmax", [logits], axis=-1, to="probabilities"), ["n", 3])
    net.output(net.node("ArgMax", [logits], axis=-1, keepdims=0, to="largest"), ["n"], INT64)
    squares = net.node("Pow", [hidden, net.floats("exponent", [], [2.0])])
    total = net.node("ReduceSum", [squares, net.integers("last", [-1])], keepdims=0)
    net.output(net.node("Sqrt", [total], to="size"), ["n"])


def breast_cancer(net):
    x = net.node("Sub", [net.input("table", ["n", 30]), net.weight("mean")])
    x = net.node("Div", [x, net.weight("deviation")])
    for layer in (0, 2):
        x = net.node("Relu", [net.gemm("layers.%d" % layer, x)], "layers.%d" % (layer + 1))
    net.gemm("layers.4", x, to="logits")
    net.output("logits", ["n", 2])


def digits(net):
    x = net.node("Div", [net.input("image", ["n", 1, 8, 8]), net.floats("largest", [], [16.0])])
    for first in (0, 4):
        x = net.convolution("features.%d" % first, x, padding=1)
        x = net.batch_norm("features.%d" % (first + 1), x)
        x = net.node("Relu", [x], "features.%d" % (first + 2))
        x = net.pool("MaxPool", x, "features.%d" % (first + 3))
    hidden = net.node("Relu", [net.gemm("hidden", net.node("Flatten", [x], axis=1))])
    net.gemm("output", hidden, to="logits")
    net.output("logits", ["n", 10])


# Gelu is an operator from opset 20 on, LayerNormalization from 17 on. Versions of the format are those of their time.
_VERSIONS = {17: 8, 20: 9}


def files():
    """Each file with the TorchScript file that has its weights, and what writes it."""
    suite = [mlp, relu_network, cnn, lstm, lstm_loop, gru, transformer_encoder, mixed, awkward, nested]
    for write in suite:
        source = "lstm" if write is lstm_loop else write.__name__
        yield FOLDER / (write.__name__ + ".onnx"), FOLDER / (source + ".pt"), write
    for write in (breast_cancer, digits):
        folder = EXAMPLES / write.__name__
        yield folder / "model.onnx", folder / "model.pt", write


def content(source, write):
    net = Network(source, write.__name__)
    write(net)
    opset = 20 if write is transformer_encoder else 17
    return onnx_file.model(net, opset, _VERSIONS[opset])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for path, source, write in files():
        written = content(source, write)
        if not check:
            path.write_bytes(written)
            print("%s: %d bytes" % (path.name if path.parent == FOLDER else write.__name__, len(written)))
        elif not path.exists() or path.read_bytes() != written:
            stale.append(path.name if path.parent == FOLDER else write.__name__)
    if stale:
        print("not as make_onnx.py writes them: %s; renew them by tests/conformance/models/make_onnx.py" % ", ".join(stale))
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
