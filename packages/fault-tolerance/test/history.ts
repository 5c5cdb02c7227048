import { createRng, type Rng } from "@trireme/core";
import { type ControllerRecord, type Order, RecoveryController } from "@trireme/fault-tolerance";

interface Agent {
  generation: number;
  done: number;
  training: boolean;
  alive: boolean;
  bad: boolean;
  soft: boolean;
  cut: number;
  skew: number;
}

/** One random history of six hosts: its last record, or an error at the first broken rule. */
export function history(seed: number): ControllerRecord {
  const rng: Rng = createRng(seed);
  const hosts = [0, 1, 2, 3];
  const standbys = [4, 5];
  const options = { hosts, standbys, deadline: 30, minimum: 2 };
  const agents = [...hosts, ...standbys].map((): Agent => ({
    generation: 0,
    done: 0,
    training: false,
    alive: true,
    bad: false,
    soft: false,
    cut: 0,
    skew: 0.9 + 0.2 * rng.float(),
  }));
  let controller = new RecoveryController(options, 0);
  let stored = controller.record;
  const members = new Map([[1, stored.members]]);
  const ran = new Map<string, Set<number>>();
  const trained = new Set<string>();
  let newest = 0;
  const mail: { at: number; run: (now: number) => void }[] = [];
  const send = (now: number, run: (now: number) => void): void => {
    if (rng.float() < 0.1) return;
    const copies = rng.float() < 0.1 ? 2 : 1;
    for (let i = 0; i < copies; i++) mail.push({ at: now + 8 * rng.float() ** 3, run });
  };
  const keep = (): void => {
    const next = controller.record;
    if (next.committed < stored.committed) throw new Error("a committed step was lost");
    for (let step = stored.committed + 1; step <= next.committed; step++) {
      if (!trained.has(`${next.generation}/${step}`)) throw new Error("committed untrained");
    }
    for (const host of next.evicted.keys()) {
      const { alive, bad, cut } = agents[host]!;
      // Silence without a cause must need a run of losses that the deadline makes rare.
      if (alive && !bad && cut === 0 && !silenced.has(host))
        throw new Error(`host ${host} evicted without evidence`);
    }
    if (next.phase === "training") members.set(next.generation, next.members);
    stored = next;
  };
  const silenced = new Set<number>();
  const lastArrived = new Map<number, number>();
  const obey = (host: number, order: Order): void => {
    const agent = agents[host]!;
    if (!agent.alive) return;
    if (order.kind === "evict") {
      agent.training = false;
      return;
    }
    if (order.generation < agent.generation) return;
    if (order.kind === "halt") {
      agent.training &&= order.generation === agent.generation;
      if (order.generation > agent.generation) agent.done = 0;
      agent.generation = order.generation;
      return;
    }
    if (order.generation > agent.generation || !agent.training) agent.done = order.step - 1;
    agent.generation = order.generation;
    agent.training = true;
    if (order.step !== agent.done + 1) return;
    agent.done = order.step;
    const key = `${order.generation}/${order.step}`;
    const set = ran.get(key) ?? new Set();
    ran.set(key, set.add(host));
    if (set.size < members.get(order.generation)!.length) return;
    // A step is a collective: it completes only while every member is still in the generation.
    const together = members.get(order.generation)!;
    if (together.some((each) => agents[each]!.generation !== order.generation)) return;
    trained.add(key);
    if (order.generation < newest) throw new Error("an older generation trained after a newer one");
    newest = order.generation;
  };
  // A recovery still under way at 400 s has 120 s, four deadlines, to end.
  for (let now = 1; now <= 400 || (stored.phase === "halting" && now <= 520); now++) {
    mail.sort((a, b) => a.at - b.at);
    while (mail.length > 0 && mail[0]!.at <= now) mail.shift()!.run(now);
    if (now < 250) {
      const victim = agents[rng.integer(agents.length)]!;
      const dice = rng.float();
      if (dice < 0.004) victim.alive = false;
      else if (dice < 0.008) victim.bad = true;
      else if (dice < 0.014) victim.soft = true;
      else if (dice < 0.02) victim.cut = now + 60 * rng.float();
      else if (dice < 0.03) controller = new RecoveryController(options, now, stored);
    }
    for (const [host, agent] of agents.entries()) {
      if (now - (lastArrived.get(host) ?? 0) >= 30) silenced.add(host);
      if (!agent.alive || rng.float() > 0.4 * agent.skew) continue;
      const report = {
        host,
        generation: agent.generation,
        done: agent.done,
        ...(agent.bad
          ? { fault: "host" as const }
          : agent.soft
            ? { fault: "software" as const }
            : {}),
      };
      agent.soft = false;
      if (agent.cut > now) continue;
      send(now, (at) => {
        lastArrived.set(host, at);
        const order = controller.report(report, at);
        keep();
        if (agent.cut <= at) send(at, () => obey(host, order));
      });
    }
    controller.tick(now);
    keep();
  }
  const { phase, committed, reason } = stored;
  if (phase === "stopped" ? reason === undefined : phase !== "training" || committed < 5) {
    throw new Error(`ended ${phase} at step ${committed}`);
  }
  return stored;
}

/** Runs the seeds [from, to) and counts how they ended; an error names the seed, which replays it. */
export function sweep(
  from: number,
  to: number,
): { training: number; stopped: number; generations: number } {
  const counts = { training: 0, stopped: 0, generations: 0 };
  for (let seed = from; seed < to; seed++) {
    try {
      const end = history(seed);
      counts[end.phase === "training" ? "training" : "stopped"]++;
      counts.generations += end.generation;
    } catch (error) {
      throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
    }
  }
  return counts;
}
