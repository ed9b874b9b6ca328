/** `1 block`, `2 blocks`, `0 blocks`; `many` is an irregular plural: `counted(2, "address", "addresses")`. */
export function counted(count: number | bigint, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 || count === 1n ? one : many}`;
}

/** `web, db, cache and 2 more`. */
export function listed(names: readonly string[], most = 3): string {
  const more = names.length - most;
  return `${names.slice(0, most).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
