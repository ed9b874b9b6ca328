/** The results of the benchmark of controllers as text. Pure. */
import type { ControllersResult, Writes } from "./controllers-measurements.ts";
import { markdown } from "./policy-table.ts";
import { quantileOf } from "./statistics.ts";

const ROWS: readonly (readonly [title: string, cell: (result: ControllersResult) => string])[] = [
  ["first sync, wall", ({ syncMilliseconds }) => `${(syncMilliseconds / 1_000).toFixed(1)} s`],
  ["first sync, CPU", ({ syncCpuMilliseconds }) => `${(syncCpuMilliseconds / 1_000).toFixed(1)} s`],
  ["first sync, writes to etcd", ({ syncWrites }) => String(syncWrites)],
  ["memory (resident)", ({ memoryBytes }) => `${(memoryBytes / 1_000_000).toFixed(0)} MB`],
  ["idle CPU", ({ idle }) => `${(idle * 100).toFixed(2)} %`],
  ["idle, writes without the Lease", ({ idleWrites }) => writesCell(idleWrites)],
  ["policy -> record, median", ({ copyMilliseconds }) => `${quantileOf(copyMilliseconds, 0.5).toFixed(1)} ms`],
  ["policy -> record, maximum", ({ copyMilliseconds }) => `${quantileOf(copyMilliseconds, 1).toFixed(1)} ms`],
  ["restarted, reconciled each second, writes", ({ restartWrites }) => writesCell(restartWrites)],
];

export function controllersTable(results: readonly ControllersResult[]): string {
  const lines = ROWS.map(([title, cell]) => [title, ...results.map(cell)]);
  return markdown([["", ...results.map(({ name }) => name)], ...lines]);
}

/** What was written although nothing had changed; empty if nothing was. */
export function needlessWrites({ idleWrites, restartWrites }: ControllersResult): readonly string[] {
  return [idleWrites, restartWrites].flatMap(({ datastore, api }) => [
    ...(datastore === 0 ? [] : [`${datastore} to etcd`]),
    ...api,
  ]);
}

function writesCell({ datastore, api }: Writes): string {
  return String(datastore + api.length);
}
