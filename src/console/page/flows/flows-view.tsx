/** Flows: live and history, denied first; a click says why. */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { byteWords, decidingOf, decisionTitle } from "../../../admin/flows/flow-words.ts";
import { counted } from "../../../counted.ts";
import { FlowQueryError } from "../../../flows/flow-query.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { Refusal } from "../ask.ts";
import { now } from "../clock.ts";
import { Icon } from "../parts/icons.tsx";
import { useKeys } from "../parts/keys.ts";
import { Loading, Lost, Refused } from "../parts/notices.tsx";
import { VerdictMark } from "../parts/state-mark.tsx";
import { VirtualRows } from "../parts/virtual-rows.tsx";
import { go, route, withParameters } from "../route.ts";
import { clockWords, exactTime, numberWords, timeWords } from "../words.ts";
import { DeniedGroups } from "./denied-groups.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { Destination, End, Port } from "./flow-cells.tsx";
import { FlowDetail } from "./flow-detail.tsx";
import { filterKey, type ReadFilters, readFilters } from "./flow-filter.ts";
import type { FlowOrder } from "./flow-store.ts";
import { flowsFollowing, followFlows, forgetFlows, isHistoryRead, missing, revision, store } from "./follow-flows.ts";
import { NoFlows } from "./no-flows.tsx";
import { setFilters } from "./set-filters.ts";
import { FlowTimeline } from "./timeline.tsx";

export function FlowsView() {
  const { parameters } = route.value;
  const key = filterKey(parameters);
  const problem = useFlows(key);
  const order: FlowOrder = parameters["order"] === "time" ? "newest first" : "denied first";
  const { records, rows, isPaused, waiting, setPaused } = useShownFlows(order);
  const opened = parameters["flow"];
  useKeys({
    p: () => setPaused(!isPaused),
    d: () => setFilters({ verdict: parameters["verdict"] === "denied" ? undefined : "denied" }),
  });
  const following = flowsFollowing.value;
  return (
    <div class="beside">
      <div class="flows">
        <h1 class="unseen">Flows</h1>
        <FilterBar records={records} />
        {problem === undefined ? (
          <>
            <Lost following={following} />
            <FlowTimeline records={records} />
            {parameters["verdict"] !== "allowed" && <DeniedGroups records={records} />}
            <StatusLine count={rows.length} isPaused={isPaused} waiting={waiting} setPaused={setPaused} order={order} />
            <Table rows={rows} opened={opened} />
          </>
        ) : (
          <Refused refusal={problem} what="flows" />
        )}
      </div>
      {opened !== undefined && (
        <FlowDetail key={opened} id={opened} close={() => go(withParameters({ flow: undefined }), "replace")} />
      )}
    </div>
  );
}

/** Follows what the address asks for. Returns why that cannot be asked. */
function useFlows(key: string): Refusal | undefined {
  const asked = useMemo((): ReadFilters | Refusal => {
    try {
      return readFilters(route.peek().parameters, Date.now());
    } catch (error) {
      if (error instanceof FlowQueryError) return new Refusal(400, error.message);
      throw error;
    }
  }, [key]);
  useEffect(() => {
    if (asked instanceof Refusal) return undefined;
    const end = new AbortController();
    void followFlows(asked, end.signal);
    return () => {
      end.abort();
      forgetFlows();
    };
  }, [asked]);
  return asked instanceof Refusal ? asked : undefined;
}

/** While it is paused, the rows stay as they are, and new ones are counted. */
function useShownFlows(order: FlowOrder) {
  const paused = useSignal<{ readonly size: number; readonly records: readonly FlowRecord[] } | undefined>(undefined);
  const drawn = useComputed(() => revision.value);
  const current = drawn.value;
  const records = useMemo(() => store.records, [current]);
  const live = useMemo(() => store.rows(order), [current, order]);
  const shown = paused.value;
  return {
    records,
    rows: shown?.records ?? live,
    isPaused: shown !== undefined,
    waiting: shown === undefined ? 0 : store.size + store.dropped - shown.size,
    setPaused: (isPaused: boolean) => {
      paused.value = isPaused ? { size: store.size + store.dropped, records: live } : undefined;
    },
  };
}

interface StatusLineProps {
  readonly count: number;
  readonly isPaused: boolean;
  readonly waiting: number;
  readonly order: FlowOrder;
  setPaused(isPaused: boolean): void;
}

function StatusLine({ count, isPaused, waiting, order, setPaused }: StatusLineProps) {
  const isLive = flowsFollowing.value.kind === "live";
  return (
    <div class="status-line">
      <span>
        <strong>{counted(count, "flow").replace(String(count), numberWords(count))}</strong>
        {store.dropped > 0 && <span class="muted">, {numberWords(store.dropped)} older ones not shown</span>}
      </span>
      {isLive && !isPaused && (
        <span class="live">
          <span class="live-dot" />
          live
        </span>
      )}
      {isPaused && <span class="muted">paused{waiting > 0 ? `, ${numberWords(waiting)} new` : ""}</span>}
      <Missing />
      <span class="status-end">
        <OrderChoice order={order} />
        {(isLive || isPaused) && (
          <button type="button" class="quiet with-icon" onClick={() => setPaused(!isPaused)}>
            <Icon name={isPaused ? "play" : "pause"} />
            {isPaused ? "Go on" : "Pause"}
          </button>
        )}
      </span>
    </div>
  );
}

const ORDERS = [
  ["denied first", "Denied first", undefined],
  ["newest first", "Newest first", "time"],
] as const;

function OrderChoice({ order }: { readonly order: FlowOrder }) {
  return (
    <span class="segments" role="group" aria-label="Order">
      {ORDERS.map(([each, words, parameter]) => (
        <button
          type="button"
          key={each}
          aria-pressed={order === each}
          onClick={() => go(withParameters({ order: parameter }), "replace")}
        >
          {words}
        </button>
      ))}
    </span>
  );
}

/** Nothing is lost silently. */
function Missing() {
  const notes = [...missing.value.values()];
  if (notes.length === 0) return null;
  return (
    <details class="missing">
      <summary>
        <Icon name="warning" />
        Not complete: {counted(notes.length, "note")}
      </summary>
      <ul>
        {notes.map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
    </details>
  );
}

const COLUMNS = ["Verdict", "Began", "Source", "Destination", "Port", "Decided by", "Bytes", "Node"];

function Table({ rows, opened }: { readonly rows: readonly FlowRecord[]; readonly opened: string | undefined }) {
  if (rows.length === 0) {
    const { kind } = flowsFollowing.value;
    if (isHistoryRead.value || kind === "complete") return <NoFlows />;
    return kind === "lost" ? null : <Loading what="flows" />;
  }
  return (
    <VirtualRows
      name="flows"
      label="Flows"
      columns={COLUMNS}
      rows={rows}
      keyOf={idOf}
      classOf={classOf}
      cells={cellsOf}
      heights={[30, 74]}
      opened={opened}
      open={({ id }) => go(withParameters({ flow: id }), "replace")}
      growsAtTop={true}
    />
  );
}

function idOf({ id }: FlowRecord): string {
  return id;
}

function classOf({ verdict }: FlowRecord): string {
  return `flow-${verdict}`;
}

function cellsOf(record: FlowRecord) {
  const { verdict, start, source, sent, received, node } = record;
  const isToday = new Date(start).toDateString() === new Date(now.peek()).toDateString();
  return [
    <VerdictMark key="verdict" verdict={verdict} />,
    <time key="time" class="muted" title={exactTime(start)}>
      {isToday ? clockWords(start) : timeWords(start, now.peek())}
    </time>,
    <End key="source" end={source} />,
    <Destination key="destination" record={record} />,
    <Port key="port" record={record} />,
    decisionTitle(decidingOf(record)),
    byteWords(sent.bytes + received.bytes),
    node,
  ];
}
