"""Records the Kineto vectors: python3 kineto-gloo.py DIRECTORY (PyTorch with gloo; no GPU)."""

import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.profiler import ProfilerActivity, profile, record_function


def train(rank, world, directory):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(8, 16)

    def step():
        optimizer.zero_grad()
        with record_function("forward"):
            loss = model(x).square().mean()
        with record_function("backward"):
            loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()

    step()
    with profile(activities=[ProfilerActivity.CPU]) as recorded:
        step()
    stem = os.path.join(directory, f"kineto-gloo-rank{rank}")
    recorded.export_chrome_trace(f"{stem}.json")
    rows = [
        {"key": e.key, "count": e.count, "total": e.cpu_time_total, "self": e.self_cpu_time_total}
        for e in recorded.key_averages()
    ]
    with open(f"{stem}-averages.json", "w") as file:
        json.dump(rows, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(2, sys.argv[1]), nprocs=2)
