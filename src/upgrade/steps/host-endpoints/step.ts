import { PluginError } from "../../../errors.ts";
import { HOST_ENDPOINT } from "../../../model/kinds.ts";
import { parseJson } from "../../../parse-json.ts";
import type { PlannedChange, PlanningSite, Step, StepPlan, StepSite } from "../../engine/step.ts";
import { listed } from "../../engine/wording.ts";
import { openResources } from "../../former-storage/open-resources.ts";
import { affectedSelectors } from "./affected-selectors.ts";
import { autoCreateOf } from "./automatic-creation.ts";
import {
  type Carrying,
  deleteEndpoints,
  labelNodes,
  lostPolicies,
  nodesWithoutAutomatic,
  restoreEndpoints,
  restoreLabels,
  switchAutomatic,
  untilAutomatic,
} from "./carry-out.ts";
import { isMigrated } from "./copied-labels.ts";
import { type Migration, planMigration } from "./migration.ts";
import { readLabels } from "./node-labels.ts";
import { type ReadHosts, readHosts, readNodeSelecting } from "./read-hosts.ts";
import { readSaved, type SavedMigration, savedEndpoints } from "./saved-migration.ts";

const NAME = "host-endpoints";
const BACKUP = `${NAME}-migration`;
const SECONDS_PER_ENDPOINT = 1;

export const hostEndpointsStep: Step = {
  name: NAME,
  title: "Automatic host endpoints",
  rule: 10,
  why: "every node gets a host endpoint that follows its labels and addresses; those for all interfaces that were written by hand are replaced",
  async plan(site) {
    if (!site.options.automaticHostEndpoints) return undefined;
    const store = await openResources(site);
    const hosts = await readHosts(store, isEtcd(site));
    const migration = planMigration(hosts, site.options);
    if (isDone(hosts, migration)) return undefined;
    const selecting = migration.labels.length === 0 ? undefined : await readNodeSelecting(site.objects, store);
    const affected = selecting === undefined ? [] : affectedSelectors(migration.changedNodes, selecting);
    return planOf(hosts, migration, affected);
  },
  async remaining(site) {
    const store = await site.openDatastore();
    const hosts = await readHosts(store, isEtcd(site));
    const saved = await savedIn(site);
    const places = { objects: site.objects, store };
    const unlabelled: string[] = [];
    for (const { target, wanted } of saved?.labels ?? planMigration(hosts, site.options).labels) {
      const present = (await readLabels(places, target)) ?? {};
      const missing = Object.keys(wanted).filter((label) => present[label] !== wanted[label]);
      if (missing.length > 0) unlabelled.push(`label node ${target.name}: ${missing.join(", ")}`);
    }
    return [...unlabelled, ...remainingIn(hosts)];
  },
  async act(site) {
    const store = await site.openDatastore();
    const carrying: Carrying = { site, store };
    const saved = await begin(carrying);
    await labelNodes(carrying, saved.labels);
    await switchAutomatic(carrying, "Enabled");
    await untilAutomatic(carrying, saved.labels);
    const { resources } = await readHosts(store, isEtcd(site));
    const present = new Set(resources.hostEndpoints.filter(isMigrated).map(({ metadata }) => metadata.name));
    const endpoints = savedEndpoints(saved).filter(({ metadata }) => present.has(metadata.name));
    const lost = lostPolicies(endpoints, resources);
    if (lost.length > 0) {
      throw new PluginError("resource-changed", `Cannot delete host endpoints: ${lost.join("; ")}`, {
        details: "let these policies select labels that the nodes have, then go on; nothing is deleted yet",
      });
    }
    await deleteEndpoints(carrying, endpoints);
  },
  async verify(site) {
    const store = await site.openDatastore();
    const saved = await savedIn(site);
    const { resources } = await readHosts(store, isEtcd(site));
    return saved === undefined ? [] : lostPolicies(savedEndpoints(saved), resources);
  },
  async rollback(site) {
    const store = await site.openDatastore();
    const saved = await savedIn(site);
    if (saved === undefined) return;
    const carrying: Carrying = { site, store };
    await restoreEndpoints(carrying, saved.endpoints);
    await switchAutomatic(carrying, saved.autoCreate);
    await restoreLabels(carrying, saved.labels);
  },
};

function isEtcd({ facts }: PlanningSite): boolean {
  return facts.datastore === "etcd";
}

function isDone(hosts: ReadHosts, { migrated }: Migration): boolean {
  return migrated.length === 0 && remainingIn(hosts).length === 0;
}

function remainingIn({ nodes, resources, configuration }: ReadHosts): readonly string[] {
  const missing = nodesWithoutAutomatic(nodes, resources.hostEndpoints);
  return [
    ...(autoCreateOf(configuration?.spec) === "Enabled" ? [] : ["enable automatic host endpoints"]),
    ...(missing.length === 0 ? [] : [`wait for the automatic host endpoint of ${listed(missing)}`]),
    ...resources.hostEndpoints.filter(isMigrated).map(({ metadata }) => `delete host endpoint ${metadata.name}`),
  ];
}

function planOf(hosts: ReadHosts, migration: Migration, affected: readonly string[]): StepPlan {
  const { migrated, labels, obstacles, notes } = migration;
  const changes: PlannedChange[] = [
    ...labels.map(({ target, wanted, former }): PlannedChange => {
      const lines = Object.entries(wanted).flatMap(([label, value]) => [
        ...(former[label] === undefined ? [] : [`-${label}=${former[label]}`]),
        `+${label}=${value}`,
      ]);
      return { action: "update", what: `Node ${target.name}`, diff: lines.join("\n") };
    }),
    ...(autoCreateOf(hosts.configuration?.spec) === "Enabled"
      ? []
      : [
          {
            action: hosts.configuration === undefined ? "create" : "update",
            what: "KubeControllersConfiguration default",
            diff: "+spec.controllers.node.hostEndpoint.autoCreate: Enabled",
          } as const,
        ]),
    ...migrated.map(({ metadata }) => ({ action: "delete" as const, what: `HostEndpoint ${metadata.name}` })),
  ];
  return {
    step: NAME,
    changes,
    obstacles,
    notes: [...notes, ...affected],
    cannotBeUndone: "host endpoints that are restored have new UIDs",
    estimatedSeconds: 10 + SECONDS_PER_ENDPOINT * (migrated.length + hosts.nodes.length),
    data: {},
  };
}

async function savedIn({ backups }: StepSite): Promise<SavedMigration | undefined> {
  const text = await backups.read(BACKUP);
  return text === undefined ? undefined : readSaved(text);
}

/** Decides again by what the cluster has now, and saves it; after an interruption, goes on with what was saved. */
async function begin({ site, store }: Carrying): Promise<SavedMigration> {
  const hosts = await readHosts(store, isEtcd(site));
  const saved = await savedIn(site);
  if (saved !== undefined) {
    const known = new Set(saved.endpoints.map(({ metadata }) => metadata.name));
    const added = hosts.resources.hostEndpoints.filter((each) => isMigrated(each) && !known.has(each.metadata.name));
    if (added.length === 0) return saved;
    const names = listed(added.map(({ metadata }) => metadata.name));
    throw new PluginError(
      "resource-changed",
      `Cannot go on: host endpoints were created since the step began: ${names}`,
      {
        details: "delete them, or roll back and plan the upgrade again",
      },
    );
  }
  const { migrated, labels, obstacles } = planMigration(hosts, site.options);
  const [obstacle] = obstacles;
  if (obstacle !== undefined) {
    throw new PluginError("resource-changed", obstacle.message, { details: obstacle.remedy });
  }
  const autoCreate = autoCreateOf(hosts.configuration?.spec);
  const wanted = migrated.map(({ metadata }) => ({ kind: "key" as const, key: HOST_ENDPOINT.key(metadata) }));
  const endpoints = (await store.read(wanted)).answers.flat().map(({ value }) => parseJson(value));
  const text = JSON.stringify({ endpoints, labels, ...(autoCreate === undefined ? {} : { autoCreate }) });
  await site.backups.save(BACKUP, text);
  return readSaved(text);
}
