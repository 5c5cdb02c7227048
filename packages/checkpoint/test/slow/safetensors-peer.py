"""Reads a directory's files with the reference package, and writes them back with it.

Usage: safetensors-peer.py DIRECTORY; prints one JSON object.
"""

import json
import os
import sys

import safetensors
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

directory = sys.argv[1]


def at(name):
    return os.path.join(directory, name)


# Every element type, by the low-level reader.
with open(at("every.safetensors"), "rb") as file:
    every = [
        [name, t["dtype"], list(t["shape"]), bytes(t["data"]).hex()]
        for name, t in safetensors.deserialize(file.read())
    ]

# Those that NumPy has, through arrays and back.
with safe_open(at("arrays.safetensors"), framework="numpy") as file:
    metadata = file.metadata()
save_file(load_file(at("arrays.safetensors")), at("back.safetensors"), metadata=metadata)

# Shards, by their index.
with open(at("model.safetensors.index.json"), encoding="utf-8") as file:
    text = file.read()
index = json.loads(text)
again = json.dumps(index, indent=2, sort_keys=True) + "\n"
shards = {}
for name, shard in index["weight_map"].items():
    with safe_open(at(shard), framework="numpy") as file:
        shards[name] = file.get_tensor(name).tobytes().hex()

# A tensor beyond 4 GiB, of which only the ends are read.
with safe_open(at("large.safetensors"), framework="numpy") as file:
    part = file.get_slice("large")
    length = part.get_shape()[0]
    ends = [part[0:4].tolist(), part[2**31 - 2 : 2**31 + 2].tolist(), part[2**32 - 2 : 2**32 + 2].tolist(), part[length - 4 : length].tolist()]

print(
    json.dumps(
        {
            "every": every,
            "metadata": metadata,
            "shards": shards,
            "indexIsPythons": again == text,
            "ends": ends,
        }
    )
)
