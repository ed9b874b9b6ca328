/**
 * Which flows somebody asks for. The same fields are options of `vendorctl flows`, parameters of the API, and what a node gets
 * asked. Pure.
 */
import * as v from "valibot";
import { quoted } from "../quote.ts";
import type { FlowEnd, FlowRecord } from "./flow-record.ts";

const NOT_A_NUMBER = "is not a number of at least 0";
const wholeNumber = v.pipe(
  v.string(),
  v.regex(/^\d{1,15}$/, ({ input }) => `${quoted(input)} ${NOT_A_NUMBER}`),
  v.transform(Number),
);

export const flowQuerySchema = v.strictObject({
  /** Milliseconds since 1970: flows that ended, or are open, at this time or later. */
  since: v.exactOptional(wholeNumber),
  until: v.exactOptional(wholeNumber),
  /** Only the newest ones. */
  last: v.exactOptional(wholeNumber),
  /** Either end. `NAMESPACE/NAME` or `NAME`; a name may end with "*". */
  pod: v.exactOptional(v.string()),
  namespace: v.exactOptional(v.string()),
  /** `key=value`, `key`, several with commas: one end has them all. */
  label: v.exactOptional(v.string()),
  /** As `pod`, or an address, a network in CIDR notation, `node/NAME`, `service/NAMESPACE/NAME`, `set/NAME`, `outside`. */
  from: v.exactOptional(v.string()),
  to: v.exactOptional(v.string()),
  /** Of the destination, before or after translation. */
  port: v.exactOptional(wholeNumber),
  /** A name (`tcp`) or a number. */
  protocol: v.exactOptional(v.string()),
  verdict: v.exactOptional(v.picklist(["allowed", "denied", "unknown"])),
  /** `NAMESPACE/NAME` or `NAME`: it decided at one of the points. */
  policy: v.exactOptional(v.string()),
  node: v.exactOptional(v.string()),
  id: v.exactOptional(v.string()),
});
export type FlowQuery = Readonly<v.InferOutput<typeof flowQuerySchema>>;

export type FlowMatcher = (record: FlowRecord) => boolean;

/** Every name that the end can be asked for by. */
export function endTitle({ kind, namespace, name, address }: FlowEnd): string {
  if (name === undefined || kind === "outside" || kind === "hidden") return address;
  return namespace === undefined ? name : `${namespace}/${name}`;
}
