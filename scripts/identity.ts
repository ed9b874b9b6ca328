/** Reads an identity file and refuses one that would make a broken product. */
import type { Identity } from "../src/identity.ts";

export async function readIdentity(file: string, model: Identity): Promise<Identity> {
  const given: unknown = await Bun.file(file).json();
  const problems = identityProblems(given, model);
  if (problems.length > 0) throw new Error(`Cannot use identity "${file}": ${problems.join("; ")}`);
  return given as Identity;
}

function identityProblems(given: unknown, model: Identity): readonly string[] {
  if (typeof given !== "object" || given === null) return ["it is not a JSON object"];
  const names: Readonly<Record<string, unknown>> = { ...given };
  const missing = Object.keys(model).filter((key) => typeof names[key] !== "string" || names[key] === "");
  const unknown = Object.keys(names).filter((key) => !(key in model));
  const prefix = names["interfacePrefix"];
  return [
    ...missing.map((key) => `"${key}" must be a non-empty string`),
    ...unknown.map((key) => `"${key}" is not a known field`),
    // An interface name has at most 15 bytes; 11 of them are the hash that identifies the pod.
    ...(typeof prefix === "string" && prefix.length > 4 ? [`"interfacePrefix" is longer than 4 characters`] : []),
  ];
}
