/** What `--help` prints. */
import type { CommandName } from "./arguments.ts";

/** Of `trireme` itself. */
export const help = `trireme: price, simulate and train large language models from one description

usage
  trireme train RUN.yaml       train on this machine, after predicting the step
  trireme simulate RUN.yaml    one step on virtual time: iteration, MFU, bubble, memory, trace
  trireme estimate RUN.yaml    one step in closed form: where the time goes
  trireme prepare TEXTS...     texts to token files (.bin, .idx), once for all runs on them

options
  --help        this text; after a command, that command's
  --version     the version

Without arguments: trireme train examples/sotu-gpt.yaml, a small GPT on real text.
`;

const common = `  --set PATH=VALUE  change the run: --set plan.tp=8, as often as needed; null unsets
  --json            machine output on stdout
  --help            this text
`;

/** Of a command. */
export const commandHelp: Readonly<Record<CommandName, string>> = {
  train: `trireme train RUN.yaml: train on this machine

Times the operators of the run for at most 5 s, predicts the step by simulation, trains, and holds
the prediction against the measurement. Progress goes to stderr.

options
${common}  --out DIR         the run folder; default runs/NAME-N, a new one
                    a folder that has a checkpoint is gone on with from there

signals
  SIGINT, SIGTERM   stop after the step under way, with a checkpoint
  SIGUSR2           save a checkpoint now

exit code: 0 trained, 1 failed or stopped, 2 bad input
`,
  simulate: `trireme simulate RUN.yaml: one step on virtual time

Plays the pipeline schedule action by action with the cost of every operator and message, and
writes the trace for Perfetto (ui.perfetto.dev) or speedscope. A run on this machine is priced by
timing its operators here for at most 5 s, any other from the catalogue of hardware.

options
${common}  --out DIR         where trace.json goes; default runs/NAME-N, a new folder

exit code: 0 simulated, 2 bad input or a plan that cannot run
`,
  estimate: `trireme estimate RUN.yaml: one step in closed form

Prices every operator and collective and adds them up by cause, without playing the schedule.

options
${common}
exit code: 0 estimated, 2 bad input or a plan that cannot run
`,
};

/** Of `trireme prepare`. */
export const prepareHelp = `trireme prepare TEXTS...: texts to Megatron's token files

Reads .txt, .jsonl, .ndjson (also with .gz or .zst) and .parquet, files or directories of them,
and writes PREFIX.bin and PREFIX.idx. What was stopped goes on with the same command, to the same
bytes.

options
  --out PREFIX      where to; needed
  --tokenizer NAME  byte (default), character, an encoding of tiktoken (gpt2, cl100k_base,
                    o200k_base), or the path of a Hugging Face tokenizer.json
  --field NAME      key or column that has the text; default text
  --end ID          token behind each document, 50256 for gpt2; default none
  --workers N       threads; default one a core, 0 for none
  --json            machine output on stdout
  --help            this text

exit code: 0 prepared, 1 stopped, 2 bad input
`;
