import { fileStorage, fileStore } from "@trireme/runtime/node";
import { open } from "node:fs/promises";
import { rmSync } from "node:fs";
const files = Array.from({length:4},(_, i)=>({name:`${i}.bin`, bytes:new Uint8Array(new SharedArrayBuffer(5e8)).fill(i+1)}));
const now=()=>performance.now()/1e3;
const t=new Map<string,number>();
const storage={...fileStorage, async execute(o:any){const b=now(); await fileStorage.execute(o); t.set(o.kind,(t.get(o.kind)??0)+now()-b);}};
rmSync("/tmp/bw",{recursive:true,force:true});
const store=fileStore("/tmp/bw/c",{keep:1,storage});
for(let s=1;s<=3;s++){
  t.clear(); let b=now(); await store.save({step:s,files}); console.log("save",(now()-b).toFixed(2),JSON.stringify(Object.fromEntries([...t].map(([k,v])=>[k,+v.toFixed(2)]))));
  b=now(); let w=0,sy=0;
  for(const [i,{bytes}] of files.entries()){ const h=await open(`/tmp/bw/plain-${s}-${i}`,"w"); let x=now(); for(let at=0;at<bytes.byteLength;at+=16*2**20) await h.write(bytes,at,Math.min(16*2**20,bytes.byteLength-at),at); w+=now()-x; x=now(); await h.sync(); sy+=now()-x; await h.close(); }
  console.log("plain",(now()-b).toFixed(2),"write",w.toFixed(2),"sync",sy.toFixed(2));
  b=now(); for(let i=0;i<4;i++) rmSync(`/tmp/bw/plain-${s}-${i}`); console.log("rm", (now()-b).toFixed(2));
}
rmSync("/tmp/bw",{recursive:true,force:true});
