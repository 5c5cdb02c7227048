/**
 * The driver's decisions: rendezvous, then the recovery controller of `@trireme/fault-tolerance` on
 * every report, launches, the agreed stop, the end. Pure: messages and the time go in, answers and a
 * new record come out. The record must be stored before the answers are sent.
 */
import { TriremeError, type Seconds } from "@trireme/core";
import {
  type ControllerOptions,
  type ControllerRecord,
  type Report,
  RecoveryController,
} from "@trireme/fault-tolerance";
import type { DriverRecord, HostEntry } from "./driver-record.ts";
import { planLaunch } from "./launch.ts";
import {
  type AgentReport,
  type Answer,
  type Failure,
  type Join,
  type RunEnd,
  type StopOrder,
  describeFailure,
} from "./message.ts";
import { takeBound } from "./stop-agreement.ts";

/** What a driver decides by: the recovery controller's options, with hosts told by their number. */
export interface DriverPolicy extends Omit<ControllerOptions, "hosts" | "standbys"> {
  /** Hosts that train; they have the indices from 0. */
  readonly hosts: number;
  /** Hosts that stand by, with the indices after those; default 0. */
  readonly standbys?: number;
  /** Time from the start within which every member must join. */
  readonly joinDeadline: Seconds;
  /** What a failure is evidence of; `classifyFailure` by default. */
  readonly classify?: (failure: Failure) => NonNullable<Report["fault"]>;
}

/** The word of the worker, or the software: an exit alone does not tell on the host. */
export function classifyFailure(failure: Failure): NonNullable<Report["fault"]> {
  return failure.kind === "declared" ? failure.scope : "software";
}

export class DriverMachine {
  readonly #policy: DriverPolicy;
  readonly #options: ControllerOptions;
  readonly #joinBy: Seconds;
  #record: DriverRecord;
  #controller: RecoveryController | undefined;
  /**
   * Members whose workers have all ended by themselves. Not in the record: they say it in every
   * report, and with it what they have saved, which a driver that takes over must hear first.
   */
  readonly #finished = new Set<number>();

  /** @param record What the driver before has stored; a new run without it. */
  constructor(policy: DriverPolicy, now: Seconds, record?: DriverRecord) {
    checkPolicy(policy);
    const { hosts, standbys = 0, joinDeadline, classify: _, ...recovery } = policy;
    const indices = Array.from({ length: hosts + standbys }, (__, host) => host);
    this.#policy = policy;
    this.#options = {
      ...recovery,
      hosts: indices.slice(0, hosts),
      standbys: indices.slice(hosts),
    };
    // What contradicts itself is refused here, not when the last host has joined.
    void new RecoveryController(this.#options, now);
    this.#joinBy = now + joinDeadline;
    this.#record = record ?? { hosts: new Map(), stopRequested: false };
    if (record?.controller !== undefined) {
      this.#controller = new RecoveryController(this.#options, now, record.controller);
    }
  }

  get record(): DriverRecord {
    return this.#record;
  }

  /** When `tick` has next something to do if no message comes; Infinity where nothing is awaited. */
  get next(): Seconds {
    if (this.#record.end !== undefined) return Infinity;
    return this.#controller?.next ?? this.#joinBy;
  }

  /** Takes a host in; a reason to refuse it where it has no place here. */
  join(join: Join, now: Seconds): { readonly refuse: string } | undefined {
    const { host, incarnation, ranks, endpoint } = join;
    const places = this.#options.hosts.length + this.#options.standbys.length;
    if (host >= places && this.#record.controller?.standbys.includes(host) !== true) {
      const why = `the run has hosts 0 to ${places - 1}, and no other has been admitted`;
      return { refuse: `host ${host} has no place: ${why}` };
    }
    const before = this.#record.hosts.get(host);
    if (before?.incarnation !== incarnation || before.ranks !== ranks) {
      this.#enter(host, { incarnation, ranks, endpoint });
      // Another agent process: the workers of the one before have died with it.
      if (before !== undefined) this.#lostWorkers(host, now);
    }
    const { hosts } = this.#record;
    if (this.#controller === undefined && this.#options.hosts.every((each) => hosts.has(each))) {
      this.#controller = new RecoveryController(this.#options, now);
      this.#follow();
    }
    return undefined;
  }

  /**
   * Takes a report and answers it.
   * @returns undefined for a host that has not joined as this agent: it must join again.
   */
  report(report: AgentReport, now: Seconds): Answer | undefined {
    const { host, incarnation, generation, done, saved, failures } = report;
    const entry = this.#record.hosts.get(host);
    if (entry?.incarnation !== incarnation) return undefined;
    const { address, port } = report.endpoint;
    if (entry.endpoint.address !== address || entry.endpoint.port !== port) {
      this.#enter(host, { ...entry, endpoint: report.endpoint });
    }
    const waiting = { kind: "halt", generation: 0 } as const;
    // Over: nothing that comes now changes it.
    const over = this.#record.end !== undefined && this.#record.controller?.phase !== "stopped";
    if (this.#controller === undefined || over) return this.#answer(waiting);
    const evidence = this.#evidence(failures);
    const order = this.#controller.report({ host, generation, done, saved, ...evidence }, now);
    this.#follow();
    this.#hear(report);
    return this.#answer(order, report.begun && generation === this.#record.launch?.generation);
  }

  /** Lets time pass: silent members are evicted, and a rendezvous that nobody completes ends. */
  tick(now: Seconds): void {
    if (this.#controller !== undefined) {
      this.#controller.tick(now);
      this.#follow();
    } else if (now >= this.#joinBy && this.#record.end === undefined) {
      const missing = this.#options.hosts.filter((host) => !this.#record.hosts.has(host));
      const waited = `did not join within ${this.#policy.joinDeadline} s`;
      this.#end(false, `rendezvous: host ${missing.join(", host ")} ${waited}`);
    }
  }

  /** Asks for a stop after one step that all ranks agree on; a run that does not train ends at once. */
  requestStop(): void {
    if (this.#record.stopRequested) return;
    this.#record = { ...this.#record, stopRequested: true };
    this.#follow();
  }

  /** The gravest failure: one of the host first, as it takes the host's place in any case. */
  #evidence(failures: readonly Failure[]): Pick<Report, "fault" | "reason"> {
    const faults = failures.map(this.#policy.classify ?? classifyFailure);
    const at = Math.max(0, faults.indexOf("host"));
    const [fault, failure] = [faults[at], failures[at]];
    if (fault === undefined || failure === undefined) return {};
    return { fault, reason: describeFailure(failure) };
  }

  /** Evicts hosts on evidence from elsewhere. */
  suspect(hosts: readonly number[], reason: string, now: Seconds): void {
    this.#controller?.suspect(hosts, reason, now);
    this.#follow();
  }

  /** Makes a repaired or new host a standby; its agent may join from now on. */
  admit(host: number, now: Seconds): void {
    this.#controller?.admit(host, now);
    this.#follow();
  }

  /** Asks for another version of the code: at once where urgent, else at the next interruption. */
  update(version: number, now: Seconds, options: { readonly urgent?: boolean } = {}): void {
    this.#controller?.update(version, now, options);
    this.#follow();
  }

  #enter(host: number, entry: HostEntry): void {
    this.#record = { ...this.#record, hosts: new Map(this.#record.hosts).set(host, entry) };
  }

  #lostWorkers(host: number, now: Seconds): void {
    const state = this.#controller?.record;
    if (state?.phase !== "training" || !state.members.includes(host)) return;
    const { generation, committed } = state;
    this.#controller?.report({ host, generation, done: committed, fault: "software" }, now);
    this.#follow();
  }

  /** Takes over what the controller has decided. */
  #follow(): void {
    const controller = this.#controller?.record;
    if (controller !== undefined && controller !== this.#record.controller) {
      this.#record = { ...this.#record, controller };
      if (controller.phase === "stopped") this.#end(false, controller.reason ?? "stopped");
      else if (controller.phase === "training") this.#launch(controller);
    }
    if (this.#record.stopRequested) this.#agree(controller);
  }

  #launch({ generation, members }: ControllerRecord): void {
    if (this.#record.launch?.generation === generation) return;
    const hosts = members.map((host) => {
      const entry = this.#record.hosts.get(host);
      if (entry === undefined) {
        throw new TriremeError("DRIVER", `host ${host} of generation ${generation} never joined`);
      }
      return { host, ranks: entry.ranks, endpoint: entry.endpoint };
    });
    this.#finished.clear();
    this.#record = { ...this.#record, launch: planLaunch(generation, hosts) };
  }

  /** A stop is agreed on within one generation; a fault meanwhile ends the run where it stands. */
  #agree(controller: ControllerRecord | undefined): void {
    const { stop, end } = this.#record;
    if (end !== undefined) return;
    if (controller === undefined) this.#end(true, "stopped as asked before every host had joined");
    else if (controller.phase !== "training") {
      this.#end(true, `stopped as asked, during a recovery, at step ${controller.committed}`);
    } else if (stop?.generation !== controller.generation) {
      const { generation } = controller;
      this.#record = { ...this.#record, stop: { generation, bounds: new Map() } };
    }
  }

  /** What a report tells beyond what the controller takes from it. */
  #hear({ host, generation, finished, bound }: AgentReport): void {
    const { controller, stop, end } = this.#record;
    if (end !== undefined || controller?.phase !== "training") return;
    if (generation !== controller.generation || !controller.members.includes(host)) return;
    if (stop !== undefined && bound !== undefined) {
      const next = takeBound(stop, controller.members, host, bound);
      if (next !== stop) this.#record = { ...this.#record, stop: next };
    }
    if (!finished) return;
    this.#finished.add(host);
    if (controller.members.some((member) => !this.#finished.has(member))) return;
    const step = this.#record.stop?.step;
    this.#end(true, step === undefined ? "finished" : `stopped as asked after step ${step}`);
  }

  #end(ok: boolean, reason: string): void {
    if (this.#record.end !== undefined) return;
    const end: RunEnd = { ok, reason, step: this.#controller?.record.committed ?? 0 };
    this.#record = { ...this.#record, end };
  }

  /** @param begun Whether the host already has the launch. */
  #answer(order: Answer["order"], begun = false): Answer {
    const { launch, stop, end } = this.#record;
    const trains = order.kind === "train" && launch?.generation === order.generation;
    const stopOrder: StopOrder | undefined =
      !trains || stop?.generation !== order.generation
        ? undefined
        : stop.step === undefined
          ? { kind: "hold" }
          : { kind: "after", step: stop.step };
    return {
      kind: "answer",
      order,
      ...(trains && !begun ? { launch } : {}),
      ...(stopOrder === undefined ? {} : { stop: stopOrder }),
      ...(end === undefined ? {} : { end }),
    };
  }
}

function checkPolicy({ hosts, standbys = 0, joinDeadline }: DriverPolicy): void {
  for (const [name, value, least] of [
    ["hosts", hosts, 1],
    ["standbys", standbys, 0],
  ] as const) {
    if (!Number.isSafeInteger(value) || value < least) {
      throw new TriremeError(
        "DRIVER",
        `${name} = ${value} must be a whole number of at least ${least}`,
      );
    }
  }
  if (!(joinDeadline > 0)) {
    throw new TriremeError("DRIVER", `joinDeadline = ${joinDeadline} s must be above 0`);
  }
}
