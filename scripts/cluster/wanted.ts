/** What a command line asks for: the default if it says nothing; undefined, and a message, if there is no such thing. */
const DEFAULT_NODES = 2;
const MOST_NODES = 5;

export function storeNamed<Store extends string>(wanted: string, known: readonly Store[]): Store | undefined {
  const store = wanted === "" ? known[0] : known.find((kind) => kind === wanted);
  if (store === undefined) console.error(`Unknown DATASTORE "${wanted}"; use ${known.join(" or ")}`);
  return store;
}

/** Each node takes about 0.3 GB of memory. */
export function nodeCountNamed(wanted: string): number | undefined {
  const count = wanted === "" ? DEFAULT_NODES : Number(wanted);
  if (/^\d*$/.test(wanted) && count >= 1 && count <= MOST_NODES) return count;
  console.error(`Cannot make NODES "${wanted}"; use a number from 1 to ${MOST_NODES}`);
  return undefined;
}
