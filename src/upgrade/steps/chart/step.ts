/** Rules 4 and 5: the chart of this release by the real Helm, with the values that the user gave the former one. */
import { identity } from "../../../identity.ts";
import type { ClusterObjects } from "../../../kube/objects.ts";
import { textAt } from "../../../release/live-object.ts";
import { objectPath } from "../../../release/object-kinds.ts";
import { planForced } from "../../engine/apply-forced.ts";
import type { ChartRelease, Obstacle } from "../../engine/facts.ts";
import type { PlannedChange, PlanningSite, Step, StepSite } from "../../engine/step.ts";
import {
  isPending,
  type ReleaseRecord,
  recordInUse,
  releaseRecords,
  secretPath,
  valuesOf,
} from "../../helm-releases.ts";
import { fieldsIn } from "../../object-fields.ts";
import {
  OPERATOR_DEPLOYMENT,
  planFormerOperator,
  remainingOfFormerOperator,
  replaceFormerOperator,
} from "../../operator-install/former-operator.ts";
import { effectiveInstallation, operatorFor, poolNotes } from "../../operator-install/operator-objects.ts";
import { operatorWaitsFor, untilNone } from "../../operator-install/operator-rollout.ts";
import { restoreOperator } from "../../operator-install/restore-operator.ts";
import { installationSchema } from "../../operator-install/translate-installation.ts";
import { helmArguments, pendingProblem, pendingRemedy, runChart } from "./run-chart.ts";
import { servedVersions, stripManifest, withManifest } from "./stored-manifest.ts";
import { translateValues } from "./translate-values.ts";

export const chartStep: Step = {
  name: "chart",
  title: "Install the chart of the operator",
  rule: 5,
  why: "The operator replaces the components by those of its own release.",
  async plan(site) {
    const release = releaseIn(site);
    if (release === undefined) return undefined;
    const records = await releaseRecords(site.objects, release);
    const [newest] = records;
    const used = recordInUse(records);
    const isDone = (await chartWaitsFor(site, release)) === undefined;
    if (newest === undefined || used === undefined || (isDone && (await operatorWaitsFor(site.objects)) === undefined))
      return undefined;
    const former = await planFormerOperator(site);
    const { notes, obstacles } = translateValues(valuesOf(used), valueFacts(site));
    const effective = await effectiveInstallation(site);
    const pools =
      "installation" in effective ? poolNotes(effective.installation, effective.pools) : { notes: [], obstacles: [] };
    const stripped = await strippedManifest(site.objects, used);
    return {
      step: this.name,
      changes: [
        ...former.changes,
        ...strippedChange(used, stripped.removed),
        ...(await planObjects(site, former.changes)),
        runChange(site, release),
      ],
      obstacles: [...pendingObstacles(newest), ...former.obstacles, ...obstacles, ...pools.obstacles],
      notes: [
        ...unusedNotes(newest, used),
        ...notes,
        ...former.notes,
        ...pools.notes,
        ...stripped.removed.map(
          (reason) => `Taken out of the stored manifest of the release, so that Helm leaves it alone: ${reason}`,
        ),
      ],
      estimatedSeconds: 60,
      data: {},
    };
  },
  async remaining(site) {
    const release = releaseIn(site);
    if (release === undefined) return [];
    const found = [await chartWaitsFor(site, release), await operatorWaitsFor(site.objects)];
    return [...(await remainingOfFormerOperator(site)), ...found.filter((each) => each !== undefined)];
  },
  async act(site) {
    const release = releaseIn(site);
    if (release === undefined) return;
    await replaceFormerOperator(site);
    if ((await chartWaitsFor(site, release)) !== undefined) await installChart(site, release);
    await untilNone(site, "Waiting for the operator", () => operatorWaitsFor(site.objects));
  },
  async rollback(site, { changes }) {
    const release = releaseIn(site);
    if (release === undefined) return;
    // Of the revisions that this upgrade has made; those before it are put back with the other objects.
    for (const { namespace, secret, revision } of await releaseRecords(site.objects, inOperatorNamespace(release))) {
      const isNew = release.namespace !== identity.operator || revision > release.revision;
      if (isNew) await site.objects.remove(secretPath({ namespace, secret }));
    }
    await restoreOperator(site, changes);
  },
};

function releaseIn({ facts: { method } }: PlanningSite): ChartRelease | undefined {
  return method.kind === "chart" ? method.release : undefined;
}

function inOperatorNamespace({ name }: ChartRelease) {
  return { name, namespace: identity.operator };
}

function valueFacts({ release, facts }: PlanningSite) {
  return {
    schema: installationSchema(release.operatorDefinitions),
    allowsSourceSpoofing: facts.allowsSourceSpoofing ?? false,
  };
}

/** `undefined` if the release of this version is deployed. */
async function chartWaitsFor(site: PlanningSite, release: ChartRelease): Promise<string | undefined> {
  const [newest] = await releaseRecords(site.objects, inOperatorNamespace(release));
  const wanted = site.release.version.replace(/^v/, "");
  if (newest === undefined) return `install chart ${wanted} into namespace ${identity.operator}`;
  const found = newest.chartVersion.replace(/^v/, "");
  if (found !== wanted) return `upgrade release ${release.name} from chart ${found} to ${wanted}`;
  return newest.status === "deployed" ? undefined : `release ${release.name} is ${newest.status}`;
}

async function installChart(site: StepSite, release: ChartRelease): Promise<void> {
  const records = await releaseRecords(site.objects, release);
  const [newest] = records;
  if (newest === undefined) return;
  if (release.namespace !== identity.operator && isPending(newest)) throw pendingProblem(newest);
  const used = recordInUse(records) ?? newest;
  if (release.namespace === identity.operator) await stripStoredManifest(site, used);
  const { values } = translateValues(valuesOf(used), valueFacts(site));
  await runChart(site, { name: release.name, values });
  site.progress(`release ${release.name} is installed in namespace ${identity.operator}`);
}

/** A release in another namespace is not compared with anything. */
async function strippedManifest(objects: ClusterObjects, record: ReleaseRecord) {
  if (record.namespace !== identity.operator) return { manifest: "", removed: [] };
  const manifest = textAt(record.record, "manifest");
  return stripManifest(manifest, await servedVersions(objects, manifest));
}

async function stripStoredManifest(site: StepSite, record: ReleaseRecord): Promise<void> {
  const { manifest, removed } = await strippedManifest(site.objects, record);
  if (removed.length === 0) return;
  const path = secretPath(record);
  const secret = await site.objects.read(path);
  const release = withManifest(textAt(secret, "data", "release"), manifest);
  const { resourceVersion } = fieldsIn(secret, "metadata");
  await site.objects.patch(path, { metadata: { resourceVersion }, data: { release } });
  for (const reason of removed) site.progress(`taken out of the stored manifest: ${reason}`);
}

function pendingObstacles(record: ReleaseRecord): readonly Obstacle[] {
  if (!isPending(record)) return [];
  return [{ message: pendingProblem(record).message, remedy: pendingRemedy(record.name, record.namespace) }];
}

function unusedNotes(newest: ReleaseRecord, used: ReleaseRecord): readonly string[] {
  if (newest.revision === used.revision) return [];
  const { revision, name, status } = newest;
  return [`Revision ${revision} of release ${name} is ${status}: the values of revision ${used.revision} are used`];
}

function strippedChange(record: ReleaseRecord, removed: readonly string[]): readonly PlannedChange[] {
  if (removed.length === 0) return [];
  const what = `Secret ${record.namespace}/${record.secret} (the stored manifest of the release)`;
  return [{ action: "update", what, path: secretPath(record), diff: removed.join("\n") }];
}

/** The chart renders the same objects as the manifest of the operator. */
async function planObjects(site: PlanningSite, former: readonly PlannedChange[]): Promise<readonly PlannedChange[]> {
  const effective = await effectiveInstallation(site);
  const wanted = operatorFor(site.release, "installation" in effective ? effective.installation : undefined);
  const isReplaced = (path: string) => former.some((change) => change.action === "delete" && change.path === path);
  const tried = wanted.filter((object) => object.kind !== "Namespace" && !isReplaced(objectPath(object)));
  const changes = await planForced(site.objects, tried);
  const deployment = `Deployment ${identity.operator}/${identity.operator}`;
  return isReplaced(OPERATOR_DEPLOYMENT)
    ? [...changes, { action: "create", what: deployment, isUnverified: true }]
    : changes;
}

function runChange({ options, release: { version } }: PlanningSite, release: ChartRelease): PlannedChange {
  const chart = options.chart ?? `the chart of ${identity.adminTool} ${version}`;
  const command = ["helm", ...helmArguments(release.name, chart, version), "--values", "those of the former release"];
  return { action: "run", what: command.join(" ") };
}
