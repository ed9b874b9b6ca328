/** What the user has changed in a former DaemonSet, and what has no place in that of this release: the plan lists it. Pure. */
import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { isSame } from "../merge/canonical-json.ts";
import { UNKNOWN_BASE } from "../merge/three-way.ts";
import { fieldsIn, itemsIn, named, textIn } from "../object-fields.ts";
import { podSpecOf } from "../pod-template.ts";
import { isPublishedInstallVariable } from "../published/published-values.ts";
import type { Workloads } from "./carried-places.ts";

const INSTALL = "install-cni";
/** Carried over otherwise. */
const CARRIED_VOLUMES = ["cni-bin-dir", "cni-net-dir", "etcd-certs"];
const CARRIED_VARIABLES =
  /^(CNI_CONF_NAME|CNI_MTU|CNI_NETWORK_CONFIG|SLEEP|ETCD_.*|KUBERNETES_(NODE_NAME|SERVICE_HOST|SERVICE_PORT))$/;
/** Earlier releases had it: where the API server is. */
const API_ENDPOINT = "kubernetes-services-endpoint";

export function lostEdits({ base, isBaseApplied, live }: Workloads): readonly string[] {
  const stock = base === UNKNOWN_BASE ? {} : base;
  const isKnown = base !== UNKNOWN_BASE && isBaseApplied !== true;
  return [
    ...(isKnown ? changedVolumes(stock, live) : []),
    ...installVariables(stock, live),
    ...(isKnown ? [] : unknownSources(live)),
  ].map((what) => `Not carried over: ${what}`);
}

/** Volumes of the release that are somewhere else on the host. */
function changedVolumes(base: Fields, live: Fields): readonly string[] {
  return itemsIn(podSpecOf(base), "volumes").flatMap((volume) => {
    const name = textIn(volume, "name") ?? "";
    const mine = named(itemsIn(podSpecOf(live), "volumes"), name);
    if (mine === undefined || CARRIED_VOLUMES.includes(name)) return [];
    const [path, before] = [mine, volume].map((each) => textIn(fieldsIn(each, "hostPath"), "path"));
    return path === before ? [] : [`volume ${name} (${path ?? "not a directory of the host"}, was ${before})`];
  });
}

function installVariables(base: Fields, live: Fields): readonly string[] {
  const variables = (workload: Fields) =>
    itemsIn(named(itemsIn(podSpecOf(workload), "initContainers"), INSTALL), "env");
  const before = variables(base);
  const edited = variables(live).filter(
    (each) =>
      !CARRIED_VARIABLES.test(String(each["name"])) &&
      !isSame(each, named(before, String(each["name"]))) &&
      !isPublishedInstallVariable(each),
  );
  return edited.map(({ name }) => `variable ${name} of container ${INSTALL}`);
}

/** With the published manifest they are a conflict. */
function unknownSources(live: Fields): readonly string[] {
  const sources = itemsIn(named(itemsIn(podSpecOf(live), "containers"), identity.nodeAgent), "envFrom");
  const names = sources.map((each) => textIn(each["configMapRef"] ?? each["secretRef"], "name") ?? "");
  return names
    .filter((name) => name !== API_ENDPOINT)
    .map((name) => `variables from ${name} (envFrom) of container ${identity.nodeAgent}`);
}
