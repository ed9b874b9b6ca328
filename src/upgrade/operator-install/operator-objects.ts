/** The objects of the operator for this cluster: its image comes from the registry of the Installation. */
import type { ApiObject } from "../../datastore/kube/api.ts";
import { apiVersionOf, identity, PRODUCT_API } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { DEFAULT_NAME, OVERLAY_NAME } from "../../model/installation/installation.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import { POOL } from "../../model/kinds.ts";
import { formatProblem } from "../../model/problem.ts";
import { isObject } from "../../model/shape.ts";
import { completeInstallation } from "../../release/installation/complete.ts";
import type { EffectiveInstallation } from "../../release/installation/effective-installation.ts";
import { planPools } from "../../release/installation/plan-pools.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { listAt } from "../../release/live-object.ts";
import { imageName } from "../../release/workloads/image.ts";
import type { Obstacle } from "../engine/facts.ts";
import type { PlanningSite } from "../engine/step.ts";
import { convertResources } from "../former-storage/convert-resources.ts";
import { FORMER_PATH } from "../former-storage/former-object.ts";
import { fieldsIn } from "../object-fields.ts";
import { translatedInstallations } from "./former-operator.ts";

const POOLS = `/apis/${apiVersionOf(PRODUCT_API)}/ippools`;

/** As the operator will read the Installations; `undefined` if there are none, or they are not valid. */
export async function effectiveInstallation(
  site: PlanningSite,
): Promise<
  | { readonly installation: EffectiveInstallation; readonly pools: readonly IPPool[] }
  | { readonly problems: readonly Obstacle[] }
> {
  const found = await translatedInstallations(site);
  const named = (name: string) => found.find(({ path }) => path.endsWith(`/${name}`))?.wanted;
  const [base, overlay] = [named(DEFAULT_NAME), named(OVERLAY_NAME)];
  if (base === undefined) return { problems: [] };
  const pools = site.facts.datastore === "etcd" ? undefined : await readPools(site);
  const completed = completeInstallation(
    { default: asObject(base), ...(overlay === undefined ? {} : { overlay: asObject(overlay) }) },
    {
      version: site.release.version,
      namespace: identity.systemNamespace,
      pools: pools ?? [],
      arePoolsUnknown: pools === undefined,
      platformPodCidrs: [],
    },
  );
  if (completed.ok) return { installation: completed.installation, pools: pools ?? [] };
  const remedy = "change the Installation before the upgrade, and plan again";
  return { problems: completed.problems.map((each) => ({ message: `Installation: ${formatProblem(each)}`, remedy })) };
}

/** What the new operator will do to the pools that exist, which people may have changed without the Installation. */
export function poolNotes(
  installation: EffectiveInstallation,
  pools: readonly IPPool[],
): {
  readonly notes: readonly string[];
  readonly obstacles: readonly Obstacle[];
} {
  const { create, update, adopt, disable, problems } = planPools(installation.network.ipPools, pools);
  return {
    notes: [
      ...create.map(({ metadata, spec }) => `The operator creates pool "${metadata.name}" (${spec.cidr})`),
      ...update.map(
        (pool) =>
          `The operator changes pool "${pool.metadata.name}" to what the Installation declares: ${changesOf(pool, pools)}`,
      ),
      ...adopt.map(({ metadata }) => `The operator manages pool "${metadata.name}" from now on, as it is`),
      ...disable.map(
        ({ metadata }) => `The operator disables pool "${metadata.name}", which the Installation does not declare`,
      ),
    ],
    obstacles: problems.map((problem) => ({
      message: `The operator would refuse the pools: ${formatProblem(problem)}`,
      remedy: "declare the pool in the Installation as it is, and plan again",
    })),
  };
}

/** The objects of the release, with the image and the Secrets of the Installation. */
export function operatorFor(
  release: PlanningSite["release"],
  installation: EffectiveInstallation | undefined,
): readonly KubeObject[] {
  if (installation === undefined) return release.operator;
  const { image } = installation;
  return release.operator.map((object) => {
    if (object.kind !== "Deployment") return object;
    const spec = fieldsIn(object, "spec");
    const template = fieldsIn(spec, "template");
    const pod = fieldsIn(template, "spec");
    const containers = listAt(pod, "containers").map((each) => ({
      ...Object(each),
      image: imageName(image, release.version),
    }));
    const secrets = image.pullSecrets.map((name) => ({ name }));
    const newPod = { ...pod, ...(secrets.length === 0 ? {} : { imagePullSecrets: secrets }), containers };
    return { ...object, spec: { ...spec, template: { ...template, spec: newPod } } };
  });
}

function changesOf({ metadata, spec }: IPPool, pools: readonly IPPool[]): string {
  const before = pools.find((pool) => pool.metadata.name === metadata.name)?.spec;
  const changed = Object.entries(spec).filter(([name, value]) => !Bun.deepEquals(value, Object(before)[name]));
  return changed
    .map(([name, value]) => `${name} ${JSON.stringify(Object(before)[name])} becomes ${JSON.stringify(value)}`)
    .join(", ");
}

/** Before the storage has moved they may be served nowhere else. Those that the operator could not read are left out. */
async function readPools({ objects, facts }: PlanningSite): Promise<readonly IPPool[]> {
  const found = await objects.list(POOLS);
  if (found.length === 0 && facts.storage === "former") return readFormerPools(objects);
  return found.map((object) => ipPool.decode(object)).flatMap((decoded) => (decoded.ok ? [decoded.value] : []));
}

async function readFormerPools(objects: ClusterObjects): Promise<readonly IPPool[]> {
  const found = await objects.list(`${FORMER_PATH}/${POOL.plural}`);
  const { records } = convertResources({ plural: POOL.plural, target: POOL }, found as readonly ApiObject[]);
  return records.map(({ key, value }) => POOL.codec.read(value, key));
}

function asObject(fields: Fields): KubeObject {
  const { metadata, apiVersion, kind } = fields;
  const name = isObject(metadata) ? String(metadata["name"]) : "";
  return { ...fields, apiVersion: String(apiVersion), kind: String(kind), metadata: { name } };
}
