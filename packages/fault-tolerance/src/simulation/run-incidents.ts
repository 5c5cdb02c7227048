/** What befalls the hosts of a run: when it strikes, what stops, and who says what of it when. */
import type { Incident } from "./incident.ts";
import type { RunStage } from "./run-stage.ts";
import type { Soloist, Soloists } from "./soloists.ts";

const stops: ReadonlySet<Incident["symptom"]> = new Set([
  "silence",
  "evidence",
  "software",
  "named",
]);

export class RunIncidents {
  readonly #stage: RunStage;
  readonly #soloists: Soloists;
  #updates = 0;

  constructor(stage: RunStage, soloists: Soloists) {
    this.#stage = stage;
    this.#soloists = soloists;
  }

  /** An incident is to come: its hosts are played from a heartbeat before it. */
  announce(incident: Incident): void {
    const { times } = this.#stage.input;
    const hosts = incident.hosts.filter((host) => this.#stage.index.has(host));
    const from = Math.max(this.#stage.loop.now, incident.time - times.heartbeat);
    this.#stage.loop.at(from, () => {
      for (const host of hosts) this.#soloists.apart(host).pending++;
      if (hosts.length > 0) this.#stage.sync();
    });
    this.#stage.loop.at(incident.time, () => this.#strike(incident, hosts));
  }

  #strike(incident: Incident, hosts: readonly number[]): void {
    const { symptom, detect = 0, cause = symptom } = incident;
    const { now } = this.#stage.loop;
    const struck = hosts.filter((host) => !this.#stage.record.evicted.has(host));
    const inside =
      hosts.length === 0 ||
      struck.some((host) => this.#stage.isMember(this.#stage.index.get(host)!));
    const { generation } = this.#stage.record;
    const own = (host: number): Soloist => this.#soloists.apart(host);
    const over = (): void => {
      for (const host of hosts) own(host).pending--;
    };
    const later = (notice: () => void): void => {
      this.#stage.loop.after(detect, () => {
        over();
        notice();
      });
    };
    if (inside && stops.has(symptom)) this.#stage.progress.freeze(now);
    switch (symptom) {
      case "silence":
        for (const host of struck) own(host).up = false;
        over();
        return;
      case "evidence":
        for (const host of struck) this.#soloists.broken.add(host);
        later(() => {
          for (const host of struck)
            if (this.#soloists.speaks(own(host)))
              this.#soloists.speak(own(host), { fault: "host", reason: cause });
        });
        return;
      case "software":
      case "loss":
        later(() => this.#complain(symptom === "loss" ? "loss" : "software", generation, struck));
        return;
      case "named":
      case "degraded":
        later(() => {
          this.#stage.sync();
          this.#stage.controller.suspect(struck, cause, this.#stage.loop.now);
          this.#stage.decided();
        });
        return;
      case "update":
        over();
        this.#stage.sync();
        this.#stage.controller.update(++this.#updates, now, { urgent: incident.urgent === true });
        this.#stage.decided();
    }
  }

  /** A member reports what has come over its generation, unless that has ended meanwhile. */
  #complain(fault: "software" | "loss", generation: number, hosts: readonly number[]): void {
    const { phase, members } = this.#stage.record;
    if (phase !== "training" || this.#stage.record.generation !== generation) return;
    const host = hosts.find((each) => members.includes(each)) ?? members[0]!;
    const solo = this.#soloists.apart(host);
    this.#stage.sync();
    if (
      solo.generation === generation &&
      solo.joined === generation &&
      this.#soloists.speaks(solo)
    ) {
      this.#soloists.speak(solo, { fault });
    }
  }
}
