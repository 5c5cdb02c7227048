"""Trains a GPT-2 in plain PyTorch: what the embedded engine is compared with.

    python nano-gpt.py DIRECTORY

DIRECTORY holds `setting.json`, the first weights in `model.safetensors` under GPT-2's names with
[in, out] matrices, and `train.i32` and `validation.i32`: [batches, samples, sequence + 1] token ids.
Writes `result.json`, the losses and the CPU seconds of each step and the mean loss of the validation
batches at the end, and `gradients.safetensors`, those of the first step before clipping.
"""

import json
import struct
import sys
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (
            part.view(batch, tokens, self.heads, -1).transpose(1, 2)
            for part in self.c_attn(x).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, tokens, width))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Layer(nn.Module):
    def __init__(self, width, heads, epsilon):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width, epsilon)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width, epsilon)
        self.mlp = FeedForward(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, setting):
        super().__init__()
        width, epsilon = setting["hidden"], setting["epsilon"]
        self.wte = nn.Embedding(setting["vocab"], width)
        self.wpe = nn.Embedding(setting["context"], width)
        self.h = nn.ModuleList(
            Layer(width, setting["heads"], epsilon) for _ in range(setting["layers"])
        )
        self.ln_f = nn.LayerNorm(width, epsilon)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for layer in self.h:
            x = layer(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def is_matrix(name):
    """Of a linear layer: GPT-2's files keep it as [in, out], nn.Linear as [out, in]."""
    return name.endswith("weight") and ".c_" in name


def load(model, path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            begin, end = header[name]["data_offsets"]
            values = torch.frombuffer(bytearray(body[begin:end]), dtype=torch.float32)
            values = values.view(header[name]["shape"])
            parameter.copy_(values.t() if is_matrix(name) else values)


def save_gradients(model, path):
    header, body = {}, bytearray()
    for name, parameter in model.named_parameters():
        gradient = (parameter.grad.t() if is_matrix(name) else parameter.grad).contiguous()
        begin = len(body)
        body += bytes(gradient.flatten().view(torch.uint8).tolist())
        offsets = [begin, len(body)]
        header[name] = {"dtype": "F32", "shape": list(gradient.shape), "data_offsets": offsets}
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + body)


def read_batches(path, samples, tokens):
    raw = bytearray(path.read_bytes())
    if not raw:
        return []
    return torch.frombuffer(raw, dtype=torch.int32).view(-1, samples, tokens + 1).long()


def main():
    directory = Path(sys.argv[1])
    setting = json.loads((directory / "setting.json").read_text())
    torch.set_num_threads(setting["threads"])
    model = Gpt(setting)
    load(model, directory / "model.safetensors")
    batches, validation = (
        read_batches(directory / f"{part}.i32", setting["samples"], setting["context"])
        for part in ("train", "validation")
    )

    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": setting["weightDecay"]},
            {"params": vectors, "weight_decay": 0.0},
        ],
        betas=(setting["beta1"], setting["beta2"]),
        eps=setting["adamEpsilon"],
        fused=True,
    )
    losses, seconds = [], []
    for step, rate in enumerate(setting["rates"]):
        begin = time.process_time()
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = model(batches[step, :, :-1], batches[step, :, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if step == 0:
            save_gradients(model, directory / "gradients.safetensors")
        nn.utils.clip_grad_norm_(model.parameters(), setting["clip"])
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.process_time() - begin)
    with torch.no_grad():
        held_out = [model(batch[:, :-1], batch[:, 1:]).item() for batch in validation]
    mean = sum(held_out) / len(held_out) if held_out else float("nan")
    result = {"losses": losses, "seconds": seconds, "validation": mean}
    (directory / "result.json").write_text(json.dumps(result).replace("NaN", "null"))


main()
