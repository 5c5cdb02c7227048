import { expect, it } from "vitest";
import { invoke } from "./invoke.ts";

it.each([["--help"], ["-h"], ["help"]])("%s prints the commands", async (flag) => {
  const { code, stdout, stderr } = await invoke([flag]);
  expect(code).toBe(0);
  for (const command of ["train", "simulate", "estimate"]) {
    expect(stdout).toContain(`trireme ${command} RUN.yaml`);
  }
  expect(stderr).toBe("");
});

it.each(["train", "simulate", "estimate"])(
  "%s --help lists exactly the options it takes",
  async (command) => {
    const { code, stdout } = await invoke([command, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("--set");
    expect(stdout.includes("--out")).toBe(command !== "estimate");
    expect(stdout).toContain("exit code");
  },
);

it.each(["train", "simulate", "estimate", "prepare"])(
  "help %s is that command's",
  async (command) => {
    const [asked, flag] = [await invoke(["help", command]), await invoke([command, "--help"])];
    expect(asked).toEqual(flag);
    expect(asked.stdout).toContain(`trireme ${command} `);
  },
);

it("--version is the package's", async () => {
  const { code, stdout } = await invoke(["--version"]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/)]);
});

it.each([
  [["trian", "x.yaml"], "trireme: unknown command trian; did you mean train? (trireme --help)"],
  [
    ["x.yaml"],
    "trireme: unknown command x.yaml; known: train, simulate, estimate, prepare (trireme --help)",
  ],
  [["train"], "trireme train: which run? give a run file, for example examples/sotu-gpt.yaml"],
  [
    ["train", "a.yaml", "b.yaml"],
    "trireme train: one run file at a time, but there is also b.yaml",
  ],
  [
    ["train", "a.yaml", "plan.tp=2"],
    "trireme train: one run file at a time, but there is also plan.tp=2; to change the run, --set plan.tp=2",
  ],
  [["estimate", "a.yaml", "--jsn"], "trireme estimate: unknown option --jsn; did you mean --json?"],
  [["--verison"], "trireme: unknown command --verison; did you mean --version? (trireme --help)"],
  [["help", "trian"], "trireme: unknown command trian; did you mean train? (trireme --help)"],
  [
    ["estimate", "a.yaml", "--out", "d"],
    "trireme estimate: --out: it writes nothing; train and simulate do",
  ],
  [
    ["simulate", "a.yaml", "--out", "--json"],
    "trireme simulate: --out needs a value, but --json follows; for example --out runs/mine",
  ],
  [
    ["train", "a.yaml", "--out", "a", "--out=b"],
    "trireme train: --out is given twice, as a and as b",
  ],
  [["prepare", "a.txt", "--out", "p", "--json=false"], "trireme prepare: --json takes no value"],
  [
    ["prepare", "a.txt", "--out", "p", "--field", "a", "--field", "b"],
    "trireme prepare: --field is given twice, as a and as b",
  ],
  [
    ["prepare", "a.txt", "--out", "p", "--workers", "1025"],
    "trireme prepare: --workers 1025 must be a whole number from 0 to 1024",
  ],
  [
    ["simulate", "a.yaml", "-x"],
    "trireme simulate: unknown option -x; known: --set, --out, --json, --help",
  ],
  [["train", "a.yaml", "--set"], "trireme train: --set needs a value, for example --set plan.tp=8"],
  [
    ["train", "a.yaml", "--out="],
    "trireme train: --out needs a value, for example --out runs/mine",
  ],
  [["train", "a.yaml", "--json=yes"], "trireme train: --json takes no value"],
])("%j is refused in one line", async (args, line) => {
  expect(await invoke(args)).toEqual({ code: 2, stdout: "", stderr: `${line}\n` });
});
