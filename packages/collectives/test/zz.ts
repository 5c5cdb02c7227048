import { communicatorArena } from "@trireme/collectives";
import { Ranks, values } from "./ranks.ts";
const t = new Ranks();
const el=16<<20;
for (let round=0;round<2;round++)
for (const [slotBytes, slots] of [[32768,8],[65536,8],[32768,16],[16384,32]] as const) {
  const v = values(await t.run<{copy:number,reduce:number}>("ratio", 2, { memory: communicatorArena(2,{slotBytes,slots}), argument: { elements: el, repeats: 15 } }));
  const c=Math.max(...v.map(x=>x.copy))*1e3, r=Math.max(...v.map(x=>x.reduce))*1e3;
  console.log(slotBytes, slots, c.toFixed(1), r.toFixed(1), "ratio", (c/r).toFixed(2));
}
await t.stop();
