"""Small random models of the architectures of Hugging Face transformers, and what they are called with.

Nothing is downloaded: each model is made from a configuration with few layers and random weights, large enough that
attention and gates are far from uniform.
"""

import dataclasses
from typing import Any, Callable, Dict, List, Tuple

import torch
import transformers

VOCABULARY = 23
PAD = 0  # the token of padding, which is the baseline too
LENGTH = 6
PADDED = 2  # positions of the second example that are padding
RANGE = 0.25  # of the random weights; what training begins with leaves every attention uniform


@dataclasses.dataclass
class Given:
    """The arguments of one call: tensors that are split, with their dimensions and baselines, and plain ones."""

    split: Dict[str, Tuple[torch.Tensor, int, Any]]
    plain: Dict[str, Any]


@dataclasses.dataclass
class Architecture:
    """One architecture: its model, its calls, and which of its outputs is explained."""

    name: str
    make: Callable[..., torch.nn.Module]  # by the kind of attention; further arguments are settings
    given: Callable[[bool], Given]  # with a padding mask, or without
    output: str = "logits"
    attentions: Tuple[str, ...] = ("eager", "sdpa")
    masks: Tuple[bool, ...] = (False, True)


def _ids(seed: int, length: int = LENGTH) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, (2, length), generator=torch.Generator().manual_seed(seed))


def _mask(left: bool) -> torch.Tensor:
    """The second example is shorter: padded in front of it, as decoders have it, or behind."""
    mask = torch.ones(2, LENGTH, dtype=torch.long)
    padded = slice(0, PADDED) if left else slice(LENGTH - PADDED, LENGTH)
    mask[1, padded] = 0
    return mask


def _text(masked: bool, left: bool, **plain: Any) -> Given:
    """Ids of tokens; a padded position holds the token of padding."""
    ids = _ids(1)
    if masked:
        plain["attention_mask"] = _mask(left)
        ids = ids.masked_fill(plain["attention_mask"] == 0, PAD)
    return Given({"input_ids": (ids, 1, PAD)}, plain)


def _decoder_text(masked: bool) -> Given:
    return _text(masked, True, use_cache=False)


def _encoder_text(masked: bool) -> Given:
    return _text(masked, False)


def _images(masked: bool) -> Given:
    pixels = torch.rand(2, 3, 4, 4, generator=torch.Generator().manual_seed(2))
    return Given({"pixel_values": (pixels, 3, 0.5)}, {})


def _text_and_images(masked: bool) -> Given:
    text, images = _text(masked, False), _images(masked)
    # The position of the largest id is where the text ends, in the value as on the baseline.
    ids, dim, _ = text.split["input_ids"]
    end = LENGTH - PADDED - 1
    ids[:, end] = VOCABULARY - 1
    baseline = torch.full_like(ids, PAD)
    baseline[:, end] = VOCABULARY - 1
    return Given({"input_ids": (ids, dim, baseline), **images.split}, text.plain)


def _two_texts(masked: bool) -> Given:
    encoder = _text(masked, False, use_cache=False)
    split = {**encoder.split, "decoder_input_ids": (_ids(3, LENGTH - 1), 1, PAD)}
    return Given(split, encoder.plain)


def _speech(masked: bool) -> Given:
    sound = torch.randn(2, 4, 2 * LENGTH, generator=torch.Generator().manual_seed(4))
    plain: Dict[str, Any] = {"use_cache": False}
    if masked:
        plain["decoder_attention_mask"] = _mask(True)
    return Given({"input_features": (sound, 2, 0.0), "decoder_input_ids": (_ids(3), 1, PAD)}, plain)


def _made(model: str, configuration: str, **settings: Any) -> Callable[..., torch.nn.Module]:
    """Returns a maker of a model, by the names of both classes and what differs from their defaults."""

    def make(attention: str, **own: Any) -> torch.nn.Module:
        torch.manual_seed(5)
        config = getattr(transformers, configuration)(**{**settings, **own})
        made = getattr(transformers, model)._from_config(config, attn_implementation=attention)
        # Biases and norms begin at 0 and 1, where a rule that forgets them is right by chance.
        with torch.no_grad():
            for name, parameter in made.named_parameters():
                if parameter.dim() < 2:
                    parameter.add_(torch.randn_like(parameter) * 0.1)
        return made.eval()

    return make


_TEXT = {"vocab_size": VOCABULARY, "pad_token_id": PAD, "bos_token_id": 1, "eos_token_id": 2}
_SMALL = {
    **_TEXT,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "initializer_range": RANGE,
}
_SHARED_HEADS = {**_SMALL, "num_key_value_heads": 2}
_HEADS = {**_SHARED_HEADS, "head_dim": 4}


def _decoder(name: str, prefix: str, **settings: Any) -> Architecture:
    settings = {**_SHARED_HEADS, **settings}
    return Architecture(name, _made(prefix + "ForCausalLM", settings.pop("config", prefix + "Config"), **settings), _decoder_text)


_VISION = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
           "image_size": 4, "patch_size": 2, "initializer_range": RANGE}

ALL: List[Architecture] = [
    Architecture(
        "GPT-2",
        _made("GPT2LMHeadModel", "GPT2Config", **_TEXT, n_embd=16, n_inner=24, n_layer=2, n_head=4, n_positions=32,
              initializer_range=RANGE),
        _decoder_text,
    ),
    _decoder("Llama", "Llama"),
    _decoder("Qwen2", "Qwen2"),
    _decoder("Qwen3", "Qwen3", head_dim=4),
    _decoder("Gemma2", "Gemma2", head_dim=4, sliding_window=3, query_pre_attn_scalar=4),
    _decoder("Gemma3", "Gemma3", config="Gemma3TextConfig", head_dim=4, sliding_window=3, query_pre_attn_scalar=4),
    _decoder("Mistral", "Mistral", sliding_window=3),
    _decoder("Mixtral", "Mixtral", num_local_experts=4, num_experts_per_tok=2),
    _decoder("Phi-3", "Phi3"),
    Architecture("BERT", _made("BertForMaskedLM", "BertConfig", **_SMALL), _encoder_text),
    Architecture(
        "ModernBERT",
        _made("ModernBertForMaskedLM", "ModernBertConfig", **_SMALL, local_attention=4, reference_compile=False,
              initializer_cutoff_factor=2.0),
        _encoder_text,
    ),
    Architecture(
        "DeBERTa-v2",
        _made("DebertaV2ForMaskedLM", "DebertaV2Config", **_SMALL, relative_attention=True, pos_att_type=["c2p", "p2c"],
              position_buckets=4, max_relative_positions=8, norm_rel_ebd="layer_norm", share_att_key=True),
        _encoder_text,
        attentions=("eager",),
    ),
    Architecture(
        "T5",
        _made("T5ForConditionalGeneration", "T5Config", **_TEXT, d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4,
              decoder_start_token_id=PAD, initializer_factor=2.0),
        _two_texts,
        attentions=("eager",),
    ),
    Architecture(
        "Mamba",
        _made("MambaForCausalLM", "MambaConfig", **_TEXT, hidden_size=16, state_size=4, num_hidden_layers=2,
              conv_kernel=3, initializer_range=RANGE),
        _decoder_text,
        attentions=("eager",),
    ),
    Architecture("ViT", _made("ViTForImageClassification", "ViTConfig", **_VISION, num_labels=5), _images, masks=(False,)),
    Architecture(
        "CLIP",
        _made("CLIPModel", "CLIPConfig", projection_dim=8,
              text_config={**_SMALL, "eos_token_id": VOCABULARY - 1}, vision_config=_VISION),
        _text_and_images,
        output="logits_per_image",
    ),
    Architecture(
        "Whisper",
        _made("WhisperForConditionalGeneration", "WhisperConfig", **_TEXT, d_model=16, encoder_layers=2,
              decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=24,
              decoder_ffn_dim=24, num_mel_bins=4, max_source_positions=LENGTH, max_target_positions=32, init_std=RANGE,
              decoder_start_token_id=1, suppress_tokens=None, begin_suppress_tokens=None),
        _speech,
    ),
]
