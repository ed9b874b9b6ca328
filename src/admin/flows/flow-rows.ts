/**
 * Flows for a person: a table with a line for each; on a narrower terminal a few lines for each, of which nothing is left out.
 * Nothing of a record reaches the terminal unescaped. Pure.
 */
import { counted } from "../../counted.ts";
import type { FlowCount, FlowRecord } from "../../flows/flow-record.ts";
import { type Page, WITHOUT_LIMIT, wrappedWhole } from "../terminal/page.ts";
import { printable } from "../terminal/printable.ts";
import { TableWriter } from "../terminal/table.ts";
import {
  byteWords,
  decidingOf,
  decisionTitle,
  decisionWords,
  destinationWords,
  durationWords,
  endInFull,
  endWords,
  portWords,
  protocolName,
  stagedWords,
  withPort,
} from "./flow-words.ts";

export interface FlowRows {
  /** Of one flow after the other; the first call decides about the columns. */
  write(records: readonly FlowRecord[]): string;
}

export type RowStyle = "usual" | "wide";

/** Below this width a row has no room for both names, the rule and the ID. */
const NARROWEST_TABLE = 160;

export function flowRows(style: RowStyle, page: Page, now: () => Date): FlowRows {
  if (style === "usual" && page.width < NARROWEST_TABLE)
    return { write: (records) => records.map((record) => blockOf(record, page, now())).join("") };
  const columns = style === "wide" ? WIDE : USUAL;
  const table = new TableWriter(
    columns.map(({ title }) => title),
    {
      page: style === "wide" ? { ...page, width: WITHOUT_LIMIT } : page,
      leaveOutFirst: ["BYTES", "PACKETS", "STATE", "TIME"],
      paintCell: (title, text) => (title === "VERDICT" ? paintedVerdict(text, page) : text),
    },
  );
  return { write: (records) => table.write(records.map((record) => columns.map(({ cell }) => cell(record, now())))) };
}

interface Column {
  readonly title: string;
  cell(record: FlowRecord, now: Date): string;
}

const VERDICT: Column = { title: "VERDICT", cell: ({ verdict }) => verdict };

const USUAL: readonly Column[] = [
  { title: "TIME", cell: ({ start }, now) => shortTime(start, now) },
  { title: "SOURCE", cell: ({ source }) => endWords(source) },
  { title: "DESTINATION", cell: destinationWords },
  { title: "PORT", cell: portWords },
  VERDICT,
  { title: "BY", cell: (record) => decisionTitle(decidingOf(record)) },
  { title: "STATE", cell: ({ state }) => state },
  { title: "PACKETS", cell: (record) => String(sumOf(record).packets) },
  { title: "BYTES", cell: (record) => byteWords(sumOf(record).bytes) },
  { title: "ID", cell: ({ id }) => id },
];

const WIDE: readonly Column[] = [
  { title: "TIME", cell: ({ start }) => timeText(start) },
  { title: "NODE", cell: ({ node }) => node },
  { title: "SOURCE", cell: ({ source }) => endInFull(source) },
  { title: "SEEN AS", cell: ({ seenAs }) => (seenAs === undefined ? "" : withPort(seenAs.address, seenAs.port)) },
  { title: "DESTINATION", cell: ({ destination }) => endInFull(destination) },
  { title: "BACKEND", cell: ({ backend }) => (backend === undefined ? "" : endInFull(backend)) },
  { title: "PROTOCOL", cell: protocolCell },
  { title: "DIRECTION", cell: ({ direction }) => direction },
  VERDICT,
  { title: "STATE", cell: stateCell },
  { title: "DURATION", cell: ({ start, end }) => durationWords(Math.max(0, end - start)) },
  { title: "SENT", cell: ({ sent }) => countWords(sent) },
  { title: "RECEIVED", cell: ({ received }) => countWords(received) },
  { title: "ID", cell: ({ id }) => id },
  { title: "DECISIONS", cell: decisionsCell },
];

function protocolCell({ protocol, icmp }: FlowRecord): string {
  const type = icmp === undefined ? "" : ` type ${icmp.type} code ${icmp.code}`;
  return `${protocolName(protocol)}${type}`;
}

function stateCell({ state, suppressed = 0 }: FlowRecord): string {
  return suppressed === 0 ? state : `${state}, ${suppressed} more without a flow`;
}

function decisionsCell({ decisions, relatedTo, staged }: FlowRecord): string {
  const related = relatedTo === undefined ? [] : [`belongs to ${relatedTo}`];
  const words = decisions.length === 0 ? ["no rule of this node had to decide"] : decisions.map(decisionWords);
  const tried = staged === undefined ? [] : [`with staged policies ${stagedWords(staged)}`];
  return [...words, ...related, ...tried].join("; ");
}

function sumOf({ sent, received }: FlowRecord): FlowCount {
  return { packets: sent.packets + received.packets, bytes: sent.bytes + received.bytes };
}

export function countWords({ packets, bytes }: FlowCount): string {
  return `${counted(packets, "packet")}, ${byteWords(bytes)}`;
}

/** Below this width the lines of a flow begin below its time, not beside it. */
const NARROWEST_BESIDE = 60;

function blockOf(record: FlowRecord, page: Page, now: Date): string {
  const { verdict, state, id } = record;
  const time = shortTime(record.start, now);
  const lines = [
    `${endWords(record.source)} -> ${destinationWords(record)} ${portWords(record)}`,
    [
      `by ${decisionTitle(decidingOf(record))}`,
      ...(state === "denied" ? [] : [state]),
      countWords(sumOf(record)),
      `ID ${id}`,
    ].join(", "),
  ];
  const isBeside = page.width >= NARROWEST_BESIDE;
  const indent = " ".repeat(isBeside ? time.length + VERDICT_WIDTH + 2 : 2);
  const texts = lines.flatMap((line) => wrappedWhole(printable(line), page.width - indent.length));
  const head = `${time} ${paintedVerdict(verdict, page)}`;
  const [first = "", ...others] = texts;
  const gap = " ".repeat(VERDICT_WIDTH - verdict.length + 1);
  const begin = isBeside ? [`${head}${gap}${first}`] : [head, `${indent}${first}`];
  return [...begin, ...others.map((text) => `${indent}${text}`)].map((line) => `${line}\n`).join("");
}

const VERDICT_WIDTH = "allowed".length;

export function paintedVerdict(verdict: string, { paint }: Page): string {
  if (verdict === "denied") return paint.red(verdict);
  if (verdict === "allowed") return paint.green(verdict);
  return verdict === "unknown" ? paint.yellow(verdict) : verdict;
}

/** `2026-01-31T14:05:06.123Z` */
export function timeText(milliseconds: number): string {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? String(milliseconds) : date.toISOString();
}

/** UTC: the time of today, of another day with its date. */
function shortTime(milliseconds: number, now: Date): string {
  const [day = "", time = ""] = timeText(milliseconds).split("T");
  const short = time.slice(0, 8);
  return day === timeText(now.getTime()).slice(0, 10) ? short : `${day.slice(5)} ${short}`;
}
