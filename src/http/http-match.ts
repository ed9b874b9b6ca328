/**
 * Does an HTTP request match the `http` of a rule? Pure. The sidecar first finds candidates by `alp/judge/path-map.ts`, by the
 * same rule of exact paths and prefixes: a change of it belongs in both, and a test compares them.
 */
import { type NormalPath, normalPath } from "./normal-path.ts";

/** The `http` of a rule. */
export interface HttpMatch {
  /** Absent or empty: every method; so does `*`. */
  readonly methods?: readonly string[];
  /** Absent or empty: every path. */
  readonly paths?: readonly HttpPath[];
}

export type HttpPath = { readonly exact: string } | { readonly prefix: string };

export interface HttpAttributes {
  readonly method: string;
  /** As the client sent it, with its query. */
  readonly path: string;
}

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
