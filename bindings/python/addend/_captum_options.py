"""Options that Captum's methods have and `attribute` has not: what it says to them."""

import warnings
from typing import Any

from ._source_lines import level_of_caller

# Options of Captum's methods without which the answer is the same: they are taken, and a warning answers them.
_NEEDLESS = {
    "n_steps": "every operator is followed along the whole line from baseline to input; segments=N cuts that line",
    "method": "operators are integrated in closed form or to a stated error, and no quadrature is chosen",
    "internal_batch_size": "one run and one sweep back are all; where memory is short, give fewer examples",
    "perturbations_per_eval": "nothing is perturbed, and the model runs once",
    "n_samples": "nothing is sampled",
    "show_progress": "progress=FUNCTION is told of every step",
}
# Options that ask for other numbers: they are refused, and the error names the way to these.
_OTHERWISE = {
    "abs": "attributions keep their signs; take abs() of what is returned",
    "attribute_to_layer_input": "inside=addend.Inside(SELECTOR) names the tensor itself",
    "attribute_to_neuron_input": "inside=addend.Inside(SELECTOR) names the tensor itself",
    "attr_dim_summation": "sum the attributions of inside=addend.Inside(SELECTOR) over that dimension",
    "custom_attribution_func": "a policy chooses how operators pass contributions (docs/policies.md)",
    "layer": "inside=addend.Inside(SELECTOR) attributes to a tensor inside the model",
    "neuron_selector": "target=INDEX with at=SELECTOR explains an element inside the model",
    "nt_samples": "call attribute() for each noisy input, and average",
    "nt_type": "call attribute() for each noisy input, and average",
    "relu_attributions": "attributions keep their signs; clamp what is returned",
    "return_input_shape": "attributions have the shape of the inputs; addend.Input(labels=...) with explain() has one "
    "number for each group",
    "sliding_window_shapes": "feature_mask=... groups elements that belong together",
    "stdevs": "call attribute() for each noisy input, and average",
    "strides": "feature_mask=... groups elements that belong together",
}


def drop_captums(choices: Any) -> None:
    """Takes out of keyword arguments what only Captum has: needless options are answered by a warning, others by an
    error."""
    for name in list(choices):
        if name in _OTHERWISE:
            raise TypeError("attribute() has no option %s: %s" % (name, _OTHERWISE[name]))
        if name in _NEEDLESS:
            warnings.warn("attribute() needs no %s: %s" % (name, _NEEDLESS[name]), UserWarning, level_of_caller())
            del choices[name]
