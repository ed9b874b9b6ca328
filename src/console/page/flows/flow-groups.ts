/** Denied flows by who asks whom for what, and which rule says no: the first answer to "what is dropped now, and why?" Pure. */
import { decidingOf, decisionTitle, groupPort } from "../../../admin/flows/flow-words.ts";
import { endTitle } from "../../../flows/flow-query.ts";
import type { FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";

export interface DeniedGroup {
  readonly key: string;
  /** `shop/web`: what keeps the pods running, or the end itself. */
  readonly source: string;
  readonly destination: string;
  readonly port: string;
  readonly rule: string;
  readonly count: number;
  readonly lastAt: number;
  /** The newest of them. */
  readonly example: FlowRecord;
}

/** The most recent first. */
export function deniedGroups(records: readonly FlowRecord[]): readonly DeniedGroup[] {
  const groups = new Map<string, DeniedGroup>();
  for (const record of records) {
    if (record.verdict !== "denied") continue;
    const { backend, destination, protocol } = record;
    const target = backend ?? destination;
    const source = groupTitle(record.source);
    const to = groupTitle(target);
    const { port } = target;
    const portWords = groupPort({ protocol, ...(port === undefined ? {} : { port }) });
    const rule = decisionTitle(decidingOf(record));
    const key = [source, to, portWords, rule].join("\n");
    const known = groups.get(key);
    const isNewer = known === undefined || record.start >= known.lastAt;
    groups.set(key, {
      ...{ key, source, destination: to, port: portWords, rule },
      count: (known?.count ?? 0) + 1 + (record.suppressed ?? 0),
      lastAt: isNewer ? record.start : known.lastAt,
      example: isNewer ? record : known.example,
    });
  }
  return [...groups.values()].toSorted((one, other) => other.lastAt - one.lastAt);
}

function groupTitle(end: FlowEnd): string {
  const { owner, namespace } = end;
  if (owner === undefined) return end.kind === "outside" ? `outside ${end.address}` : endTitle(end);
  return namespace === undefined ? owner.name : `${namespace}/${owner.name}`;
}
