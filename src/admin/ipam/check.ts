import { counted } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, type Given, wantsJson } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { paint, paintComplaint } from "../paint.ts";
import { openProgress } from "../progress.ts";
import { allocatorFor } from "./allocator.ts";
import { allocationsOf } from "./blocks.ts";
import { type Checked, checkOnce, type Finding, lasting } from "./findings.ts";
import { repair } from "./repair.ts";

export const ipamCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Check that no address is held twice, none is lost, and every record is true",
  description: [
    "What it looks for: addresses in two places, blocks that contradict themselves or overlap, handles and blocks that",
    "do not agree, claims on blocks that are not there or another's, addresses outside any pool, endpoints whose address",
    "is free, and addresses whose endpoint is gone. Safe at any time: what is only on its way is looked at twice.",
    "--fix puts right what the records themselves prove, and releases what is proven leaked.",
    "A record that cannot be read is a finding of its own: what could depend on it is not judged, and --fix changes nothing.",
    "The exit code is 1 when anything is left that is wrong.",
  ].join("\n"),
  options: [{ name: "fix", summary: "Put right what can be, release what is proven leaked" }],
  needsDatastore: true,
  examples: [
    { command: "ipam check", does: "Is all well?" },
    { command: "ipam check --fix", does: "Make it so" },
    { command: "ipam check -o json", does: "For a script" },
  ],
  async run(context, given) {
    const report = await withDatastore(context, given, (store) =>
      examine(store, context, { fixes: given.switches.has("fix") }),
    );
    print(report, context, given);
    return report.findings.every(({ fixed }) => fixed) ? EXIT_OK : EXIT_FAILED;
  },
};

interface Report {
  readonly counts: {
    readonly pools: number;
    readonly blocks: number;
    readonly addresses: number;
    readonly handles: number;
  };
  readonly findings: readonly Judged[];
  /** Why nothing was repaired although it was asked for. */
  readonly note?: string;
}

type Judged = Finding & { readonly fixed: boolean };

const MOMENT_MILLISECONDS = 200;

async function examine(store: Datastore, context: Context, { fixes }: { readonly fixes: boolean }): Promise<Report> {
  const checked = await checkTwice(store, context);
  const { world, findings } = checked;
  const refusal = fixes ? refusalToRepair(findings) : undefined;
  const isRepaired = fixes && refusal === undefined;
  return {
    counts: {
      pools: world.pools.length,
      blocks: world.blocks.length,
      addresses: world.blocks.reduce((sum, block) => sum + allocationsOf(block).length, 0),
      handles: world.handles.length,
    },
    findings: isRepaired ? await repairAll(store, context, checked) : findings.map(leftAlone),
    ...(refusal === undefined ? {} : { note: refusal }),
  };
}

/** What the other records prove, one that cannot be read could disprove. */
function refusalToRepair(findings: readonly Finding[]): string | undefined {
  const count = findings.filter(({ kind }) => kind === "record-unreadable").length;
  if (count === 0) return undefined;
  return `--fix changed nothing: ${counted(count, "record")} cannot be read, and a repair could depend on it`;
}

function leftAlone(finding: Finding): Judged {
  return { ...finding, fixed: false };
}

async function repairAll(store: Datastore, context: Context, { world, findings }: Checked): Promise<readonly Judged[]> {
  const shop = { store, world, allocator: allocatorFor(store, context) };
  const progress = openProgress(context, "Repairing", findings.length);
  const judged: Judged[] = [];
  for (const finding of findings) {
    judged.push({ ...finding, fixed: await repair(finding, shop) });
    progress.step();
  }
  progress.end();
  return judged;
}

/** The pages of one look may be of different moments. */
async function checkTwice(store: Datastore, context: Context): Promise<Checked> {
  const first = await checkOnce(store, context.now());
  if (first.findings.length === 0) return first;
  await context.wait(MOMENT_MILLISECONDS);
  const second = await checkOnce(store, context.now());
  return { ...second, findings: lasting(first.findings, second.findings) };
}

function print({ counts, findings, note }: Report, context: Context, given: Given): void {
  if (wantsJson(given)) {
    const plain = findings.map((finding) => ({ ...finding, leaked: undefined }));
    const ok = findings.every(({ fixed }) => fixed);
    context.stdout(`${JSON.stringify({ ok, counts, findings: plain, note }, undefined, 2)}\n`);
    return;
  }
  const { red, green } = paint(context);
  for (const { kind, message, fixed } of findings) {
    context.stdout(`${fixed ? green("fixed") : red("error")}: ${message} [${kind}]\n`);
  }
  const { pools, blocks, addresses, handles } = counts;
  const seen = [
    counted(pools, "pool"),
    counted(blocks, "block"),
    `${counted(addresses, "address", "addresses")} in use`,
    counted(handles, "handle"),
  ].join(", ");
  const left = findings.filter(({ fixed }) => !fixed).length;
  context.stdout(`Checked ${seen}: ${left === 0 ? green("all well") : red(counted(left, "problem"))}\n`);
  if (note !== undefined) context.stderr(`${paintComplaint(context).yellow("note:")} ${note}\n`);
}
