/** `1 block`, `2 blocks`, `0 blocks`; `many` is an irregular plural: `counted(2, "address", "addresses")`. */
export function counted(count: number | bigint, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 || count === 1n ? one : many}`;
}
