/** What is denied most recently, in few lines above the table. */
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { now } from "../clock.ts";
import { Icon } from "../parts/icons.tsx";
import { go, withParameters } from "../route.ts";
import { agoWords, numberWords } from "../words.ts";
import { type DeniedGroup, deniedGroups } from "./flow-groups.ts";

const FIRST = 3;
const MOST = 30;

export function DeniedGroups({ records }: { readonly records: readonly FlowRecord[] }) {
  const showsAll = useSignal(false);
  const groups = useMemo(() => deniedGroups(records), [records]);
  if (groups.length === 0) return null;
  const shown = groups.slice(0, showsAll.value ? MOST : FIRST);
  return (
    <section class="denied-groups" aria-label="Denied most recently">
      <ul>
        {shown.map((group) => (
          <Group key={group.key} group={group} />
        ))}
      </ul>
      {groups.length > FIRST && (
        <button
          type="button"
          class="quiet"
          aria-expanded={showsAll.value}
          onClick={() => (showsAll.value = !showsAll.value)}
        >
          {showsAll.value ? "Show fewer" : `${groups.length - FIRST} more`}
        </button>
      )}
    </section>
  );
}

/** Opens the newest flow of it. */
function Group({
  group: { source, destination, port, rule, count, lastAt, example },
}: {
  readonly group: DeniedGroup;
}) {
  return (
    <li>
      <button type="button" class="denied-group" onClick={() => go(withParameters({ flow: example.id }), "replace")}>
        <span class="mark mark-denied">
          <Icon name="denied" />
          <span class="unseen">denied</span>
          {numberWords(count)}
        </span>
        <span class="denied-ends">
          <strong>{source}</strong>
          <Icon name="arrow" />
          <span class="unseen">to</span>
          <strong>{destination}</strong>
          <span class="mono">{port}</span>
        </span>
        <span class="muted denied-rule">{rule}</span>
        <span class="muted denied-age">{agoWords(now.value - lastAt)}</span>
      </button>
    </li>
  );
}
