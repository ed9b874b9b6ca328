/** Of this process, loaded or not. */
const parts: (() => Promise<unknown>)[] = [];

/**
 * Loads a part of the program when it is first needed, and keeps it for a process
 * that stays: each further `import()` would take 0.03 ms.
 */
export function loadOnce<Part>(load: () => Promise<Part>): () => Promise<Part> {
  let loaded: Promise<Part> | undefined;
  const part = () => {
    loaded ??= load();
    return loaded;
  };
  parts.push(part);
  return part;
}

/** Afterwards the first use of a part takes no longer than the next ones: the order of a simulation depends on it. */
export async function loadAllParts(): Promise<void> {
  await Promise.all(parts.map((part) => part()));
}
