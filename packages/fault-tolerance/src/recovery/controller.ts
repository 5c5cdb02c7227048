/**
 * The recovery state machine. Reports of agents and the time go in, orders come out: no clock, no
 * I/O, no chance.
 *
 * Safety rests on training being collective: a step needs every member of a generation. A new
 * generation starts only once each member it keeps has left the old one, and it keeps at least one
 * (or, with leases, the old one's time must be over).
 */
import type { Seconds } from "@trireme/core";

import { nextMembership } from "./membership.ts";
import {
  type ControllerOptions,
  type ResolvedOptions,
  checkWhole,
  resolveOptions,
} from "./options.ts";
import { orderOf, refuseStale } from "./order.ts";
import type { CohortReport, Order, Report } from "./protocol.ts";
import { type ControllerRecord, type StopKind, firstRecord } from "./record.ts";
import { planReattempt } from "./reattempt.ts";
import { Roster } from "./roster.ts";
import { planRollback } from "./spike.ts";
import {
  type Evidence,
  nobody,
  withCommitted,
  withEvicted,
  withHalted,
  withStopped,
  withTrained,
} from "./transitions.ts";

export class RecoveryController {
  readonly #options: ResolvedOptions;
  readonly #roster: Roster;
  #record: ControllerRecord;
  /** When the present phase began, as far as this controller knows. */
  #since: Seconds;
  /** When a member last finished a step that nobody had, or might have begun to. */
  #progress: Seconds;
  /** When to see next whether there are hosts to grow by. */
  #grow: Seconds;
  /** Nobody at all is heard: no decision could reach anyone. */
  #deaf = false;

  /**
   * @param record State of a controller that crashed; a new run without it.
   * @throws TriremeError "CONTROLLER" for options that contradict themselves.
   */
  constructor(options: ControllerOptions, now: Seconds, record?: ControllerRecord) {
    this.#options = resolveOptions(options);
    this.#record = record ?? firstRecord(options.hosts, options.standbys);
    const { members, generation, committed } = this.#record;
    // Silence is counted from now: what was heard before a crash is not known.
    this.#roster = new Roster(members, generation, committed, now);
    this.#since = now;
    this.#progress = now;
    this.#grow = now + this.#options.regrow;
  }

  get record(): ControllerRecord {
    return this.#record;
  }

  /** When `tick` has next something to do if nobody reports; Infinity where nothing is awaited. */
  get next(): Seconds {
    const { phase, pending, members } = this.#record;
    const { deadline, blackout, stall, leave } = this.#options;
    if (phase === "stopped") return Infinity;
    if (this.#deaf) return this.#roster.last + blackout;
    const silence = this.#roster.oldest + deadline;
    if (phase === "training") {
      const grow = this.#canGrowBy(this.#record.standbys) ? this.#grow : Infinity;
      return Math.min(silence, this.#progress + stall, pending?.due ?? Infinity, grow);
    }
    if (!this.#roster.complete) return Math.min(silence, this.#since + leave);
    const wait = this.#since + this.#options.patience;
    return Math.min(silence, members.length > 0 ? wait : Math.max(wait, this.#fence));
  }

  /**
   * Takes a report; the order is its answer.
   * @throws TriremeError "STALE_RECORD" where the host has been in a generation that this
   * controller's record does not know: another controller has gone on, or the record is an old one.
   */
  report(report: Report, now: Seconds): Order {
    const { host, generation, fault } = report;
    refuseStale(this.#record, report);
    this.#hear(now);
    const further = this.#roster.hear(host, report, now);
    const reason = this.#record.evicted.get(host);
    if (reason !== undefined) return { kind: "evict", reason };
    const current = generation === this.#record.generation;
    if (further) this.#progress = now;
    if (this.#record.phase !== "stopped" && this.#knows(host)) {
      if (fault === "host")
        this.#evict(new Map([[host, report.reason ?? "reported a host fault"]]), now);
      else if (current && this.#record.phase === "training" && this.#roster.isMember(host)) {
        if (fault === "software") this.#reattempt(nobody, now);
        else if (fault === "loss") this.#rollBack(report.done, now);
        else this.#commit();
      }
      this.#resume(now);
    }
    return orderOf(this.#record, host, this.#roster.isMember(host));
  }

  /** Takes one report in the name of many hosts; the order is the answer to each member of them. */
  reportCohort(report: CohortReport, now: Seconds): Order {
    this.#hear(now);
    if (this.#roster.hearCohort(report, report.except, now, report.lasting === true))
      this.#progress = now;
    if (this.#record.phase === "training" && report.generation === this.#record.generation) {
      this.#commit();
    }
    this.#resume(now);
    const apart = new Set(report.except);
    const member = this.#record.members.find((host) => !apart.has(host));
    return orderOf(this.#record, member ?? Number.NaN, member !== undefined);
  }

  /** Evicts hosts on evidence from elsewhere: stack traces, a replay, a straggler; good ones too. */
  suspect(hosts: readonly number[], reason: string, now: Seconds): void {
    const known = hosts.filter((host) => this.#knows(host));
    if (this.#record.phase === "stopped" || known.length === 0) return;
    this.#evict(new Map(known.map((host) => [host, reason])), now);
    this.#resume(now);
  }

  /**
   * Makes a repaired or new host a standby; one that is already known stays what it is.
   * @throws TriremeError "CONTROLLER" for a host that is no whole number from 0 up.
   */
  admit(host: number, now: Seconds): void {
    checkWhole("host", host);
    if (this.#record.phase === "stopped" || this.#knows(host)) return;
    const evicted = new Map(this.#record.evicted);
    evicted.delete(host);
    this.#record = { ...this.#record, evicted, standbys: [...this.#record.standbys, host] };
    this.#resume(now);
  }

  /**
   * Asks for another version of the code, in place: at once where urgent, else at the next
   * interruption, and after the window at the latest. Updates that wait are merged into the newest.
   * @throws TriremeError "CONTROLLER" for a version that is no whole number from 0 up.
   */
  update(version: number, now: Seconds, options: { readonly urgent?: boolean } = {}): void {
    checkWhole("version", version);
    if (this.#record.phase === "stopped") return;
    const due = options.urgent === true ? now : now + this.#options.updateWindow;
    const pending = { version, due: Math.min(due, this.#record.pending?.due ?? Infinity) };
    this.#record = { ...this.#record, pending };
    this.tick(now);
  }

  /** Lets time pass: what has waited for its deadline is done. */
  tick(now: Seconds): void {
    if (this.#record.phase === "stopped") return;
    const { deadline, blackout, stall, leave } = this.#options;
    if (this.#roster.last + deadline <= now) {
      this.#deaf = true;
      if (this.#roster.last + blackout <= now) {
        this.#stop("deaf", `no host has been heard for ${blackout} s`);
      }
      return;
    }
    const silent = this.#roster.silent(now, deadline);
    if (silent.length > 0) {
      this.#evict(new Map(silent.map((host) => [host, `silent for ${deadline} s`])), now);
    }
    const { phase, pending, generation } = this.#record;
    if (phase === "halting" && !this.#roster.complete && this.#since + leave <= now) {
      const reason = `did not leave generation ${generation - 1} within ${leave} s`;
      this.#evict(new Map(this.#roster.absent().map((host) => [host, reason])), now);
    } else if (phase === "training") {
      if (this.#progress + stall <= now) this.#stall(now);
      else if ((pending?.due ?? Infinity) <= now) this.#halt(nobody, now);
      else if (this.#grow <= now) this.#regrow(now);
    }
    this.#resume(now);
  }

  #knows(host: number): boolean {
    return this.#roster.isMember(host) || this.#record.standbys.includes(host);
  }

  /** Whoever comes back from a time in which nobody was heard is not to blame for it. */
  #hear(now: Seconds): void {
    if (this.#roster.last + this.#options.deadline <= now) this.#roster.forgive(now);
    this.#roster.touch(now);
    this.#deaf = false;
  }

  #alive(host: number, now: Seconds): boolean {
    return this.#roster.heard(host) + this.#options.deadline > now;
  }

  /** Whether a replica is missing that these standbys could make. */
  #canGrowBy(standbys: readonly number[]): boolean {
    const { hosts, unit } = this.#options;
    return hosts.length - this.#record.members.length >= unit && standbys.length >= unit;
  }

  /** When a generation of which nobody is left must be over: no order to train since the halt. */
  get #fence(): Seconds {
    return this.#since + (this.#options.lease ?? Infinity);
  }

  #commit(): void {
    const saved = this.#roster.saved;
    if (saved === undefined) return;
    this.#record = withCommitted(this.#record, saved, this.#options.keep);
    this.#roster.change(this.#record.generation, saved, [], []);
  }

  /** Members leave; whoever there is evidence against is evicted. */
  #halt(evidence: Evidence, now: Seconds, change: Partial<ControllerRecord> = {}): void {
    const begins = this.#record.phase === "training";
    const record = withHalted(this.#record, evidence, change);
    const { generation } = record;
    this.#record = record;
    this.#roster.change(generation, record.committed, evidence.keys(), []);
    if (begins) this.#since = now;
    if (record.members.length === 0 && this.#options.lease === undefined) {
      this.#stop("unfenced", `no host of generation ${generation - 1} is left to fence it`);
    }
  }

  #evict(evidence: Evidence, now: Seconds): void {
    for (const host of evidence.keys()) {
      if (!this.#roster.isMember(host)) continue;
      this.#halt(evidence, now);
      return;
    }
    // Standbys alone: training goes on.
    this.#record = withEvicted(this.#record, evidence);
  }

  #reattempt(evidence: Evidence, now: Seconds): void {
    const plan = planReattempt(this.#record, this.#options.restarts);
    if (!plan.ok) {
      this.#stop("crash-loop", plan.reason);
      return;
    }
    this.#record = plan.record;
    this.#halt(evidence, now, { attempts: plan.attempts, check: true });
  }

  /** No step for too long: those that never came are to blame, else nobody is known to be. */
  #stall(now: Seconds): void {
    const { generation, members } = this.#record;
    const absent = this.#roster.absent();
    const reason = `did not enter generation ${generation} within ${this.#options.stall} s`;
    const known = absent.length < members.length ? absent : [];
    if (known.length > 0) this.#evict(new Map(known.map((host) => [host, reason])), now);
    else this.#reattempt(nobody, now);
  }

  /** Standbys that came late end the training on fewer hosts. */
  #regrow(now: Seconds): void {
    const ready = this.#record.standbys.filter((host) => this.#alive(host, now));
    if (this.#canGrowBy(ready)) this.#halt(nobody, now);
    else this.#grow = now + Math.max(this.#options.regrow, this.#options.deadline);
  }

  #rollBack(step: number, now: Seconds): void {
    const { saves, skip, spike, rollbacks, committed } = this.#record;
    const plan = planRollback({ step, skip, saves, last: spike, policy: this.#options.spike });
    if (!plan.ok) {
      this.#stop(plan.stop, plan.reason);
      return;
    }
    this.#halt(nobody, now, {
      committed: plan.to,
      saves: saves.filter((save) => save <= plan.to),
      skip: plan.skip,
      spike: plan.spike,
      rollbacks: rollbacks + (plan.to < committed ? 1 : 0),
      check: true,
    });
  }

  #stop(stop: StopKind, reason: string): void {
    this.#record = withStopped(this.#record, stop, reason);
  }

  #resume(now: Seconds): void {
    const { phase, members, standbys, layout, generation } = this.#record;
    if (phase !== "halting" || !this.#roster.complete) return;
    if (members.length === 0 && now < this.#fence) return;
    const { unit, minimum, patience } = this.#options;
    const target = this.#options.hosts.length;
    const ready = standbys.filter((host) => this.#alive(host, now));
    const next = nextMembership({ layout, kept: members, ready, target, unit });
    if (next.members.length < target && now < this.#since + patience) return;
    if (next.members.length < Math.max(minimum, 1)) {
      const count = `${members.length + ready.length} hosts are left`;
      this.#stop("too-few-hosts", `${count}, but at least ${Math.max(minimum, 1)} must train`);
      return;
    }
    this.#record = withTrained(this.#record, next);
    this.#roster.change(generation, this.#record.committed, next.spared, next.hired);
    this.#since = now;
    this.#progress = now;
    this.#grow = now + this.#options.regrow;
  }
}
