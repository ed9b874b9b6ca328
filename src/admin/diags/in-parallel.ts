/** Does the work for each, at most so many at the same time. */
export async function inParallel<Each>(
  all: readonly Each[],
  most: number,
  work: (each: Each) => Promise<void>,
): Promise<void> {
  const queue = all.values();
  const worker = async () => {
    for (const each of queue) await work(each);
  };
  await Promise.all(Array.from({ length: Math.min(most, all.length) }, worker));
}
