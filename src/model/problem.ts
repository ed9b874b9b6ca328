/**
 * A problem of a resource as its author sees it: the path, the value, and what
 * to use instead. Problems are return values, not errors: they are collected and
 * reported together.
 */
import { quoted } from "../quote.ts";

export interface Problem {
  /** `spec.allowedUses[1]`; empty for the whole document. */
  readonly path: string;
  readonly value: unknown;
  /** What is wrong, then what to do: `has host bits; use "10.0.0.0/24"`. */
  readonly message: string;
}

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** `spec.cidr: "10.0.0.1/24" has host bits; use "10.0.0.0/24"`. */
export function formatProblem({ path, value, message }: Problem): string {
  const place = path === "" ? "" : `${path}: `;
  return value === undefined ? `${place}${message}` : `${place}${quoted(value)} ${message}`;
}

export function formatProblems(problems: readonly Problem[]): string {
  return problems.map(formatProblem).join("; ");
}
