import { patience } from "./proof-size.ts";

/** Waits for a condition with a limit, never for a fixed time. The limit is long enough for an overloaded machine. */
export async function pollUntil(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMilliseconds = 30_000 * patience,
): Promise<void> {
  const end = performance.now() + limitMilliseconds;
  let trouble: unknown;
  for (;;) {
    try {
      if (await condition()) return;
    } catch (error) {
      trouble = error;
    }
    if (performance.now() > end) throw new Error(`Waited ${limitMilliseconds} ms for ${what}`, { cause: trouble });
    await Bun.sleep(20);
  }
}
