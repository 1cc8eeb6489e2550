"""The order of packages and models on the page; nothing but names, so that the page needs no PyTorch."""

# Modules of methods by the word that their names begin with.
MODULES = {
    "Addend": "with_addend",
    "Captum": "with_captum",
    "SHAP": "with_shap",
    "zennit": "with_zennit",
    "LXT": "with_lxt",
    "inseq": "with_inseq",
    "DLBacktrace": "with_dlbacktrace",
    "TransformerLens": "with_transformer_lens",
}
PACKAGES = list(MODULES)

MODELS = [
    "breast_cancer",
    "digits",
    "language",
    "speaker",
    "resnet18",
    "vit_tiny",
    "bert",
    "gpt2",
    "llama",
    "minilm",
    "table_gated_linear_units",
    "image_squeeze_and_excite",
    "retrieval_encoder",
    "retrieval_decoder",
    "copying_decoder",
    "agreement_encoder",
    "agreement_decoder",
    "modular_sums_encoder",
    "modular_sums_decoder",
    "nested_brackets_decoder",
    "retrieval_LSTM",
    "retrieval_GRU",
]
