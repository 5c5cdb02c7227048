/** One pipeline stage of a decoder-only transformer, forward; the tape knows the way back. */
import { type Model, type Stage, layerFormAt, layerForms } from "@trireme/workload";
import { recomputed } from "../operators/recomputed.ts";
import type { SectionUse, StageInput, StageOptions } from "./stage-options.ts";
import { StageRun } from "./stage-run.ts";
import type { Tape, Variable } from "../tape/tape.ts";

/** How the names of the tensors of each section begin, up to a point; a tied head uses the embedding's table. */
export function sectionNames({ tied }: Model, stage: Stage): string[][] {
  const layers = Array.from({ length: stage.layers }, (_, i) => [`h.${stage.firstLayer + i}`]);
  return [
    ...(stage.embedding ? [["wte", "wpe"]] : []),
    ...layers,
    ...(stage.head ? [["ln_f", "lm_head", ...(tied ? ["wte"] : [])]] : []),
  ];
}

/** Runs the stage: to hidden states [rows, hidden], or logits [batch·tokens, vocab] at the head. */
export function stageForward(tape: Tape, options: StageOptions, input: StageInput): Variable {
  const { model, stage, recompute = "none", recomputeLayers = Infinity } = options;
  const parts = new StageRun(options, input);
  const { sections } = options.parameters;
  let section = 0;
  let x = stage.embedding
    ? inSection(tape, sections, section++, () => parts.embed(tape))
    : input.hidden;
  if (x === undefined) throw new Error(`stage ${stage.stage} got no input`);
  tape.rest();
  for (let i = 0; i < stage.layers; i++) {
    const name = `h.${stage.firstLayer + i}`;
    const form = layerForms(model)[layerFormAt(model, stage.firstLayer + i)]!;
    const again = i < recomputeLayers ? recompute : "none";
    const layer = (on: Tape, v: Variable): Variable =>
      parts.layer(on, { name, form, drops: again === "selective" }, v);
    const before = x;
    const whole = again === "full";
    const run = (): Variable => (whole ? recomputed(tape, before, layer) : layer(tape, before));
    x = inSection(tape, sections, section++, run, whole);
    tape.rest();
  }
  if (!stage.head) return x;
  const last = x;
  // The head takes all its gradients in the first half of backward.
  return inSection(tape, sections, section, () => parts.head(tape, last, model.tied), true);
}

/** Runs a section, and has its tensors there whenever it or its backward needs them. */
function inSection(
  tape: Tape,
  sections: SectionUse | undefined,
  section: number,
  body: () => Variable,
  atOnce = false,
): Variable {
  if (sections === undefined) return body();
  const sum = (): void => sections.sum(section);
  sections.use(section, 1);
  tape.record(atOnce ? { input: sum } : { weight: sum });
  const y = body();
  const use = (): void => sections.use(section, -1);
  const open = (): void => sections.open(section);
  const both = (): void => {
    use();
    open();
  };
  tape.record(atOnce ? { input: both } : { input: use, weight: open });
  return y;
}
