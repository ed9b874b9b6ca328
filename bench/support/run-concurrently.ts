/** Calls `effect` for each number below `count`, in order, with at most `atOnce` calls at the same time. */
export async function runConcurrently(
  count: number,
  atOnce: number,
  effect: (number: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await effect(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
