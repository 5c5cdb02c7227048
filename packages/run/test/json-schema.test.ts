import { type JsonSchema, jsonSchema } from "@trireme/run";
import { expect, it } from "vitest";

/** Every node of a schema with its path. */
function* nodes(schema: JsonSchema, path: string): Generator<[string, JsonSchema]> {
  yield [path, schema];
  for (const branch of schema.anyOf ?? []) yield* nodes(branch, path);
  for (const [key, child] of Object.entries(schema.properties ?? {}))
    yield* nodes(child, `${path}.${key}`);
}

it("describes every field", () => {
  const described = new Set<string>();
  const all = [...nodes(jsonSchema(), "run")];
  for (const [path, node] of all) if (node.description !== undefined) described.add(path);
  const bare = all.map(([path]) => path).filter((path) => path !== "run" && !described.has(path));
  expect([...new Set(bare)]).toEqual([]);
  expect(described.size).toBeGreaterThan(60);
});

it("is strict: no object takes unknown keys", () => {
  const loose = [...nodes(jsonSchema(), "run")].filter(
    ([, node]) => node.type === "object" && node["additionalProperties"] !== false,
  );
  expect(loose.map(([path]) => path)).toEqual([]);
});

it("is plain JSON that names its dialect", () => {
  const schema = jsonSchema();
  expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
  expect(schema["$schema"]).toContain("2020-12");
  expect(schema["required"]).toEqual(["model", "plan"]);
});
