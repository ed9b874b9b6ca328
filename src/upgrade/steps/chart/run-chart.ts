/** Runs the chart with the real Helm, or says how to, and makes sure that a run that was killed does not block the next one. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import type { Fields } from "../../../kube/objects.ts";
import type { Helm, StepSite } from "../../engine/step.ts";
import { isPending, releaseRecords, secretPath } from "../../helm-releases.ts";

export interface ChartRun {
  /** Of the release. */
  readonly name: string;
  readonly values: Fields;
}

/** Everything but the values. Of a chart in a repository it is the one of this release. */
export function helmArguments(name: string, chart: string, version: string): readonly string[] {
  const chosen = isLocal(chart) ? [] : ["--version", version.replace(/^v/, "")];
  return ["upgrade", "--install", name, chart, ...chosen, "--namespace", identity.operator, "--skip-crds"];
}

export async function runChart(site: StepSite, { name, values }: ChartRun): Promise<void> {
  const { helm, options, release } = site;
  await clearOwnPendingRun(site, name);
  const directory = mkdtempSync(join(tmpdir(), `${identity.product}-upgrade-chart-`));
  const chart = options.chart ?? writeChart(join(directory, "chart"), release.chart());
  const args = helmArguments(name, chart, release.version);
  if (helm === undefined) throw waiting(args, writeValues(directory, values));
  try {
    await site.notes.write({ pendingRelease: name });
    const more = await conflictOptions(helm);
    const { code, stderr } = await helm([...args, ...more, "--values", "-"], JSON.stringify(values));
    if (code !== 0) {
      throw new PluginError("resource-invalid", `Helm cannot install the chart: ${stderr.trim()}`, {
        details: `helm history ${name} --namespace ${identity.operator}`,
      });
    }
    // From now on a pending record is of somebody else.
    await site.notes.write({});
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Not a mistake: the user runs Helm, and then apply again. The directory stays. */
function waiting(args: readonly string[], valuesFile: string): PluginError {
  const command = ["helm", ...args, "--values", valuesFile].join(" ");
  return new PluginError("try-again-later", "Waiting for the chart: there is no Helm here", {
    details: `run "${command}" (with Helm 4 also --force-conflicts), then "${identity.adminTool} upgrade apply" again; or name Helm with --helm PATH`,
  });
}

function isLocal(chart: string): boolean {
  return /^[./~]|\.tgz$/.test(chart);
}

/** Helm 4 applies on the server, where fields of the former installation would be conflicts. */
async function conflictOptions(helm: Helm): Promise<readonly string[]> {
  const { stdout } = await helm(["version", "--short"]);
  return /^v?3\./.test(stdout.trim()) ? [] : ["--force-conflicts"];
}

function writeChart(directory: string, files: Readonly<Record<string, string>>): string {
  for (const [name, text] of Object.entries(files)) {
    const file = join(directory, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  return directory;
}

/** They may have credentials of registries. */
function writeValues(directory: string, values: Fields): string {
  const file = join(directory, "values.json");
  writeFileSync(file, JSON.stringify(values, undefined, 2), { mode: 0o600 });
  return file;
}

const POLL_MILLISECONDS = 1_000;
const POLLS = 60;

/**
 * A run of ours that was killed leaves a record that blocks every other. Helm may still be at work without us, so it gets time to
 * end. A pending record of somebody else is never removed.
 */
async function clearOwnPendingRun(site: StepSite, name: string): Promise<void> {
  const release = { name, namespace: identity.operator };
  const isOwn = (await site.notes.read())["pendingRelease"] === name;
  for (let poll = 0; ; poll += 1) {
    const [newest] = await releaseRecords(site.objects, release);
    if (newest === undefined || !isPending(newest)) return;
    if (!isOwn) throw pendingProblem(newest);
    if (poll >= POLLS) {
      await site.objects.remove(secretPath(newest));
      return;
    }
    await site.wait(POLL_MILLISECONDS);
  }
}

export function pendingProblem({
  name,
  namespace,
  revision,
  status,
}: {
  readonly name: string;
  readonly namespace: string;
  readonly revision: number;
  readonly status: string;
}): PluginError {
  return new PluginError(
    "resource-in-use",
    `Cannot upgrade: release "${name}" in namespace "${namespace}" is in state ${status} (revision ${revision})`,
    { details: pendingRemedy(name, namespace) },
  );
}

export function pendingRemedy(name: string, namespace: string): string {
  return `wait until the other Helm has ended; if it was killed, run "helm rollback ${name} --namespace ${namespace}"`;
}
