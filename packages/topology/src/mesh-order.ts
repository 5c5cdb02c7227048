/**
 * Meshes named by their order, as Megatron-LM names them: "tp-cp-ep-dp-pp" puts tensor-parallel
 * ranks side by side and pipeline stages farthest apart.
 */
import { TriremeError, nearestName } from "@trireme/core";
import { type Mesh, defineMesh } from "./mesh.ts";

/**
 * A mesh from an order and the sizes of its axes; an axis without a size has size 1.
 * @throws TriremeError "MESH" on a size for an axis that the order does not have, and whatever
 * `defineMesh` refuses.
 */
export function meshFromOrder(order: string, sizes: Readonly<Record<string, number>>): Mesh {
  const names = order.split("-");
  for (const name of Object.keys(sizes)) {
    if (names.includes(name)) continue;
    const nearest = nearestName(name, names);
    throw new TriremeError(
      "MESH",
      `a size is given for "${name}", but the order "${order}" has no such axis${nearest ? `; did you mean "${nearest}"?` : ""}`,
    );
  }
  return defineMesh(names.map((name) => ({ name, size: sizes[name] ?? 1 })));
}

/** The order of a mesh: its axes' names joined by "-". */
export function orderOf(mesh: Mesh): string {
  return mesh.axes.map((a) => a.name).join("-");
}
