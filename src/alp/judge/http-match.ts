/** Does an HTTP request match the `http` of a rule? Pure. */
import { type NormalPath, normalPath } from "../../model/normal-path.ts";
import type { HttpMatch, HttpPath } from "../protocol/sidecar-state.ts";
import type { HttpAttributes } from "./http-request.ts";

/** A request whose path is in normal form, once for all rules. */
export interface NormalRequest {
  readonly method: string;
  readonly path: NormalPath;
}

export function normalRequest({ method, path }: HttpAttributes): NormalRequest {
  return { method, path: normalPath(path) };
}

/**
 * An ambiguous path does not match any rule with paths. Of a path that servers could read in different ways only the part
 * that all read alike counts.
 */
export function matchesHttp({ methods = [], paths = [] }: HttpMatch, { method, path }: NormalRequest): boolean {
  const isMethod = methods.length === 0 || methods.includes(method) || methods.includes("*");
  return isMethod && (paths.length === 0 || (path.ok && paths.some((wanted) => isPath(wanted, path))));
}

function isPath(wanted: HttpPath, { path, doubtfulFrom }: NormalPath & { readonly ok: true }): boolean {
  if ("exact" in wanted) return path === wanted.exact && doubtfulFrom === undefined;
  return path.startsWith(wanted.prefix) && wanted.prefix.length <= (doubtfulFrom ?? path.length);
}
