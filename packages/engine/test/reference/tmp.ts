import { embeddedRuntime } from "@trireme/engine";
import { nanoGpt, nanoGptBatch, rateOf } from "./nano-gpt.ts";
import { torchPython, trainByTorch } from "./torch.ts";
const steps = 100;
const run = nanoGpt();
const med=(a:number[])=>a.toSorted((x,y)=>x-y)[a.length>>1]!;
for (const gemm of ["wasm","native"] as const){
const rt = embeddedRuntime({gemm});
await rt.start(run);
const t = trainByTorch(torchPython()!, run, await rt.snapshot(), steps);
let worst=0; const sec:number[]=[];
for (let s=0;s<steps;s++){const r=await rt.step({step:s,batch:nanoGptBatch(s),learningRate:rateOf(run,s)}); worst=Math.max(worst,Math.abs(r.loss-t.losses[s]!)); sec.push(r.seconds);
 if(s===10){const a:Record<string,number>={};for(const e of r.timeline.events??[]){} console.log(Object.keys(r.timeline))}}
console.log(gemm, "vocab",run.model.vocab,"worst",worst,"loss",t.losses[99],"torch min/med ms",Math.min(...t.seconds)*1e3,med([...t.seconds])*1e3,"ours",Math.min(...sec)*1e3,med(sec)*1e3);
await rt.stop();
}
