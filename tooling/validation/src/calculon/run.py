"""Runs Calculon on a list of steps: JSON on stdin, JSON on stdout. Usage: run.py PATH_OF_CALCULON."""

import json
import logging
import os
import sys
import time

base = sys.argv[1]
sys.path.insert(0, base)
try:
    import calculon
    from calculon.llm import Llm
except ImportError as error:
    print(json.dumps({"missing": str(error)}))
    sys.exit(0)

logger = logging.getLogger("calculon")


def system(name, network):
    with open(os.path.join(base, "systems", name + ".json")) as file:
        description = json.load(file)
    description["networks"][1]["bandwidth"] = network
    # A description says GiB; a step that ran did fit, so memory is not what is asked.
    description["mem1"]["GiB"] = 1e9
    return calculon.System(description)


steps = json.load(sys.stdin)
systems = {}
results = []
spent = 0.0
for step in steps:
    key = (step["system"], step["network"])
    if key not in systems:
        systems[key] = system(*key)
    begin = time.process_time()
    try:
        model = Llm(Llm.Application(step["application"]), logger)
        model.compile(systems[key], Llm.Execution.from_json(step["execution"]))
        model.run(systems[key])
        result = {"seconds": model.get_total_time()}
    except (Llm.Error, AssertionError) as error:
        result = {"refused": str(error)}
    if "seconds" in result:
        spent += time.process_time() - begin
    results.append(result)
print(json.dumps({"results": results, "cpuSeconds": spent}))
