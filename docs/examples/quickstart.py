"""Explains which digit a model sees in an image: the same program in five languages."""

import sys

import addend


def quickstart(model_path, sample_path):
    model = addend.load_model(model_path)
    image = addend.read_tensors(sample_path)["input"]

    # One component for each pixel, explained against an empty image.
    results = model.decompose(addend.Input(image, dims=(2, 3), baseline=0))

    explanation = results.explain("top1")
    print("output %s = %.4f" % (explanation.target, explanation.value))
    for pixel in explanation.top(3):
        print("pixel %s: %+.4f" % (pixel.name, pixel.value))
    print("leftover: %.1e" % explanation.leftover)
    print("recovery error: %.1e" % explanation.recovery_error)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: quickstart.py MODEL SAMPLE")
    quickstart(*sys.argv[1:])
