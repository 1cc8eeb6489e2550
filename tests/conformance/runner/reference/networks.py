"""The networks of models/architectures.py in plain Python. Each takes a policy, parameters and inputs, and gives its
results in order, and those of its inner tensors that cases probe."""

import itertools
import math

# Every family registers its operators.
import activation, arithmetic, attention, convolution, normalization, pooling  # noqa: E401, F401
import product, recurrent, reduction, shape, softmax  # noqa: E401, F401
from composition import Composition, map_linear, value_of
from normalization import rearranged
from registry import call
from tensor import Tensor, scaled


class Ids:
    """Tokens; labels are None where they are plain."""

    def __init__(self, value, reference=None, labels=None, numc=0):
        self.value = value
        self.reference = reference
        self.labels = labels
        self.numc = numc


def embedding(parameters, name, ids):
    """Every token brings its vector: rows start here."""
    table = parameters[name + ".weight"]
    width = table.shape[1]

    def vectors(tokens):
        return Tensor(tokens.shape + (width,), [x for t in tokens.data for x in table.data[t * width : (t + 1) * width]])

    if ids.labels is None:
        return vectors(ids.value)
    value, reference = vectors(ids.value), vectors(ids.reference)
    labels = [label for label in ids.labels.data for _ in range(width)]
    move = [v - r for v, r in zip(value.data, reference.data)]
    components = [
        Tensor(value.shape, [m if label == k else 0.0 for m, label in zip(move, labels)]) for k in range(ids.numc)
    ]
    return Composition(components, reference)


class Network:
    """Operators with the parameters of a module by name."""

    def __init__(self, policy, parameters):
        self.policy = policy
        self.parameters = parameters
        self.inside = {}

    def __call__(self, op, *arguments):
        return call(self.policy, "aten::" + op, *arguments)

    def weights(self, name):
        return self.parameters[name + ".weight"], self.parameters[name + ".bias"]

    def view(self, x, f):
        return rearranged(self.policy, x, f)

    def flat(self, x):
        """Everything behind the first dimension as one."""
        return self.view(x, lambda t: t.reshape((t.shape[0], math.prod(t.shape[1:]))))

    def linear(self, name, x):
        return self.probed(name, self("linear", x, *self.weights(name)))

    def conv2d(self, name, x, stride=1, padding=0):
        return self.probed(name, self("conv2d", x, *self.weights(name), [stride] * 2, [padding] * 2))

    def layer_norm(self, name, x):
        return self("layer_norm", x, [x.shape[-1]], *self.weights(name))

    def batch_norm(self, name, x):
        statistics = [self.parameters[f"{name}.running_{part}"] for part in ("mean", "var")]
        return self.probed(name, self("batch_norm", x, *self.weights(name), *statistics, False, 0.1, 1e-5))

    def probed(self, name, x):
        self.inside[name] = x
        return x


def mlp(net, x):
    for layer in range(5):
        x = net("relu", x) if layer % 2 else net.linear(f"layers.{layer}", x)
        net.inside[f"layers.{layer}"] = net.inside[f"#{layer}"] = x
    net.inside["aten::relu:0"], net.inside["aten::relu:1"] = net.inside["layers.1"], net.inside["layers.3"]
    net.inside["logits"] = x
    return [x]


def relu_network(net, x):
    x = net("relu", convolution_by_patches(net, "first", x, 1, 1))
    x = net.probed("aten::avg_pool2d", average_by_blocks(net, x, 2))
    x = net("relu", convolution_by_patches(net, "second", x, 2, 0))
    return [net.linear("output", net.flat(x))]


def convolution_by_patches(net, name, x, stride, padding):
    """Convolves by a matrix product, not by the reference's own convolution: each output position reads its patch."""
    weight, bias = net.weights(name)
    channels, _, kernel, _ = weight.shape
    samples, _, height, width = x.shape
    size = [(side + 2 * padding - kernel) // stride + 1 for side in (height, width)]

    def patches(t):
        data = []
        for sample, i, j in itertools.product(range(samples), *map(range, size)):
            for channel, di, dj in itertools.product(range(t.shape[1]), range(kernel), range(kernel)):
                row, column = i * stride + di - padding, j * stride + dj - padding
                inside = 0 <= row < height and 0 <= column < width
                data.append(t.at((sample, channel, row, column)) if inside else 0.0)
        return Tensor((samples, *size, t.shape[1] * kernel * kernel), data)

    result = net("linear", map_linear(net.policy, x, patches), weight.reshape((channels, -1)), bias)
    return net.probed(name, map_linear(net.policy, result, lambda t: t.permute((0, 3, 1, 2))))


def average_by_blocks(net, x, kernel):
    samples, channels, height, width = x.shape
    blocks = (samples, channels, height // kernel, kernel, width // kernel, kernel)
    return map_linear(net.policy, x, lambda t: scaled(t.reshape(blocks).sum((3, 5)), 1 / kernel**2))


def cnn(net, x):
    for first in (0, 4):
        x = net.batch_norm(f"features.{first + 1}", net.conv2d(f"features.{first}", x, padding=1))
        x = net.probed(f"features.{first + 3}", net("max_pool2d", net("relu", x), [2, 2]))
    return [net.linear("output", net.flat(x))]


def recurrent_weights(net, suffix):
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return [net.parameters[f"recurrent.{name}_{suffix}"] for name in names]


def lstm(net, x):
    for layer in (0, 1):
        zeros = Tensor.full((1, x.shape[0], 6), 0.0)
        weights = recurrent_weights(net, f"l{layer}")
        x = net("lstm.input", x, [zeros, zeros], weights, True, 1, 0.0, False, False, True)[0]
    return [net.linear("output", net.view(x, lambda t: t.select(1, t.shape[1] - 1)))]


def gru(net, x):
    def backwards(t):
        return t.taken(t.shape, lambda i: (i[0], t.shape[1] - 1 - i[1], i[2]))

    states, last = [], []
    for suffix, turn in (("l0", lambda t: t), ("l0_reverse", backwards)):
        zeros = Tensor.full((1, x.shape[0], 5), 0.0)
        weights = recurrent_weights(net, suffix)
        out, end = net("gru.input", net.view(x, turn), zeros, weights, True, 1, 0.0, False, False, True)
        states.append(net.view(out, turn))
        last.append(net.view(end, lambda t: t.select(0, 0)))
    mean = net("mean.dim", net("cat", states, 2), [1])
    return [net("add.Tensor", net.linear("output", mean), net.linear("output", net("cat", last, 1)))]


def transformer_encoder(net, tokens):
    """The encoder that LibTorch's layers compute, fused or not."""
    x = net.probed("embedding", embedding(net.parameters, "embedding", tokens))
    x = net("add.Tensor", x, net.parameters["position"])
    for layer in (0, 1):
        name = f"encoder.layers.{layer}."
        packed = [net.parameters[f"{name}self_attn.in_proj_{part}"] for part in ("weight", "bias")]
        mixed = net("_native_multi_head_attention", x, x, x, 16, 4, *packed, *net.weights(name + "self_attn.out_proj"))[0]
        x = net.layer_norm(name + "norm1", net("add.Tensor", x, mixed))
        hidden = net.linear(name + "linear2", net("gelu", net.linear(name + "linear1", x)))
        x = net.probed(name[:-1], net.layer_norm(name + "norm2", net("add.Tensor", x, hidden)))
    return [net.linear("output", net("mean.dim", x, [1]))]


def attention_of(net, name, queries, memory, heads, causal):
    width = queries.shape[-1] // heads

    def split_heads(x):
        return net.view(x, lambda t: t.reshape(t.shape[:2] + (heads, width)).transpose(1, 2))

    query, key, value = (
        split_heads(net.linear(f"{name}.{part}", x))
        for part, x in (("query", queries), ("key", memory), ("value", memory))
    )
    scores = net("matmul", query, net.view(key, lambda t: t.transpose(2, 3)))
    scores = net("mul.Tensor", scores, 1 / math.sqrt(width))
    if causal:
        later = scores.shape[-2:]
        mask = Tensor(later, [j > i for i in range(later[0]) for j in range(later[1])])
        scores = net("masked_fill.Scalar", scores, mask.expand(scores.shape), -math.inf)
    mixed = net("matmul", net("softmax.int", scores, -1), value)
    joined = net.view(mixed, lambda t: t.transpose(1, 2).reshape((t.shape[0], t.shape[2], t.shape[1] * t.shape[3])))
    return net.probed(name, net.linear(f"{name}.output", joined))


def transformer_decoder(net, tokens, memory):
    x = net("add.Tensor", embedding(net.parameters, "embedding", tokens), net.parameters["position"])
    for layer in (0, 1):
        name = f"layers.{layer}."
        normed = net.layer_norm(name + "self_norm", x)
        x = net("add.Tensor", x, attention_of(net, name + "self_attention", normed, normed, 3, True))
        normed = net.layer_norm(name + "cross_norm", x)
        x = net("add.Tensor", x, attention_of(net, name + "cross_attention", normed, memory, 3, False))
        hidden = net("silu", net.linear(name + "expand", net.layer_norm(name + "feed_forward_norm", x)))
        x = net("add.Tensor", x, net.linear(name + "contract", hidden))
    logits = net.probed("logits", net.linear("output", net.layer_norm("norm", x)))
    return [net("log_softmax.int", logits, -1)]


def unet(net, x):
    fine = net("leaky_relu", net.conv2d("down1.0", x, padding=1), 0.1)
    middle = net.conv2d("down2.0", net("max_pool2d", fine, [2, 2]), padding=1)
    middle = net("silu", net("group_norm", middle, 2, *net.weights("down2.1")))
    coarse = net("relu", net.conv2d("bottom.0", net("max_pool2d", middle, [2, 2]), padding=1))
    for skip, level in ((middle, 2), (fine, 1)):
        up = net("conv_transpose2d.input", coarse, *net.weights(f"up{level}"), [2, 2])
        coarse = net("relu", net.conv2d(f"merge{level}", net("cat", [skip, up], 1), padding=1))
    return [net.conv2d("output", coarse)]


def mixed(net, table, image, tokens):
    columns = net("tanh", net.linear("table_tower.0", table))
    pixels = net("relu", net.conv2d("image_tower.0", image))
    pixels = net.flat(net("adaptive_avg_pool2d", pixels, [2, 2]))
    words = net("mean.dim", embedding(net.parameters, "embedding", tokens), [1])
    words = net("mul.Tensor", words, net("sigmoid", net.linear("gate", columns)))
    hidden = net("elu", net.linear("head.0", net("cat", [columns, pixels, words], 1)))
    return [net.linear("head.2", hidden)]


def awkward(net, table):
    """Without writes: every tensor that the network changes in place is a new one here."""
    def columns(x, begin):
        return net.view(x, lambda t: t.narrow(1, begin, 3))

    states = net("matmul", table, net.parameters["weight"])
    left = net("add.Tensor", columns(states, 0), columns(table, 3))
    states = net("cat", [left, columns(states, 3)], 1)
    states = net("add.Tensor", net("mul.Tensor", states, 2.0), 0.5)
    left, right = net("relu", columns(states, 0)), columns(states, 3)
    states = net("cat", [left, right], 1)
    turned = net.view(right, lambda t: t.taken(t.shape, lambda i: (i[0], 2 - i[1])))
    buffer = net("cat", [net("mul.Tensor", left, turned), right], 1)
    buffer = net.view(buffer, lambda t: Tensor(t.shape, [-t.data[0]] + t.data[1:]))
    if math.fsum(value_of(table).data) > 0:
        buffer = net("add.Tensor", buffer, states)
    else:
        buffer = net("tanh", buffer)
    return [net.linear("output", buffer)]


def nested(net, table):
    hidden = net("softplus", net.linear("body", table))
    logits = net.linear("head", hidden)
    rows = [value_of(logits).narrow(0, row, 1).data for row in range(logits.shape[0])]
    largest = Tensor((len(rows),), [row.index(max(row)) for row in rows])
    size = net("sqrt", net("sum.dim_IntList", net("pow.Tensor_Scalar", hidden, 2), [-1]))
    return [logits, hidden, net("softmax.int", logits, -1), largest, size]


# Networks by the name of the file, with the names of their arguments.
NETWORKS = {
    "mlp": (mlp, ["table"]),
    "relu_network": (relu_network, ["image"]),
    "cnn": (cnn, ["image"]),
    "lstm": (lstm, ["sequence"]),
    "lstm_loop": (lstm, ["sequence"]),
    "gru": (gru, ["sequence"]),
    "transformer_encoder": (transformer_encoder, ["tokens"]),
    "transformer_decoder": (transformer_decoder, ["tokens", "memory"]),
    "unet": (unet, ["image"]),
    "mixed": (mixed, ["table", "image", "tokens"]),
    "awkward": (awkward, ["table"]),
    "nested": (nested, ["table"]),
}
