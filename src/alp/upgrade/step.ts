import * as v from "valibot";
import { readAllEntries } from "../../datastore/pages.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { AGENT_VERSION_ANNOTATION } from "../../model/agent-version-annotation.ts";
import { NODE } from "../../model/kinds.ts";
import { decodeShape } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import type { Step, StepSite } from "../../upgrade/engine/step.ts";
import { listed } from "../../upgrade/engine/wording.ts";
import { type MeshPod, releaseOf } from "../mesh/mesh-pods.ts";
import { asNewObject, createMissing, replaceFilters, replacementsOf } from "./former-filters.ts";
import { type InjectedPod, untilInjected } from "./injected-pod.ts";
import { type Injector, readInjectors } from "./injectors.ts";
import { isOlderThan, titleOf } from "./outdated-workloads.ts";
import {
  changeOf,
  filterChanges,
  filterNotes,
  formerSidecarNotes,
  formOf,
  isChanged,
  keepsFilters,
  obstacleOf,
  templateNotes,
} from "./planned-changes.ts";
import { type Mesh, readMesh, readOutdated } from "./read-mesh.ts";
import { restartWorkloads } from "./restart.ts";

const NAME = "sidecars";
const BACKUP = `${NAME}-injectors`;
const SECONDS_PER_WORKLOAD = 30;

export const sidecarsStep: Step = {
  name: NAME,
  title: "Sidecars of application layer policy",
  rule: 9,
  why: "they have the version of the rest; a node agent of this release works with every older sidecar since v3.15, so they come after all nodes",
  async plan(site) {
    if (!site.facts.hasApplicationLayerPolicy) return undefined;
    const mesh = await readMesh(site);
    const { injectors, filters, outdated } = mesh;
    const { restarted, others } = outdated;
    const changed = injectors.filter(isChanged);
    if (changed.length + restarted.length + others.length + filters.length === 0) return undefined;
    return {
      step: NAME,
      changes: [
        ...changed.map(changeOf),
        ...restarted.map((each) => ({ action: "restart" as const, what: titleOf(each) })),
        ...filterChanges(mesh),
      ],
      obstacles: injectors.flatMap(obstacleOf),
      notes: [
        ...templateNotes(changed),
        ...others.map(({ workload, reason }) => `${titleOf(workload)} has an older sidecar, and ${reason}`),
        ...filterNotes(mesh),
        ...formerSidecarNotes(mesh),
      ],
      estimatedSeconds: 30 + SECONDS_PER_WORKLOAD * restarted.length,
      data: {},
    };
  },
  async remaining(site) {
    const mesh = await readMesh(site);
    const { injectors, filters, outdated } = mesh;
    return [
      ...injectors.filter(isChanged).map(({ title }) => `insert the sidecar of ${site.facts.target} into ${title}`),
      ...outdated.restarted.map((each) => `restart ${titleOf(each)}`),
      ...(keepsFilters(mesh) ? [] : filters.map(({ title }) => `replace ${title}`)),
    ];
  },
  async act(site) {
    await requireNewAgents(site);
    const mesh = await readMesh(site);
    for (const { wanted } of mesh.injectors) if ("problem" in wanted) throw wanted.problem;
    await save(site, mesh);
    await changeTemplates(site, mesh.injectors);
    const { target } = site.facts;
    const isNew = ({ sidecarImage, hasEarlierSidecar }: InjectedPod) =>
      !hasEarlierSidecar && sidecarImage !== undefined && tagOf(sidecarImage) === target;
    await restartAll(site, isOlderThan(target), isNew);

    const renewed = await readMesh(site);
    if (renewed.filters.length > 0 && !keepsFilters(renewed)) {
      site.progress(`Replaces ${listed(renewed.filters.map(({ title }) => title))}`);
      await replaceFilters(site.objects, renewed.filters, formOf(renewed.injectors));
    }
    // New pods need not answer at the former socket any more.
    await changeTemplates(site, (await readMesh(site)).injectors);
  },
  async rollback(site) {
    const text = await site.backups.read(BACKUP);
    if (text === undefined) return;
    const decoded = decodeShape(savedShape, parseJson(text));
    if (!decoded.ok) throw new PluginError("record-malformed", "Cannot read the backup of the injectors");
    const { configs, filters, created } = decoded.value;
    for (const { path, object } of filters) await createMissing(site.objects, path, asNewObject(object));
    for (const path of created) await site.objects.remove(path);
    for (const [path, former] of Object.entries(configs)) {
      const present = decodeShape(v.object({ data: v.object({ config: v.string() }) }), await site.objects.read(path));
      if (!present.ok || present.value.data.config === former) continue;
      await changeConfig(site, path, present.value.data.config, former);
    }
    const { target } = site.facts;
    const isOfThis = (pod: MeshPod) => pod.sidecarImage !== undefined && releaseOf(pod) === target;
    await restartAll(site, isOfThis, ({ sidecarImage = "" }) => tagOf(sidecarImage) !== target);
  },
};

const savedShape = v.object({
  /** By the path of the ConfigMap. */
  configs: v.record(v.string(), v.string()),
  filters: v.array(v.object({ path: v.string(), object: v.record(v.string(), v.unknown()) })),
  /** Paths of filters that the step creates. */
  created: v.array(v.string()),
});

async function save(site: StepSite, { injectors, filters }: Mesh): Promise<void> {
  const configs = Object.fromEntries(injectors.map(({ path, config }) => [path, config]));
  const created: string[] = [];
  for (const { path } of replacementsOf(filters, formOf(injectors))) {
    if ((await site.objects.read(path)) === undefined) created.push(path);
  }
  const saved = filters.map(({ path, object }) => ({ path, object }));
  await site.backups.save(BACKUP, JSON.stringify({ configs, filters: saved, created }));
}

async function changeTemplates(site: StepSite, injectors: readonly Injector[]): Promise<void> {
  for (const { path, title, config, wanted } of injectors) {
    if ("problem" in wanted || wanted.config === config) continue;
    site.progress(`Inserts ${wanted.image} into ${title}`);
    await changeConfig(site, path, config, wanted.config);
  }
}

async function restartAll(
  site: StepSite,
  isOutdated: (pod: MeshPod) => boolean,
  isWanted: (pod: InjectedPod) => boolean,
): Promise<void> {
  const remaining = async () => (await readOutdated(site, isOutdated, await readInjectors(site, undefined))).restarted;
  const workloads = await remaining();
  const [first] = workloads;
  if (first !== undefined) await untilInjected(site, first, isWanted);
  await restartWorkloads(site, workloads, remaining);
}

/** The text must be the one that was read: users and the mesh's own installer write it too. */
async function changeConfig(site: StepSite, path: string, before: string, after: string): Promise<void> {
  await site.objects.patchJson(path, [
    { op: "test", path: "/data/config", value: before },
    { op: "replace", path: "/data/config", value: after },
  ]);
}

/** An agent of an earlier release refuses a sidecar of this one. */
async function requireNewAgents(site: StepSite): Promise<void> {
  const entries = await readAllEntries(await site.openDatastore(), NODE.prefix());
  const older = entries
    .map(({ key, value }) => NODE.codec.read(value, key).metadata)
    .filter(({ annotations = {} }) => {
      const version = annotations[AGENT_VERSION_ANNOTATION];
      return version !== undefined && version !== site.facts.target;
    });
  if (older.length === 0) return;
  throw new PluginError(
    "try-again-later",
    `Cannot upgrade sidecars: the node agent of ${listed(older.map(({ name }) => name))} is not of ${site.facts.target} yet`,
    { details: `wait until ${identity.nodeAgent} is updated there, or delete the node if it is gone` },
  );
}

function tagOf(image: string): string | undefined {
  return /:([^/:@]+)(?:@.*)?$/.exec(image)?.[1];
}
