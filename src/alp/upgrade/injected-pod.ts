/**
 * What the injector would add to a new pod of a workload: the server's dry run of such a pod passes through it. The mesh takes a while
 * to notice a changed template, and a restart before that would be in vain.
 */
import * as v from "valibot";
import { PluginError } from "../../errors.ts";
import { FORMER_SIDECAR, identity } from "../../identity.ts";
import { decodeShape } from "../../model/shape.ts";
import type { StepSite } from "../../upgrade/engine/step.ts";
import { PROXY_CONTAINER } from "../mesh/sidecar-parts.ts";
import { type OutdatedWorkload, titleOf, workloadPath } from "./outdated-workloads.ts";

export interface InjectedPod {
  readonly hasProxy: boolean;
  readonly hasEarlierSidecar: boolean;
  readonly sidecarImage?: string;
}

const container = v.object({ name: v.string(), image: v.optional(v.string(), "") });
const podSpec = v.looseObject({
  containers: v.array(v.looseObject({ ...container.entries })),
  initContainers: v.optional(v.array(v.looseObject({ ...container.entries })), []),
});
const workloadShape = v.object({
  spec: v.object({ template: v.object({ metadata: v.optional(v.looseObject({}), {}), spec: podSpec }) }),
});

/** `undefined` if the server does not tell. */
async function injectedPod(site: StepSite, workload: OutdatedWorkload): Promise<InjectedPod | undefined> {
  const decoded = decodeShape(workloadShape, await site.objects.read(workloadPath(workload) ?? ""));
  if (!decoded.ok) return undefined;
  const { metadata, spec } = decoded.value.spec.template;
  const { namespace } = workload;
  const name = `${workload.name}-injected`.slice(-63).replace(/^[^a-z0-9]+/, "");
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { ...metadata, name, namespace }, spec };
  try {
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const result = decodeShape(v.object({ spec: podSpec }), await site.objects.apply(path, pod, DRY_RUN));
    return result.ok ? partsOf([...result.value.spec.containers, ...result.value.spec.initContainers]) : undefined;
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    return undefined;
  }
}

const DRY_RUN = { force: true, isDryRun: true } as const;

function partsOf(containers: readonly v.InferOutput<typeof container>[]): InjectedPod {
  const sidecar = containers.find(({ name }) => name === identity.sidecar);
  return {
    hasProxy: containers.some(({ name }) => name === PROXY_CONTAINER),
    hasEarlierSidecar: containers.some(({ name }) => name === FORMER_SIDECAR),
    ...(sidecar === undefined ? {} : { sidecarImage: sidecar.image }),
  };
}

const POLL_MILLISECONDS = 5_000;

/** Waits until a restart would have the wanted effect. Goes on if the server does not show what the injector adds. */
export async function untilInjected(
  site: StepSite,
  workload: OutdatedWorkload,
  isWanted: (pod: InjectedPod) => boolean,
): Promise<void> {
  const since = site.now().getTime();
  for (let isFirst = true; ; isFirst = false) {
    site.signal.throwIfAborted();
    const pod = await injectedPod(site, workload);
    if (pod === undefined || !(pod.hasProxy || pod.hasEarlierSidecar || pod.sidecarImage !== undefined)) return;
    if (isWanted(pod)) return;
    if (isFirst) site.progress(`Waits until the mesh uses the changed template for ${titleOf(workload)}`);
    if (site.now().getTime() - since > site.options.stallSeconds * 1000) {
      const has = pod.sidecarImage ?? (pod.hasEarlierSidecar ? `the container ${FORMER_SIDECAR}` : "no sidecar");
      throw new PluginError(
        "try-again-later",
        `Cannot restart ${titleOf(workload)}: after ${site.options.stallSeconds} seconds the injector still gives its pods ${has}`,
        { details: "check the injector of the mesh, then go on with the upgrade" },
      );
    }
    await site.wait(POLL_MILLISECONDS);
  }
}
