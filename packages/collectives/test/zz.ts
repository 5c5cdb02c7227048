import { communicatorArena } from "@trireme/collectives";
import { Ranks, values } from "./ranks.ts";
const t = new Ranks();
const el=16<<20;
for (let round=0;round<2;round++){
const c = Math.max(...values(await t.run<number>("copy", 2, { argument: { elements: el, repeats: 12 } })))*1e3;
console.log("copy", c.toFixed(2));
for (const [slotBytes, slots] of [[16384,8],[32768,8],[65536,4],[65536,8],[131072,4],[131072,8],[262144,4],[32768,32]] as const) {
  const v = values(await t.run<number>("time", 2, { memory: communicatorArena(2,{slotBytes,slots}), argument: { elements: el, repeats: 10 } }));
  const ms = Math.max(...v)*1e3;
  console.log(slotBytes, slots, ms.toFixed(3), "ms", (c/ms).toFixed(2));
}}
await t.stop();
