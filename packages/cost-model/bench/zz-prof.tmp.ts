import { benchmarks } from "/work/main/packages/cost-model/bench/estimate.bench.ts";
const b: any = benchmarks[0];
b.before();
for (let i=0;i<3;i++){ const c=process.cpuUsage(); b.time(); const d=process.cpuUsage(c); console.log(50000/((d.user+d.system)/1e6)); }
