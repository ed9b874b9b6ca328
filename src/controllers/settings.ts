/**
 * Which controllers run, and how: the environment over the KubeControllersConfiguration `default` over the built-in
 * values. Pure.
 */
import { PluginError } from "../errors.ts";
import { isDuration, millisecondsOf } from "../model/duration.ts";
import { CONTROLLERS, type KubeControllersConfigurationSpec } from "../model/kube-controllers-configuration.ts";
import { nearestName } from "../model/nearest-name.ts";
import { quoted } from "../quote.ts";

export type ControllerName = (typeof CONTROLLERS)[number];

/** The spec in which nothing is absent, except the sections of controllers that do not run. */
export type RunningConfiguration = Required<Omit<KubeControllersConfigurationSpec, "controllers">> & {
  readonly controllers: {
    readonly [Name in Exclude<ControllerName, "node">]?: { readonly reconcilerPeriod: string };
  } & { readonly node?: NodeSettings };
};

export interface NodeSettings {
  readonly reconcilerPeriod: string;
  readonly syncLabels: "Enabled" | "Disabled";
  readonly leakGracePeriod: string;
  readonly hostEndpoint: { readonly autoCreate: "Enabled" | "Disabled" };
}

export interface ControllerSettings {
  readonly running: RunningConfiguration;
  /** The variables that were set, for the status of the resource. */
  readonly environmentVars: Readonly<Record<string, string>>;
}

const PERIOD = "5m";
const GRACE = "15m";
const METRICS_PORT = 9094;

/** Names that ENABLED_CONTROLLERS accepts, in lower case, besides the names of the sections. */
const GROUPS: Readonly<Record<string, readonly ControllerName[]>> = { profile: ["namespace", "serviceAccount"] };

const VARIABLES = [
  "ENABLED_CONTROLLERS",
  "RECONCILER_PERIOD",
  "SYNC_NODE_LABELS",
  "AUTO_HOST_ENDPOINTS",
  "HEALTH_ENABLED",
] as const;
type Variables = Readonly<Partial<Record<(typeof VARIABLES)[number], string>>>;

export function controllerSettings(
  environment: Readonly<Record<string, string | undefined>>,
  spec: KubeControllersConfigurationSpec | undefined,
  { isEtcd }: { readonly isEtcd: boolean },
): ControllerSettings {
  const set = VARIABLES.flatMap((name) => (environment[name] ? [[name, environment[name]] as const] : []));
  const variables: Variables = Object.fromEntries(set);
  const enabled = enabledControllers(variables, spec);
  const period = periodIn(variables);
  const sections = enabled.map((name) => {
    const reconcilerPeriod = period ?? spec?.controllers?.[name]?.reconcilerPeriod ?? PERIOD;
    return [name, name === "node" ? nodeSettings(reconcilerPeriod, { variables, spec, isEtcd }) : { reconcilerPeriod }];
  });
  return {
    running: {
      healthChecks: switchIn(variables, "HEALTH_ENABLED") ?? spec?.healthChecks ?? "Enabled",
      prometheusMetricsPort: spec?.prometheusMetricsPort ?? METRICS_PORT,
      controllers: Object.fromEntries(sections),
    },
    environmentVars: Object.fromEntries(set),
  };
}

function nodeSettings(
  reconcilerPeriod: string,
  {
    variables,
    spec,
    isEtcd,
  }: {
    readonly variables: Variables;
    readonly spec: KubeControllersConfigurationSpec | undefined;
    readonly isEtcd: boolean;
  },
): NodeSettings {
  const given = spec?.controllers?.node;
  const syncLabels = switchIn(variables, "SYNC_NODE_LABELS") ?? given?.syncLabels ?? "Enabled";
  const autoCreate = switchIn(variables, "AUTO_HOST_ENDPOINTS") ?? given?.hostEndpoint?.autoCreate ?? "Disabled";
  return {
    reconcilerPeriod,
    // With the orchestrator's API as the datastore there is only one Node, whose labels need no copy.
    syncLabels: isEtcd ? syncLabels : "Disabled",
    leakGracePeriod: given?.leakGracePeriod ?? GRACE,
    hostEndpoint: { autoCreate },
  };
}

/** Without a list of them, all run. */
function enabledControllers(
  { ENABLED_CONTROLLERS: list }: Variables,
  spec: KubeControllersConfigurationSpec | undefined,
): readonly ControllerName[] {
  if (list !== undefined) {
    const words = list.split(",").map((word) => word.trim().toLowerCase());
    const wanted = new Set(words.filter((word) => word !== "").flatMap(controllersNamed));
    return CONTROLLERS.filter((name) => wanted.has(name));
  }
  const sections = spec?.controllers;
  return sections === undefined ? CONTROLLERS : CONTROLLERS.filter((name) => sections[name] !== undefined);
}

function controllersNamed(word: string): readonly ControllerName[] {
  const found = CONTROLLERS.find((name) => name.toLowerCase() === word);
  const group = found === undefined ? GROUPS[word] : [found];
  if (group !== undefined) return group;
  const known = [...CONTROLLERS.map((name) => name.toLowerCase()), ...Object.keys(GROUPS)];
  const nearest = nearestName(word, known);
  const fix = nearest === undefined ? `use ${known.join(", ")}` : `did you mean "${nearest}"?`;
  throw invalid("ENABLED_CONTROLLERS", word, `is not a controller; ${fix}`);
}

function periodIn({ RECONCILER_PERIOD: period }: Variables): string | undefined {
  if (period === undefined) return undefined;
  if (!isDuration(period) || millisecondsOf(period) === 0) {
    throw invalid("RECONCILER_PERIOD", period, 'is not a period; use for example "5m"');
  }
  return period;
}

function switchIn(variables: Variables, name: keyof Variables): "Enabled" | "Disabled" | undefined {
  const value = variables[name]?.toLowerCase();
  if (value === undefined) return undefined;
  if (value === "enabled" || value === "true") return "Enabled";
  if (value === "disabled" || value === "false") return "Disabled";
  throw invalid(name, variables[name] ?? "", 'is not a switch; use "enabled" or "disabled"');
}

function invalid(variable: string, value: string, message: string): PluginError {
  return new PluginError(
    "config-invalid",
    `Cannot use the environment variable ${variable}: ${quoted(value)} ${message}`,
  );
}
