/** Which plugin wires the pods, and where their addresses come from: `spec.cni`, also accepted inside the network. */
import * as v from "valibot";
import { identity } from "../../identity.ts";
import type { Problem } from "../problem.ts";
import { onlyValues } from "./fields.ts";

const { title } = identity;

export const OWN_TYPE = title;
export const HOST_LOCAL = "HostLocal";

const NOT_ABSOLUTE = "is not an absolute path; use the path of a directory on the nodes";
const directory = v.pipe(v.string(), v.regex(/^\/.*$/, NOT_ABSOLUTE));

export const cniSchema = v.object({
  type: v.exactOptional(
    onlyValues(
      [title],
      `is not supported: the operator installs the plugin of ${title}; use "${title}", or without the operator the manifest for policy with another networking plugin`,
    ),
  ),
  ipam: v.exactOptional(
    v.object({
      type: v.exactOptional(
        onlyValues([title, HOST_LOCAL], `is not an IPAM plugin of ${title}; use "${title}" or "${HOST_LOCAL}"`),
      ),
    }),
  ),
  binDir: v.exactOptional(directory),
  confDir: v.exactOptional(directory),
});

export type DeclaredCni = Readonly<v.InferOutput<typeof cniSchema>>;

/** The fields by their paths below the object. */
export const CNI_FIELDS = ["type", "ipam.type", "binDir", "confDir"] as const;

/** The CRD has rules with the same message, without the values. */
export const CNI_DIFFERS = "differs from the same field of spec.cni; remove one of the two";

/** `spec.cni` and the same object inside the network must not contradict each other. */
export function cniProblems(own: DeclaredCni, nested: DeclaredCni, path: string): readonly Problem[] {
  return CNI_FIELDS.flatMap((field) => {
    const [left, right] = [fieldOf(own, field), fieldOf(nested, field)];
    if (left === undefined || right === undefined || left === right) return [];
    return [{ path: `${path}.${field}`, value: right, message: CNI_DIFFERS }];
  });
}

function fieldOf(cni: DeclaredCni, field: (typeof CNI_FIELDS)[number]): string | undefined {
  return field === "ipam.type" ? cni.ipam?.type : cni[field];
}

/** Both objects as one. */
export function mergedCni(own: DeclaredCni, nested: DeclaredCni): DeclaredCni {
  return { ...nested, ...own, ipam: { ...nested.ipam, ...own.ipam } };
}
