import * as S from "/work/main/packages/schedulers/src/index.ts";
import { exactSchedule } from "/work/main/packages/schedulers/src/exact.ts";
import { createRng } from "/work/main/packages/core/src/index.ts";
const g=createRng(Number(process.argv[2]??1)); const N=Number(process.argv[3]??10);
let worst=0, worstLb=0, tt=0;
for (let k=0;k<N;k++){ const P=1+g.integer(3), M=1+g.integer(4); const placement=(process.argv[4]==='v'?'v':'loop') as 'v'|'loop'; const S_=P*(placement==='v'?2:1);
 const per=()=>Array.from({length:S_},()=>0.5+g.float()*1.5); const uni=g.float()<0.5; const [f,i,w]=[per(),per(),per()]; const c={forward:(s:number)=>uni?f[0]!:f[s]!,inputGradient:(s:number)=>uni?i[0]!:i[s]!,weightGradient:(s:number)=>uni?w[0]!:w[s]!,pointToPoint:g.float()<0.5?0:g.float()*0.5};
 const lim=(placement==='v'?2:1)*(1+g.integer(2*P));
 const t=performance.now(); const a=S.automaticZeroBubble({ranks:P,microbatches:M,costs:c,memoryLimit:lim,placement}); const t1=performance.now();
 let e; try { e=await exactSchedule({ranks:P,microbatches:M,costs:c,memoryLimit:lim,placement,timeLimit:60}); } catch(x){ console.log('ERR',String(x)); continue; }
 const t2=performance.now(); tt+=t2-t1;
 if(a.ok&&e.ok){ const r=a.makespan/e.makespan-1; worst=Math.max(worst,r); if(a.lowerBound>e.makespan*(1+1e-9)) console.log('LB WRONG'); worstLb=Math.max(worstLb,e.makespan/a.lowerBound-1); console.log(P,M,lim,e.optimal,(r*100).toFixed(3)+'%','lb',((e.makespan/a.lowerBound-1)*100).toFixed(2)+'%',(t1-t).toFixed(0),(t2-t1).toFixed(0)); } else console.log(a,e); }
console.log('worst',worst,'lb',worstLb,tt);
