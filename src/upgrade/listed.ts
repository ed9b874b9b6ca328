const SHOWN = 5;

/** `n1, n2, n3 and 4 more`. */
export function listed(names: readonly string[]): string {
  const others = names.length - SHOWN;
  return others > 0 ? `${names.slice(0, SHOWN).join(", ")} and ${others} more` : names.join(", ");
}
