import * as v from "valibot";
import type { Datastore } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { GLOBAL_NETWORK_POLICY, HOST_ENDPOINT } from "../../../model/kinds.ts";
import type { Metadata } from "../../../model/metadata.ts";
import { decodeShape } from "../../../model/shape.ts";
import { UPGRADE_POLICY } from "../../../model/upgrade-policy.ts";
import { parseJson } from "../../../parse-json.ts";
import type { PolicyResources } from "../../../policy/judge/resources.ts";
import { readPolicy } from "../../../policy/read-resources.ts";
import { quoted } from "../../../quote.ts";
import { asNew, changeRecord, storedResource } from "../../engine/change-record.ts";
import type { Obstacle } from "../../engine/facts.ts";
import type { Step, StepSite } from "../../engine/step.ts";
import { listed } from "../../engine/wording.ts";
import { UPGRADE_MARK } from "../../former-names.ts";
import { openResources } from "../../former-storage/open-resources.ts";
import { isMarked, type SelectedHost, selectedHosts, upgradePoliciesIn } from "./only-selected.ts";

const NAME = "upgrade-policy";
const BACKUP = NAME;

export const upgradePolicyStep: Step = {
  name: NAME,
  title: `The temporary policy ${UPGRADE_POLICY}`,
  rule: 7,
  why: "it was created for an upgrade to v3.14, and allows all traffic of the hosts that it selects",
  async plan(site) {
    if (!site.facts.hasUpgradePolicy) return undefined;
    const store = await openResources(site);
    const { resources } = await readPolicy(store);
    const policies = upgradePoliciesIn(resources);
    if (policies.length === 0) return undefined;
    const marked = resources.hostEndpoints.filter(isMarked);
    const hosts = selectedHosts(resources);
    return {
      step: NAME,
      changes: [
        ...policies.map(({ metadata }) => ({
          action: "delete" as const,
          what: `GlobalNetworkPolicy ${metadata.name}`,
        })),
        ...marked.map(({ metadata }) => ({
          action: "update" as const,
          what: `HostEndpoint ${metadata.name}`,
          diff: `-${UPGRADE_MARK}=${metadata.labels?.[UPGRADE_MARK]}`,
        })),
      ],
      obstacles: site.options.reviewed ? [] : obstaclesOf(hosts),
      notes: notesOf(hosts),
      estimatedSeconds: 1 + marked.length,
      data: {},
    };
  },
  async remaining(site) {
    const store = await site.openDatastore();
    const { resources } = await readPolicy(store);
    return [
      ...upgradePoliciesIn(resources).map(({ metadata }) => `delete GlobalNetworkPolicy ${metadata.name}`),
      ...resources.hostEndpoints
        .filter(isMarked)
        .map(({ metadata }) => `remove label ${UPGRADE_MARK} of host endpoint ${metadata.name}`),
    ];
  },
  async act(site) {
    const store = await site.openDatastore();
    const { resources } = await readPolicy(store);
    refuseUnreviewed(site, resources);
    const policies = upgradePoliciesIn(resources);
    const marks = Object.fromEntries(
      resources.hostEndpoints
        .filter(isMarked)
        .map(({ metadata }) => [metadata.name, metadata.labels?.[UPGRADE_MARK] ?? ""]),
    );
    const { answers } = await store.read(policies.map(({ metadata }) => ({ kind: "key", key: keyOf(metadata) })));
    const stored = answers.flat().map(({ value }) => parseJson(value));
    await site.backups.save(BACKUP, JSON.stringify({ policies: stored, marks }));
    for (const { metadata } of policies) {
      await changeRecord(store, keyOf(metadata), () => "delete");
      site.progress(`Deleted GlobalNetworkPolicy ${metadata.name}`);
    }
    for (const name of Object.keys(marks)) await setMark(store, name, undefined);
  },
  async rollback(site) {
    const store = await site.openDatastore();
    const text = await site.backups.read(BACKUP);
    if (text === undefined) return;
    const { policies, marks } = readSaved(text);
    for (const [name, value] of Object.entries(marks)) await setMark(store, name, value);
    for (const policy of policies) {
      await changeRecord(store, keyOf(policy.metadata), (present) => present ?? asNew(policy));
    }
  },
};

function keyOf({ name }: Metadata): string {
  return GLOBAL_NETWORK_POLICY.key({ name });
}

function obstaclesOf(hosts: readonly SelectedHost[]): readonly Obstacle[] {
  const closed = Map.groupBy(
    hosts.filter(({ afterwards }) => afterwards === "closed"),
    ({ endpoint }) => endpoint,
  );
  return [...closed].map(([endpoint, directions]) => ({
    message: `Only ${UPGRADE_POLICY} selects host endpoint ${quoted(endpoint)} (${directions.map(({ direction }) => direction).join(", ")}): without it everything but failsafe ports is denied there`,
    remedy: `write policies for its traffic ("${identity.adminTool} upgrade draft-policy --log FILE" makes a draft from the kernel's log), or confirm with --reviewed`,
  }));
}

function notesOf(hosts: readonly SelectedHost[]): readonly string[] {
  const lines = hosts.map(({ endpoint, direction, afterwards }) => ({
    endpoint,
    outcome: `(${direction}): ${AFTERWARDS[afterwards]}`,
  }));
  return [...Map.groupBy(lines, ({ outcome }) => outcome)].map(
    ([outcome, group]) => `${listed(group.map(({ endpoint }) => endpoint))} ${outcome}`,
  );
}

const AFTERWARDS: Readonly<Record<SelectedHost["afterwards"], string>> = {
  closed: "everything but failsafe ports is denied afterwards",
  profiles: "their profiles decide afterwards",
  policies: "their other policies decide afterwards, and deny what they do not allow",
};

/** Somebody may have deleted another policy since the plan. */
function refuseUnreviewed({ options }: StepSite, resources: PolicyResources): void {
  const [obstacle] = options.reviewed ? [] : obstaclesOf(selectedHosts(resources));
  if (obstacle === undefined) return;
  throw new PluginError("resource-changed", obstacle.message, { details: obstacle.remedy });
}

async function setMark(store: Datastore, name: string, mark: string | undefined): Promise<void> {
  const key = HOST_ENDPOINT.key({ name });
  await changeRecord(store, key, (value) => {
    if (value === undefined) return undefined;
    const endpoint = HOST_ENDPOINT.codec.read(value, key);
    if (endpoint.metadata.labels?.[UPGRADE_MARK] === mark) return undefined;
    const { [UPGRADE_MARK]: _, ...others } = endpoint.metadata.labels ?? {};
    const labels = mark === undefined ? others : { ...others, [UPGRADE_MARK]: mark };
    return HOST_ENDPOINT.codec.write({ ...endpoint, metadata: { ...endpoint.metadata, labels } }, value);
  });
}

const savedShape = v.object({ policies: v.array(storedResource), marks: v.record(v.string(), v.string()) });

function readSaved(text: string): v.InferOutput<typeof savedShape> {
  const decoded = decodeShape(savedShape, parseJson(text));
  if (decoded.ok) return decoded.value;
  throw new PluginError("record-malformed", `Cannot read the backup of ${UPGRADE_POLICY}`);
}
