"""Captum's methods for inputs, with the defaults of each but for batches."""

import captum
from captum import attr

VERSION = captum.__version__
STEPS = 50
AT_ONCE = 32


def elementwise(name, aim="difference", start=True, **options):
    """A method that gives each element its own contribution."""

    def make(case):
        method = getattr(attr, name)(case.model)

        def explain(question):
            given = {"baselines": question.baseline} if start else {}
            return question.by_unit(method.attribute(question.x, target=question.target, **given, **options), aim)

        return explain

    return make


def by_mask(name, **options):
    """A method that removes whole parts, in batches."""

    def make(case):
        method = getattr(attr, name)(case.model)

        def explain(question):
            return question.one_each(method.attribute(
                question.x, baselines=question.baseline, target=question.target, feature_mask=question.mask,
                perturbations_per_eval=AT_ONCE, **options,
            ))

        return explain

    return make


METHODS = {
    "Captum IntegratedGradients": elementwise("IntegratedGradients", n_steps=STEPS, internal_batch_size=STEPS),
    "Captum DeepLift": elementwise("DeepLift"),
    "Captum GradientShap": elementwise("GradientShap"),
    "Captum InputXGradient": elementwise("InputXGradient", start=False),
    "Captum LRP": elementwise("LRP", aim="value", start=False),
    "Captum FeatureAblation": by_mask("FeatureAblation"),
    "Captum ShapleyValueSampling": by_mask("ShapleyValueSampling"),
    "Captum KernelShap": by_mask("KernelShap"),
}
