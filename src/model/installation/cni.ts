/** Which plugin wires the pods, and where their addresses come from: `spec.cni`, also accepted inside the network. */

import * as v from "valibot";
import { identity } from "../../identity.ts";
import type { Problem } from "../problem.ts";
import { HOST_LOCAL } from "./choices.ts";
import { onlyValues } from "./fields.ts";

const { title } = identity;

const NOT_ABSOLUTE = "is not an absolute path; use the path of a directory on the nodes";
const directory = v.pipe(v.string(), v.regex(/^\/.*$/, NOT_ABSOLUTE));

const ipamType = onlyValues(
  [title, HOST_LOCAL],
  `is not an IPAM plugin of ${title}; use "${title}" or "${HOST_LOCAL}"`,
);

export const cniSchema = v.object({
  type: v.exactOptional(
    onlyValues(
      [title],
      `is not supported: the operator installs the plugin of ${title}; use "${title}", or without the operator the manifest for policy with another networking plugin`,
    ),
  ),
  ipam: v.exactOptional(v.object({ type: v.exactOptional(ipamType), plugin: v.exactOptional(ipamType) })),
  binDir: v.exactOptional(directory),
  confDir: v.exactOptional(directory),
});

export type DeclaredCni = Readonly<v.InferOutput<typeof cniSchema>>;

/**
 * A field of `spec.cni` and that of the same object inside the network which must not contradict it, by their paths below
 * the objects. The IPAM plugin has two spellings.
 */
export const SAME_CNI_FIELDS = [
  ["type", "type"],
  ["ipam.type", "ipam.type"],
  ["ipam.type", "ipam.plugin"],
  ["ipam.plugin", "ipam.type"],
  ["ipam.plugin", "ipam.plugin"],
  ["binDir", "binDir"],
  ["confDir", "confDir"],
] as const;

/** The CRD has rules with the same messages, without the values. */
export const CNI_DIFFERS = "differs from the same field of spec.cni; remove one of the two";
export const PLUGIN_DIFFERS =
  'differs from "type" beside it, which means the same and which the operator adds; set both to the same value';

/** `spec.cni`, the same object inside the network, and both spellings of a field must not contradict each other. */
export function cniProblems(own: DeclaredCni, nested: DeclaredCni, path: string): readonly Problem[] {
  const problems = SAME_CNI_FIELDS.flatMap(([left, right]) =>
    difference(fieldOf(own, left), fieldOf(nested, right), { path: `${path}.${right}`, message: CNI_DIFFERS }),
  );
  return [...pluginProblems(own, "spec.cni"), ...pluginProblems(nested, path), ...problems];
}

function pluginProblems({ ipam }: DeclaredCni, path: string): readonly Problem[] {
  return difference(ipam?.type, ipam?.plugin, { path: `${path}.ipam.plugin`, message: PLUGIN_DIFFERS });
}

function difference(
  left: string | undefined,
  right: string | undefined,
  problem: Pick<Problem, "path" | "message">,
): readonly Problem[] {
  return left === undefined || right === undefined || left === right ? [] : [{ ...problem, value: right }];
}

function fieldOf(cni: DeclaredCni, field: (typeof SAME_CNI_FIELDS)[number][0]): string | undefined {
  if (field === "ipam.type") return cni.ipam?.type;
  return field === "ipam.plugin" ? cni.ipam?.plugin : cni[field];
}

/** Both objects as one. */
export function mergedCni(own: DeclaredCni, nested: DeclaredCni): DeclaredCni {
  return { ...nested, ...own, ipam: { ...nested.ipam, ...own.ipam } };
}
