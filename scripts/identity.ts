/** Reads an identity file and refuses one that would make a broken product. */
import type { Identity } from "../src/identity.ts";

export async function readIdentity(file: string, model: Identity): Promise<Identity> {
  const given: unknown = await Bun.file(file).json();
  const problems = identityProblems(given, model);
  if (problems.length > 0) throw new Error(`Cannot use identity "${file}": ${problems.join("; ")}`);
  return given as Identity;
}

const LONGEST_INTERFACE_NAME = 15;

function identityProblems(given: unknown, model: Identity): readonly string[] {
  if (typeof given !== "object" || given === null) return ["it is not a JSON object"];
  const names: Readonly<Record<string, unknown>> = { ...given };
  const missing = Object.keys(model).filter((key) => typeof names[key] !== "string" || names[key] === "");
  const unknown = Object.keys(names).filter((key) => !(key in model));
  const prefix = names["interfacePrefix"];
  const long = ["vxlanDevice", "vxlanDeviceIpv6"].filter((key) => isLongerThan(names[key], LONGEST_INTERFACE_NAME));
  return [
    ...missing.map((key) => `"${key}" must be a non-empty string`),
    ...unknown.map((key) => `"${key}" is not a known field`),
    // 11 characters are the hash that identifies the pod.
    ...(isLongerThan(prefix, LONGEST_INTERFACE_NAME - 11) ? [`"interfacePrefix" is longer than 4 characters`] : []),
    ...long.map((key) => `"${key}" is longer than ${LONGEST_INTERFACE_NAME} characters`),
  ];
}

function isLongerThan(name: unknown, length: number): boolean {
  return typeof name === "string" && name.length > length;
}
