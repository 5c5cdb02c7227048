/** Controllers that are broken on purpose, each in one way, around the whole one. */
import { type ControllerOptions, type Order, RecoveryController } from "@trireme/fault-tolerance";
import type {
  ControllerFactory,
  ControllerLike,
  RuleName,
} from "@trireme/fault-tolerance/simulation";

interface Mutant {
  readonly does: string;
  readonly breaks: RuleName;
  readonly controller: ControllerFactory;
}

/** The whole controller with some methods replaced. */
const around =
  (change: (whole: RecoveryController) => Partial<ControllerLike>): ControllerFactory =>
  (options, now, record) => {
    const whole = new RecoveryController(options, now, record);
    const changed = change(whole);
    return {
      get record() {
        return changed.record ?? whole.record;
      },
      get next() {
        return whole.next;
      },
      report: changed.report ?? ((...all) => whole.report(...all)),
      tick: changed.tick ?? ((...all) => whole.tick(...all)),
      suspect: (...all) => whole.suspect(...all),
      admit: (...all) => whole.admit(...all),
      update: (...all) => whole.update(...all),
    };
  };

const told =
  (change: Partial<ControllerOptions>): ControllerFactory =>
  (options, now, record) =>
    new RecoveryController({ ...options, ...change }, now, record);

const ordered = (change: (order: Order) => Order): ControllerFactory =>
  around((whole) => ({ report: (...all) => change(whole.report(...all)) }));

const step = (by: number): ControllerFactory =>
  ordered((order) => (order.kind === "train" ? { ...order, step: order.step + by } : order));

export const mutants: readonly Mutant[] = [
  {
    does: "starts standbys while the old generation may still train",
    breaks: "one-generation",
    controller: told({ lease: 0.001 }),
  },
  {
    does: "sends orders that its record does not hold yet",
    breaks: "one-generation",
    controller: around((whole) => {
      let [late, current] = [whole.record, whole.record];
      return {
        get record() {
          if (whole.record !== current) [late, current] = [current, whole.record];
          return late;
        },
      };
    }),
  },
  { does: "trains a committed step again", breaks: "committed-steps", controller: step(-1) },
  { does: "leaves a step out", breaks: "committed-steps", controller: step(1) },
  {
    does: "commits what one member alone has done",
    breaks: "committed-steps",
    controller: around((whole) => ({
      report: (report, now) => {
        const order = whole.report(report, now);
        if (order.kind === "train" && report.generation === order.generation) {
          for (const host of whole.record.members) whole.report({ ...report, host }, now);
        }
        return order;
      },
    })),
  },
  {
    does: "takes steps of an older generation for those of the present one",
    breaks: "committed-steps",
    controller: around((whole) => ({
      report: ({ host, done }, now) =>
        whole.report({ host, done, generation: whole.record.generation }, now),
    })),
  },
  {
    does: "forgets which batches are skipped",
    breaks: "committed-steps",
    controller: ordered((order) => {
      if (order.kind !== "train") return order;
      const { skip: _, ...rest } = order;
      return rest;
    }),
  },
  {
    does: "goes back after every crash of a worker as if the loss had spiked",
    breaks: "committed-steps",
    controller: around((whole) => ({
      report: (report, now) =>
        whole.report(report.fault === "software" ? { ...report, fault: "loss" } : report, now),
    })),
  },
  {
    does: "evicts after a third of the deadline",
    breaks: "evidence",
    controller: (options, now, record) =>
      new RecoveryController({ ...options, deadline: options.deadline / 3 }, now, record),
  },
  {
    does: "evicts a host for a crash of its worker",
    breaks: "evidence",
    controller: around((whole) => ({
      report: (report, now) =>
        whole.report(report.fault === "software" ? { ...report, fault: "host" } : report, now),
    })),
  },
  {
    does: "never hears that members have left",
    breaks: "evidence",
    controller: around((whole) => ({
      report: (report, now) => {
        const halting = whole.record.phase === "halting";
        return whole.report(halting ? { ...report, generation: 0 } : report, now);
      },
    })),
  },
  {
    does: "gives up at the first crash",
    breaks: "liveness",
    controller: told({ restarts: 0 }),
  },
  {
    does: "keeps a host that reports itself broken",
    breaks: "liveness",
    controller: around((whole) => ({
      report: ({ fault, ...report }, now) =>
        whole.report(fault === undefined || fault === "host" ? report : { ...report, fault }, now),
    })),
  },
  {
    does: "lets no time pass",
    breaks: "liveness",
    controller: around(() => ({ tick: () => undefined })),
  },
];
