/** The requests of plugins to the API server, side by side, from its audit log. */
import { type AuditedRequest, startAudit } from "../../test/support/kube-audit.ts";
import { runCommand } from "./command-candidate.ts";
import type { KubePlugin } from "./kube-candidates.ts";
import { callOf } from "./plugin-candidate.ts";

const COMMANDS = ["ADD", "DEL"] as const;
/** Calls per plugin and command: the table shows their mean, so that a rare request of an agent does not distort it. */
const CALLS = 10;

export interface RequestRow {
  readonly name: string;
  readonly command: string;
  readonly calls: number;
  readonly requests: readonly AuditedRequest[];
}

/** Runs steady calls, one after another, on the first pod of each plugin. */
export async function countRequests(plugins: readonly KubePlugin[], auditLog: string): Promise<readonly RequestRow[]> {
  const rows: RequestRow[] = [];
  for (const plugin of plugins) {
    const requests = { ADD: [] as AuditedRequest[], DEL: [] as AuditedRequest[] };
    // The first call of a node claims its block, and is not counted.
    for (let call = -1; call < CALLS; call++) {
      for (const command of COMMANDS) {
        const audit = startAudit(auditLog);
        await runCommand(callOf(plugin, command, { round: 2_000_000 + call }, 0));
        if (call >= 0) requests[command].push(...audit.requests(plugin.user));
      }
    }
    for (const command of COMMANDS) {
      rows.push({ name: plugin.name, command, calls: CALLS, requests: requests[command] });
    }
  }
  return rows;
}

/** A Markdown table with one row per plugin and command: requests per call. */
export function requestTable(rows: readonly RequestRow[]): string {
  const lines = rows.map(({ name, command, calls, requests }) => {
    const writes = requests.filter(({ verb }) => !READS.includes(verb)).length;
    const kinds = [...countsOf(requests)].map(([kind, count]) => `${perCall(count, calls)} ${kind}`);
    const cells = [
      name,
      command,
      perCall(requests.length, calls),
      perCall(requests.length - writes, calls),
      perCall(writes, calls),
    ];
    return `| ${[...cells, kinds.join(", ")].join(" | ")} |`;
  });
  return [
    "\nRequests to the API server per call",
    "",
    "| candidate | command | requests | reads | writes | of which |",
    "|---|---|---:|---:|---:|---|",
    ...lines,
    "",
  ].join("\n");
}

const READS = ["get", "list", "watch"];

function countsOf(requests: readonly AuditedRequest[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { verb, resource, uri } of requests) {
    const kind = `${verb} ${resource || uri}`;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/** Without a fraction if every call has the same number. */
function perCall(count: number, calls: number): string {
  const mean = count / calls;
  return Number.isInteger(mean) ? String(mean) : mean.toFixed(1);
}
