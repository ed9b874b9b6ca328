/** The values that a user gave an earlier chart, as those of this one. What has no meaning any more is dropped with a note. Pure. */
import { identity } from "../../../identity.ts";
import type { Fields } from "../../../kube/objects.ts";
import { isObject } from "../../../model/shape.ts";
import type { Obstacle } from "../../engine/facts.ts";
import { translateInstallation, withFurtherSources } from "../../operator-install/translate-installation.ts";

export interface TranslatedValues {
  readonly values: Fields;
  readonly notes: readonly string[];
  readonly obstacles: readonly Obstacle[];
}

/** Top-level values of this chart that an earlier one may have had too. */
const KEPT: ReadonlySet<string> = new Set(["imagePullSecrets", "kubernetesServiceEndpoint", "global"]);

/** Of the operator's pods: formerly at the top. */
const OF_OPERATOR = ["resources", "tolerations", "nodeSelector", "podAnnotations", "affinity"] as const;

const NO_MEANING: Readonly<Record<string, string>> = {
  apiServer: "the Kubernetes API serves the resources itself",
  certs: "the components have no certificates of their own",
  [identity.adminTool]: "the admin tool is part of the one image",
  [`${identity.product}Operator`]: "the image of the operator is that of the release; operator.image sets another one",
  defaultFelixConfiguration: `the settings of the node agents are in NodeAgentConfiguration "default", which keeps them`,
};

/** What is known about the cluster beside the values. */
interface ValueFacts {
  /** Of the spec of an Installation. */
  readonly schema: unknown;
  /** Pods may send from further sources. */
  readonly allowsSourceSpoofing?: boolean;
}

export function translateValues(given: Fields, { schema, allowsSourceSpoofing = false }: ValueFacts): TranslatedValues {
  const { installation = {}, operator, kubeletVolumePluginPath, ...others } = given;
  const { enabled, ...spec } = isObject(installation) ? installation : {};
  const carried = allowsSourceSpoofing && enabled !== false ? withFurtherSources(spec) : spec;
  const moved = kubeletVolumePluginPath === undefined ? carried : { kubeletVolumePluginPath, ...carried };
  const translated = translateInstallation(moved, schema, { what: "Value", root: "installation" });
  const ofOperator = OF_OPERATOR.filter((name) => others[name] !== undefined).map(
    (name) => [name, others[name]] as const,
  );
  const known = new Set<string>([...KEPT, ...OF_OPERATOR]);
  const dropped = Object.keys(others).filter((name) => !known.has(name));
  const operatorValues = { ...Object.fromEntries(ofOperator), ...(isObject(operator) ? operator : {}) };
  const installationValues = { ...(enabled === undefined ? {} : { enabled }), ...translated.spec };
  return {
    values: {
      ...Object.fromEntries(Object.entries(others).filter(([name]) => KEPT.has(name))),
      ...(Object.keys(installationValues).length === 0 ? {} : { installation: installationValues }),
      ...(Object.keys(operatorValues).length === 0 ? {} : { operator: operatorValues }),
    },
    notes: [
      ...ofOperator.map(([name]) => `Value ${name} becomes operator.${name}`),
      ...(kubeletVolumePluginPath === undefined
        ? []
        : ["Value kubeletVolumePluginPath becomes installation.kubeletVolumePluginPath"]),
      ...translated.notes,
      ...dropped.map((name) => `Value ${name} is dropped: ${NO_MEANING[name] ?? "this chart does not have it"}`),
    ],
    obstacles: translated.obstacles,
  };
}
