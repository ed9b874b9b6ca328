/** One thing that `detect` looks for: found, or the reason why only the user can say it. */
import type { Obstacle } from "../engine/facts.ts";

export type Found<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly obstacle: Obstacle };

export function found<T>(value: T): Found<T> {
  return { ok: true, value };
}

export function unclear(message: string, remedy: string): Found<never> {
  return { ok: false, obstacle: { message, remedy } };
}
