/** Does something for each number below `count`, in order and some at once. */
export async function someAtOnce(
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
