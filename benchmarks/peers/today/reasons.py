"""Reasons why a peer is ahead, where they were found out: by the title of a measure and the beginning of a method's name."""

_ONE_BACKWARD = "it is one run and one run backward, where Addend records each operator and runs it on the baseline too"
_REMOVES = "it runs the model without parts, and so does the measure"

REASONS = {
    "time": {
        "Captum InputXGradient": _ONE_BACKWARD,
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
    "F": {
        "Captum ShapleyValueSampling": _REMOVES,
        "Captum KernelShap": _REMOVES,
        "Captum FeatureAblation": _REMOVES,
        "SHAP KernelExplainer": _REMOVES,
        "SHAP PermutationExplainer": _REMOVES,
        "inseq occlusion": _REMOVES,
    },
    "faithfulness correlation": {
        "Captum ShapleyValueSampling": _REMOVES,
        "Captum KernelShap": _REMOVES,
        "Captum FeatureAblation": _REMOVES,
        "SHAP KernelExplainer": _REMOVES,
        "SHAP PermutationExplainer": _REMOVES,
        "inseq occlusion": _REMOVES,
    },
    "cannot matter": {
        "Captum FeatureAblation": "to remove a part that cannot matter changes nothing",
    },
}
