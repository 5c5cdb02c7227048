/**
 * The reference implementation reads what is written here, and the other way round. Optional: needs
 * Python (`PYTHON` names the interpreter) with the packages safetensors and numpy.
 */
import { spawnSync } from "node:child_process";
import {
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
  closeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createRng } from "@trireme/core";
import {
  type Dtype,
  type TensorEntry,
  decodeSafetensors,
  dtypeBits,
  dtypes,
  encodeSafetensors,
  encodeShardIndex,
  layoutSafetensors,
  planShards,
} from "@trireme/checkpoint";

const python = process.env["PYTHON"] ?? "python3";
const found = spawnSync(python, ["-c", "import safetensors.numpy"], { encoding: "utf8" });
const missing =
  found.error === undefined ? `${python} lacks safetensors or numpy` : `there is no ${python}`;
const skipped = found.status !== 0;
if (skipped) console.warn(`skipped: ${missing}; pip install safetensors numpy`);

const rng = createRng(4);

function random(name: string, dtype: Dtype, shape: readonly number[]): TensorEntry {
  const length = (shape.reduce((a, b) => a * b, 1) * dtypeBits(dtype)) / 8;
  // Booleans are 0 or 1; every other pattern of bits is a value.
  const limit = dtype === "BOOL" ? 2 : 256;
  const data = Uint8Array.from({ length }, () => rng.integer(limit));
  return { name, dtype, shape, data };
}

const hex = ({ data }: TensorEntry): string => Buffer.from(data).toString("hex");

test.skipIf(skipped)(
  "the Python package loads files written here and writes them back, bit for bit",
  () => {
    const directory = mkdtempSync(join(tmpdir(), "safetensors-"));
    const at = (name: string): string => join(directory, name);
    try {
      const every = dtypes.flatMap((dtype) => [
        random(`${dtype}.matrix`, dtype, [4, 6]),
        random(`${dtype}.empty`, dtype, [0, 3]),
        ...(dtypeBits(dtype) % 8 === 0 ? [random(`${dtype}.scalar`, dtype, [])] : []),
      ]);
      writeFileSync(at("every.safetensors"), encodeSafetensors(every));

      const inNumpy: readonly Dtype[] = ["BOOL", "U8", "I8", "I16", "U16", "F16", "I32", "U32"];
      const wide: readonly Dtype[] = ["F32", "F64", "I64", "U64"];
      const arrays = [...inNumpy, ...wide].flatMap((dtype) => [
        random(`${dtype} "é" \u{1f6a3}`, dtype, [3, 5]),
        random(`${dtype}.empty`, dtype, [0]),
      ]);
      const metadata = { format: "np", ä: "\u0001" };
      const file = encodeSafetensors(arrays, metadata);
      writeFileSync(at("arrays.safetensors"), file);

      const weights = Array.from({ length: 9 }, (_, i) => random(`w.${i}é`, "F32", [i, 7]));
      const plan = planShards(weights, { maximum: 400 });
      for (const { name, tensors } of plan.files) {
        const entries = weights.filter((w) => tensors.some((t) => t.name === w.name));
        writeFileSync(at(name), encodeSafetensors(entries));
      }
      writeFileSync(at(plan.indexName), encodeShardIndex(plan.index!));

      // 5 GiB that take no room: only the places looked at are written.
      const size = 5 * 2 ** 30;
      const {
        header,
        tensors,
        size: fileSize,
      } = layoutSafetensors([{ name: "large", dtype: "U8", shape: [size] }]);
      writeFileSync(at("large.safetensors"), header);
      truncateSync(at("large.safetensors"), fileSize);
      const large = openSync(at("large.safetensors"), "r+");
      for (const [i, place] of [0, 2 ** 31 - 2, 2 ** 32 - 2, size - 4].entries()) {
        const bytes = Uint8Array.of(1, 2, 3, 4).map((x) => x + 10 * i);
        writeSync(large, bytes, 0, 4, tensors[0]!.offset + place);
      }
      closeSync(large);

      const script = fileURLToPath(new URL("safetensors-peer.py", import.meta.url));
      const run = spawnSync(python, [script, directory], { encoding: "utf8", maxBuffer: 2 ** 26 });
      expect([run.status, run.status === 0 ? "" : run.stderr]).toEqual([0, ""]);
      const peer = JSON.parse(run.stdout);
      const byName = (a: readonly unknown[], b: readonly unknown[]): number =>
        String(a[0]) < String(b[0]) ? -1 : 1;
      expect(peer.every.toSorted(byName)).toEqual(
        every.map((t) => [t.name, t.dtype, t.shape, hex(t)]).sort(byName),
      );
      expect(peer.metadata).toEqual(metadata);
      expect(peer.shards).toEqual(Object.fromEntries(weights.map((t) => [t.name, hex(t)])));
      expect(peer.indexIsPythons).toBe(true);
      expect(peer.ends).toEqual([
        [1, 2, 3, 4],
        [11, 12, 13, 14],
        [21, 22, 23, 24],
        [31, 32, 33, 34],
      ]);
      const back = readFileSync(at("back.safetensors"));
      const decoded = decodeSafetensors(back);
      expect({ ...decoded.metadata }).toEqual(metadata);
      const ours = arrays.map((t) => [t.name, t.dtype, t.shape, hex(t)]).sort(byName);
      expect(decoded.tensors.map((t) => [t.name, t.dtype, t.shape, hex(t)]).sort(byName)).toEqual(
        ours,
      );
      // Data in the same order at the same offsets: the whole files are equal but for the order of
      // metadata in the reference writer's header, which is that of a hash map.
      expect(back.length).toBe(file.length);
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);
