/**
 * The text of TOML and YAML configurations as plain data and back. Each library is loaded when it is
 * first asked for, so that the formats that need neither work without them.
 */
import { missingPeer } from "@trireme/core";
import { RunError } from "../problem.ts";

const missing = {
  toml: missingPeer("@trireme/run/formats", "smol-toml", "1.9.1"),
  yaml: missingPeer("@trireme/run/formats", "yaml", "2.9.1"),
};

/**
 * Parses TOML 1.0, as torchtitan's configurations are written. Dates become strings.
 * @throws RunError for text that is no TOML; TriremeError "PEER" without the package `smol-toml`.
 */
export async function parseToml(text: string): Promise<unknown> {
  const { parse } = await import("smol-toml").catch(missing.toml);
  return parsed("TOML", () => parse(text));
}

/**
 * Plain data as TOML; a value of null or undefined has no line.
 * @throws TriremeError "PEER" without the package `smol-toml`.
 */
export async function formatToml(config: Readonly<Record<string, unknown>>): Promise<string> {
  const { stringify } = await import("smol-toml").catch(missing.toml);
  return stringify(config);
}

/**
 * Parses YAML 1.2, as nanotron's and NeMo's configurations are written.
 * @throws RunError for text that is no YAML; TriremeError "PEER" without the package `yaml`.
 */
export async function parseYaml(text: string): Promise<unknown> {
  const { parse } = await import("yaml").catch(missing.yaml);
  return parsed("YAML", () => parse(text, { maxAliasCount: 100 }) as unknown);
}

/**
 * Plain data as YAML.
 * @throws TriremeError "PEER" without the package `yaml`.
 */
export async function formatYaml(config: Readonly<Record<string, unknown>>): Promise<string> {
  const { stringify } = await import("yaml").catch(missing.yaml);
  return stringify(config);
}

/** The first line of a parser's complaint has what is wrong and where. */
function parsed(language: string, parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    const [message] = (error instanceof Error ? error.message : String(error)).split("\n", 1);
    const rule = `is no ${language}: ${message}`;
    throw new RunError([{ path: [], value: undefined, rule }], { cause: error });
  }
}
