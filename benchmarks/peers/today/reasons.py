"""Reasons why a peer is ahead, where they were found out: by the title of a measure and the beginning of a method's name."""

_ONE_BACKWARD = "it is one run and one run backward, where Addend records each operator and runs it on the baseline too"
_TWO_BACKWARD = "it is two runs and one run backward, without a record of the operators"
_BATCH = (
    "on a small model its batch costs little, and most of Addend's time is Python's work for a live call (a profile of three "
    "operators: 0.9 of 1.0 ms), which a plan spares"
)
_KEEPS_ONE = (
    "it keeps one run, where Addend keeps two; and on small models most is what a first run loads once (of `retrieval_encoder` "
    "the first one takes 16 MiB, the second 0.1)"
)
_KEEPS_NONE = "it keeps nothing of its runs; and on small models most of Addend's is what a first run loads once"
_NEEDED = (
    "content first, Addend's default, ranks the content that arrived: with known causes it has the cause first more often, but "
    "less of all that the answer needs, marker and question too"
)
_SINGLE_PARTS = "the measure takes single parts away, and so does it"
_REMOVES = "it runs the model without parts, and so does the measure"

REASONS = {
    "time": {
        "Captum IntegratedGradients": _BATCH,
        "Captum InputXGradient": _ONE_BACKWARD,
        "Captum LRP": _TWO_BACKWARD,
        "Captum DeepLift": "it runs both ends in one batch and goes back once, without a record of the operators",
        "Captum GradientShap": "its default draws five points",
        "Captum KernelShap": "its default draws 25 sets of parts",
        "Captum FeatureAblation": "32 parts are removed in one batch",
        "SHAP DeepExplainer": "it runs both ends in one batch and goes back once, without a record of the operators",
        "zennit": _ONE_BACKWARD,
        "LXT": _ONE_BACKWARD,
        "inseq input_x_gradient": _ONE_BACKWARD,
        "TransformerLens": "it reads what one run wrote, and asks for no tokens",
    },
    "MiB": {
        "Captum InputXGradient": _KEEPS_ONE,
        "Captum DeepLift": _KEEPS_ONE,
        "Captum LRP": _KEEPS_ONE,
        "Captum FeatureAblation": _KEEPS_NONE,
        "Captum ShapleyValueSampling": _KEEPS_NONE,
        "zennit": _KEEPS_ONE,
        "LXT": _KEEPS_ONE,
        "inseq input_x_gradient": _KEEPS_ONE,
        "inseq occlusion": _KEEPS_NONE,
        "TransformerLens": "it keeps the residual stream of one run, without gradients",
    },
    "F": {
        "Captum IntegratedGradients": _NEEDED,
        "Captum GradientShap": _NEEDED,
        "Captum DeepLift": _NEEDED,
        "Captum InputXGradient": _NEEDED,
        "SHAP GradientExplainer": _NEEDED,
        "Captum ShapleyValueSampling": _REMOVES,
        "Captum KernelShap": _REMOVES,
        "Captum FeatureAblation": _REMOVES,
        "SHAP KernelExplainer": _REMOVES,
        "SHAP PermutationExplainer": _REMOVES,
        "inseq occlusion": _REMOVES,
        "inseq integrated_gradients": _NEEDED,
    },
    "faithfulness correlation": {
        "Captum ShapleyValueSampling": _REMOVES,
        "Captum KernelShap": _REMOVES,
        "Captum FeatureAblation": _REMOVES,
        "SHAP KernelExplainer": _REMOVES,
        "SHAP PermutationExplainer": _REMOVES,
        "inseq occlusion": _REMOVES,
    },
    "monotonicity": {
        "Captum FeatureAblation": _SINGLE_PARTS,
        "inseq occlusion": _SINGLE_PARTS,
    },
    "complexity": {
        "": "the measure asks only how few parts have the magnitudes, not whether these are the right ones",
    },
    "cannot matter": {
        "DLBacktrace": "all its magnitudes are on the question, none on a cause",
        "Captum FeatureAblation": "to remove a part that cannot matter changes nothing",
    },
}
