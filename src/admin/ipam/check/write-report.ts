/** `ipam check --report`: writes what was found to a file. */

import { quoted } from "../../../quote.ts";
import type { Call, Clock, Files, Terminal } from "../../main/context.ts";
import { addressReport } from "../address-report.ts";
import type { Allocation } from "../blocks.ts";
import type { ClusterState } from "../cluster-state.ts";

interface Examined {
  readonly allocations: readonly Allocation[];
  readonly findings: readonly {
    readonly kind: string;
    readonly message: string;
    readonly address?: string;
    readonly handle?: string;
  }[];
}

export async function writeReport(
  file: string,
  { allocations, findings }: Examined,
  { cluster, context }: { readonly cluster: ClusterState; readonly context: Call & Terminal & Files & Clock },
): Promise<void> {
  const leaked = findings.flatMap(({ kind, message, address }): [string, string][] =>
    LEAK_KINDS.has(kind) && address !== undefined ? [[address, message]] : [],
  );
  const report = addressReport({
    version: context.version,
    createdAt: context.now(),
    cluster,
    allocations,
    leaked: new Map(leaked),
    leakedHandles: findings.flatMap((finding) =>
      finding.kind === "handle-without-block" ? (finding.handle ?? []) : [],
    ),
  });
  await context.replaceFile(file, `${JSON.stringify(report, undefined, 2)}\n`);
  context.stderr(`Wrote the report ${quoted(file)}\n`);
}

const LEAK_KINDS: ReadonlySet<string> = new Set(["allocation-without-endpoint", "container-gone"]);
