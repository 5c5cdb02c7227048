export { toPerfetto } from "./to-perfetto.ts";
export { fromPerfetto } from "./from-perfetto.ts";
