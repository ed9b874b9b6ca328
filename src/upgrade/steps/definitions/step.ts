/** Rules 4 to 7: the definitions of the new release, before anything that needs them. Helm and the operator never change them. */
import { identity, OPERATOR_API } from "../../../identity.ts";
import type { ClusterObjects, Fields } from "../../../kube/objects.ts";
import { isObject } from "../../../model/shape.ts";
import { listFollower } from "../../../release/admission/policies.ts";
import type { KubeObject } from "../../../release/kube-object.ts";
import { listAt } from "../../../release/live-object.ts";
import { describeObject, objectPath } from "../../../release/object-kinds.ts";
import { notesForServer, servedBy } from "../../../release/older-servers.ts";
import { applyForced, planForced, unapplied } from "../../engine/apply-forced.ts";
import type { Obstacle } from "../../engine/facts.ts";
import type { PlanningSite, Step, StepSite } from "../../engine/step.ts";
import { unestablished, untilEstablished } from "../../established-definitions.ts";

export const definitionsStep: Step = {
  name: "definitions",
  title: "Apply the custom resource definitions",
  rule: 5,
  why: "New pods need the kinds of the new release, and neither Helm nor the operator changes definitions that exist.",
  async plan(site) {
    const wanted = definitionsFor(site);
    const changes = await planForced(site.objects, wanted);
    if (changes.length === 0) return undefined;
    return {
      step: this.name,
      changes,
      obstacles: await storedVersionObstacles(site.objects, wanted),
      notes: [
        ...notesForServer(site.facts.orchestratorVersion, [...wholeDefinitions(site), ...appliedByOperator(site)]),
        "Resources of the kinds whose definitions change are backed up first: a field that a definition has no more is dropped when its resource is written next.",
      ],
      cannotBeUndone:
        "The definitions stay those of the new release, except those of the operator's own API, which go back with the operator: what is stored is never converted back.",
      estimatedSeconds: 5 + Math.ceil(changes.length / 4),
      data: {},
    };
  },
  async remaining({ objects, ...site }) {
    const wanted = definitionsFor(site);
    const missing = await unapplied(objects, wanted);
    const unserved = await unestablished(
      objects,
      wanted.filter((each) => !missing.includes(each)),
    );
    return [
      ...missing.map((each) => `apply ${describeObject(each)}`),
      ...unserved.map((name) => `wait until ${name} is served`),
    ];
  },
  async act(site) {
    const wanted = definitionsFor(site);
    await backUpResources(site, await unapplied(site.objects, wanted));
    await applyForced(site.objects, wanted);
    site.progress(`${wanted.length} definitions applied`);
    await untilEstablished(site, wanted);
  },
};

/** The operator leaves them out too, and has no plan that would say so. */
function appliedByOperator({ facts }: Pick<PlanningSite, "facts">): readonly KubeObject[] {
  return facts.method.kind === "manifest" ? [] : listFollower();
}

/** As the API server of the cluster can serve them. */
function definitionsFor(site: Pick<PlanningSite, "facts" | "release">): readonly KubeObject[] {
  return servedBy(site.facts.orchestratorVersion, wholeDefinitions(site));
}

/** Without the operator its own kinds are not needed; on etcd, resources are not in the orchestrator's API. */
function wholeDefinitions({ facts, release }: Pick<PlanningSite, "facts" | "release">): readonly KubeObject[] {
  if (facts.method.kind !== "manifest") return [...release.definitions, ...release.operatorDefinitions];
  return facts.datastore === "etcd" ? [] : release.definitions;
}

/** A version that objects are stored in cannot be removed from a definition. */
async function storedVersionObstacles(
  objects: ClusterObjects,
  wanted: readonly KubeObject[],
): Promise<readonly Obstacle[]> {
  const obstacles = await Promise.all(
    wanted.map(async (definition): Promise<readonly Obstacle[]> => {
      const live = await objects.read(objectPath(definition));
      const known = new Set(textsOf(listAt(definition["spec"], "versions"), "name"));
      const stored = listAt(live?.["status"], "storedVersions").filter((each) => typeof each === "string");
      return stored
        .filter((version) => !known.has(version))
        .map((version) => ({
          message: `${describeObject(definition)} has objects stored in version "${version}", which this release does not have`,
          remedy: `write each object of it again (kubectl get ${definition.metadata.name} -A -o name | xargs kubectl annotate --overwrite ${identity.labelPrefix}stored=again), then remove "${version}" from status.storedVersions of the definition`,
        }));
    }),
  );
  return obstacles.flat();
}

/** Those that people write; what the network records of addresses keeps its shape, and may be large. */
async function backUpResources(site: StepSite, changing: readonly KubeObject[]): Promise<void> {
  const saved: Record<string, readonly Fields[]> = {};
  for (const definition of changing.filter(isOfUsers)) {
    const path = collectionPath(definition);
    const found = (await site.objects.read(objectPath(definition))) === undefined ? [] : await site.objects.list(path);
    if (found.length > 0) saved[path] = found;
  }
  await site.backups.save("definitions-resources", JSON.stringify(saved));
}

function isOfUsers({ spec }: KubeObject): boolean {
  const { group, names } = isObject(spec) ? spec : {};
  return group === OPERATOR_API.group || listAt(names, "categories").includes(identity.product);
}

function collectionPath({ spec }: KubeObject): string {
  const { group, names, versions } = isObject(spec) ? spec : {};
  const [version = ""] = textsOf(Array.isArray(versions) ? versions : [], "name");
  return `/apis/${group}/${version}/${isObject(names) ? names["plural"] : ""}`;
}

function textsOf(list: readonly unknown[], name: string): readonly string[] {
  return list.flatMap((each) => (isObject(each) && typeof each[name] === "string" ? [each[name]] : []));
}
