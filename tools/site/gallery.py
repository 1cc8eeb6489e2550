"""The gallery: pages that `addend` writes of the example models, in frames of their own."""

import os

import figures
from layout import escape

# file -> (title, how it was made). Pages of bindings that are not built are left out.
OF_BINDINGS = {"onnx.html"}
PAGES = {
    "language.html": ("Which words made the model say German?", "decompose docs/examples/models/language/model.pt --input "
                      "sample.safetensors:labels=segments --baseline token:mask_token"),
    "speaker.html": ("Which words made the model go on as it did?", "decompose docs/examples/models/speaker/model.pt --input "
                     "sample.safetensors:labels=segments --baseline token:mask_token"),
    "digits.html": ("Which pixels made it an eight?", "decompose docs/examples/models/digits/model.pt --input "
                    "sample.safetensors:dim=2,3 --baseline 0"),
    "breast_cancer.html": ("Which measurements made it benign?", "decompose docs/examples/models/breast_cancer/model.pt "
                           "--input sample.safetensors --baseline baseline.npy"),
    "onnx.html": ("The eight, from an ONNX file, by Java", "docs/examples/onnx/DigitsPage.java: model.onnx sample.safetensors"),
    "why_not.html": ("Why an eight and not a three?", "decompose docs/examples/models/digits/model.pt --input "
                     "sample.safetensors:dim=2,3 --baseline 0 --target 8-3"),
    "graph.html": ("What the model did, coloured by what passed through", "attribute docs/examples/models/language/model.pt "
                   "--input sample.safetensors:labels=segments --baseline token:mask_token --graph graph.html"),
}


def build(site, paths):
    given = {os.path.basename(path): path for path in paths}
    parts = ["<h1>Gallery</h1>", "<p>Pages as Addend writes them. Each is one file without anything from elsewhere; open it "
             "in a window of its own, or send it to somebody.</p>"]
    for name, (title, command) in PAGES.items():
        if name in OF_BINDINGS and name not in given:
            continue
        with open(given.pop(name), encoding="utf-8") as file:
            page = file.read()
        site.copy("gallery/" + name, page.encode("utf-8"))
        site.searched.append(("gallery/" + name, title, figures.words(page)))
        parts.append('<figure><figcaption><h2><a href="gallery/%s">%s</a></h2><code>%s</code></figcaption>'
                     '<iframe src="gallery/%s" title="%s" loading="lazy"></iframe></figure>' % (
                         name, escape(title), escape(command if name in OF_BINDINGS else "addend " + command), name, escape(title)))
    if given:
        raise ValueError("the gallery has no title for " + ", ".join(sorted(given)))
    site.add("gallery.html", "Gallery", "\n".join(parts), "broad gallery")
