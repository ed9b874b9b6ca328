/** Waits for a condition with a limit, never for a fixed time. */
export async function pollUntil(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMilliseconds = 10_000,
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
