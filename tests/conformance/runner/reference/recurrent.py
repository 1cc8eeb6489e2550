"""Recurrent cells and layers, as the linear maps, gates and products that they are. SPEC.md#recurrent."""

from arithmetic import add, mul, sub
from composition import apply
from normalization import rearranged
from product import linear
from registry import call, operator
from tensor import stack


def sigmoid(policy, x):
    return call(policy, "aten::sigmoid", x)


def tanh(policy, x):
    return call(policy, "aten::tanh", x)


def part(policy, x, k, size):
    """A view; it keeps the marks."""
    return rearranged(policy, x, lambda t: t.narrow(-1, k * size, size))


def lstm_step(policy, gates, cell):
    """Gates side by side: input, forget, candidate, output."""
    size = gates.shape[-1] // 4
    keep, forget = (sigmoid(policy, part(policy, gates, k, size)) for k in (0, 1))
    candidate = tanh(policy, part(policy, gates, 2, size))
    output = sigmoid(policy, part(policy, gates, 3, size))
    cell = add(policy, mul(policy, forget, cell), mul(policy, keep, candidate))
    return mul(policy, output, tanh(policy, cell)), cell


def gru_step(policy, gates, share, hidden):
    """Gates of the input and of the hidden state side by side: reset, update, new."""
    size = hidden.shape[-1]
    reset, update = (
        sigmoid(policy, add(policy, part(policy, gates, k, size), part(policy, share, k, size))) for k in (0, 1)
    )
    candidate = tanh(policy, add(policy, part(policy, gates, 2, size), mul(policy, reset, part(policy, share, 2, size))))
    return add(policy, candidate, mul(policy, update, sub(policy, hidden, candidate)))


@operator("aten::lstm_cell")
def lstm_cell(policy, x, state, w_ih, w_hh, b_ih=None, b_hh=None):
    gates = add(policy, linear(policy, x, w_ih, b_ih), linear(policy, state[0], w_hh, b_hh))
    return lstm_step(policy, gates, state[1])


@operator("aten::gru_cell")
def gru_cell(policy, x, hidden, w_ih, w_hh, b_ih=None, b_hh=None):
    return gru_step(policy, linear(policy, x, w_ih, b_ih), linear(policy, hidden, w_hh, b_hh), hidden)


def rnn_cell(policy, x, hidden, w_ih, w_hh, b_ih=None, b_hh=None, name="aten::tanh"):
    return call(policy, name, add(policy, linear(policy, x, w_ih, b_ih), linear(policy, hidden, w_hh, b_hh)))


operator("aten::rnn_tanh_cell")(rnn_cell)
operator("aten::rnn_relu_cell")(lambda policy, *a: rnn_cell(policy, *a, name="aten::relu"))


def _over_time(policy, x, batch_first, step):
    """Steps over the time of [time, batch, features]; gives the outputs stacked."""
    time = 1 if batch_first else 0
    outputs = [step(rearranged(policy, x, lambda t, k=k: t.select(time, k))) for k in range(x.shape[time])]
    shape_of = lambda tensors: stack(tensors, time)
    return apply(policy, outputs, lambda *t: shape_of(list(t)), lambda *rows: shape_of(list(rows)))


def _lifted(policy, x):
    return rearranged(policy, x, lambda t: t.reshape((1,) + t.shape))


@operator("aten::lstm.input")
def lstm(policy, x, state, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """One layer, one direction."""
    hidden, cell = (rearranged(policy, s, lambda t: t.select(0, 0)) for s in state)
    weights = list(params)

    def step(now):
        nonlocal hidden, cell
        hidden, cell = lstm_cell(policy, now, [hidden, cell], *weights)
        return hidden

    output = _over_time(policy, x, batch_first, step)
    return output, _lifted(policy, hidden), _lifted(policy, cell)


def _one_state(policy, cell, x, state, params, batch_first):
    """A layer whose cell keeps nothing but its output."""
    hidden = rearranged(policy, state, lambda t: t.select(0, 0))

    def step(now):
        nonlocal hidden
        hidden = cell(policy, now, hidden, *params)
        return hidden

    output = _over_time(policy, x, batch_first, step)
    return output, _lifted(policy, hidden)


@operator("aten::gru.input")
def gru(policy, x, state, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    return _one_state(policy, gru_cell, x, state, params, batch_first)


@operator("aten::rnn_tanh.input")
def rnn_tanh(policy, x, state, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    return _one_state(policy, rnn_cell, x, state, params, batch_first)
