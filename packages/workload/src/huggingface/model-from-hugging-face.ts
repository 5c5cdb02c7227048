/**
 * Models from the config.json that Hugging Face's transformers keeps beside weights: the one place
 * that knows its fields. A field that changes what is computed is read or refused; those that do not
 * (token ids, initialisation, scaling of rotary angles, quantised storage) are passed over.
 */
import { TriremeError, nearestName } from "@trireme/core";
import { defineModel } from "../define-model.ts";
import type { Model } from "../model.ts";
import { missing, readable, readerOf } from "./architectures.ts";
import { ConfigFields, isGroup, print } from "./config-fields.ts";

/** What a file does not say. */
export interface HuggingFaceOptions {
  /** What the model is called; left out, the repository that the file names, or its architecture. */
  readonly name?: string;
}

/**
 * The model of a parsed config.json, by its class (`architectures`) or `model_type`. What the file
 * leaves out has the default of that architecture.
 * Throws TriremeError "CONFIG" for an architecture that is not read, with what it would need, for a
 * field that is missing, and for a value of a known field that no model has; "MODEL" for a shape
 * that cannot be.
 */
export function modelFromHuggingFace(config: unknown, o: HuggingFaceOptions = {}): Model {
  if (!isGroup(config)) {
    throw new TriremeError("CONFIG", `config.json must be an object, not ${print(config)}`);
  }
  const { architectures, model_type: type, text_config: text } = config;
  const listed: readonly unknown[] = Array.isArray(architectures) ? architectures : [];
  const names = [listed[0], type].filter((n): n is string => typeof n === "string");
  const [name] = names;
  if (name === undefined) {
    throw new TriremeError(
      "CONFIG",
      "config.json has neither architectures nor model_type; without either its fields have no meaning",
    );
  }
  const reader = names.map(readerOf).find((r) => r !== undefined);
  if (reader === undefined) throw refusal(name, isGroup(text));
  const options = reader(new ConfigFields(config, name));
  const path = config["_name_or_path"];
  const repository = typeof path === "string" && path !== "" ? path : undefined;
  return defineModel({
    ...options,
    name: o.name ?? repository ?? name,
    source: `config.json of ${repository ?? name}`,
  });
}

function refusal(name: string, nested: boolean): TriremeError {
  const lacks = Object.hasOwn(missing, name) ? missing[name] : undefined;
  if (lacks !== undefined) {
    return new TriremeError("CONFIG", `architecture ${name} is not read: a model has no ${lacks}`);
  }
  if (nested) {
    return new TriremeError(
      "CONFIG",
      `architecture ${name} is not read: its encoder's fields have no common form; give its text_config, and the encoder to defineModel`,
    );
  }
  const near = nearestName(name, readable);
  const hint = near === undefined ? `read are ${readable.join(", ")}` : `did you mean ${near}?`;
  return new TriremeError("CONFIG", `architecture ${name} is not known; ${hint}`);
}
