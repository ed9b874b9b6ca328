/**
 * From the Installations `default` and `overlay`, as the API server returns them, to the complete installation, or to
 * everything that is wrong with it. Pure: the same for the operator and for the admin tool.
 *
 *   default + overlay -> one spec -> decoded -> defaults -> validated -> EffectiveInstallation
 */

import { checkSpec, NETWORK_PATH } from "../../model/installation/check.ts";
import { cniProblems } from "../../model/installation/cni.ts";
import { NETWORK_FIELD, withOwnNames, withWireNames } from "../../model/installation/names.ts";
import { type InstallationSpec, wireSpecSchema } from "../../model/installation/spec.ts";
import type { Checked, Problem } from "../../model/problem.ts";
import { decodeShape, isObject, withoutNulls } from "../../model/shape.ts";
import type { KubeObject } from "../kube-object.ts";
import type { ClusterFacts } from "./cluster-facts.ts";
import type { EffectiveInstallation } from "./effective-installation.ts";
import { type CompleteSpec, withDefaults } from "./installation-defaults.ts";
import { effectiveInstallation } from "./make-effective.ts";
import { mergeOverlay, withAbsentFields } from "./overlay.ts";
import { validate } from "./validate.ts";

type Members = Readonly<Record<string, unknown>>;

/** Objects of the API: only their `spec` matters. */
export interface Installations {
  readonly default: KubeObject;
  readonly overlay?: KubeObject;
}

export type Completed =
  | {
      readonly ok: true;
      readonly installation: EffectiveInstallation;
      /** The spec of `default` with the defaults that it does not have yet, as users write it. */
      readonly defaults: object;
      /** `default` and `overlay` with all defaults, as users write it: `status.computed`. */
      readonly computed: object;
    }
  | { readonly ok: false; readonly problems: readonly Problem[] };

export function completeInstallation(installations: Installations, facts: ClusterFacts): Completed {
  const base = specOf(installations.default);
  const overlay = specOf(installations.overlay);
  const contradictions = [base, overlay].flatMap(contradictionsOf);
  if (contradictions.length > 0) return { ok: false, problems: contradictions };

  const decoded = decodeSpec(mergedSpec(installations));
  if (!decoded.ok) return decoded;
  const complete = withDefaults(decoded.value, facts);
  const problems = validate(complete, facts);
  if (problems.length > 0) return { ok: false, problems };

  const computed = wireSpec(complete);
  return {
    ok: true,
    installation: effectiveInstallation(complete),
    defaults: withAbsentFields(withBothIpamNames(base), withCniAsIn(base, computed), withOneCni(overlay)),
    computed,
  };
}

/** The spec of `default` with that of `overlay` over it, as users write it; it may not be valid. */
export function mergedSpec(installations: Installations): Members {
  return mergeOverlay(withOneCni(specOf(installations.default)), withOneCni(specOf(installations.overlay)));
}

function specOf(object: KubeObject | undefined): Members {
  const spec = withoutNulls(object?.["spec"]);
  return isObject(spec) ? spec : {};
}

function decodeSpec(spec: Members): Checked<InstallationSpec> {
  const shape = decodeShape(wireSpecSchema, spec);
  if (!shape.ok) {
    return { ok: false, problems: shape.problems.map((problem) => ({ ...problem, path: `spec.${problem.path}` })) };
  }
  const own: InstallationSpec = withOwnNames(Object(shape.value));
  const problems = checkSpec(own);
  return problems.length === 0 ? { ok: true, value: own } : { ok: false, problems };
}

function wireSpec({ network, ...others }: CompleteSpec): Members {
  return withWireNames({ ...others, network });
}

/** Of each Installation alone: what the overlay overrides is not a contradiction. */
function contradictionsOf(spec: Members): readonly Problem[] {
  const nested = networkOf(spec)["cni"];
  return cniProblems(Object(spec["cni"] ?? {}), Object(nested ?? {}), `${NETWORK_PATH}.cni`);
}

/** With `cni` in one place only, and with one spelling of its IPAM plugin. */
function withOneCni(spec: Members): Members {
  const { cni: nested, ...network } = networkOf(spec);
  const own = spec["cni"];
  if (!isObject(nested)) return isObject(own) ? { ...spec, cni: withIpamType(own) } : spec;
  const merged = mergeOverlay(withIpamType(nested), isObject(own) ? withIpamType(own) : {});
  return { ...spec, [NETWORK_FIELD]: network, cni: merged };
}

/** `plugin` of its IPAM as `type`. */
function withIpamType(cni: Members): Members {
  const { ipam } = cni;
  if (!isObject(ipam) || ipam["plugin"] === undefined) return cni;
  const { plugin, ...others } = ipam;
  return { ...cni, ipam: { type: plugin, ...others } };
}

/** Defaults are added where the user wrote the object: a second copy would contradict the next change of the first. */
function withCniAsIn(base: Members, computed: Members): Members {
  const { cni, ...others } = computed;
  if (base["cni"] !== undefined || networkOf(base)["cni"] === undefined) return computed;
  return { ...others, [NETWORK_FIELD]: { ...networkOf(computed), cni } };
}

/** `type` is written beside each `plugin`: a former release, after a rollback, knows no other name. */
function withBothIpamNames(spec: Members): Members {
  const network = networkOf(spec);
  const [own, nested] = [spec["cni"], network["cni"]];
  return {
    ...spec,
    ...(isObject(own) ? { cni: withTypeBesidePlugin(own) } : {}),
    ...(isObject(nested) ? { [NETWORK_FIELD]: { ...network, cni: withTypeBesidePlugin(nested) } } : {}),
  };
}

function withTypeBesidePlugin(cni: Members): Members {
  const { ipam } = cni;
  return isObject(ipam) && ipam["plugin"] !== undefined ? { ...cni, ipam: { type: ipam["plugin"], ...ipam } } : cni;
}

function networkOf(spec: Members): Members {
  const network = spec[NETWORK_FIELD];
  return isObject(network) ? network : {};
}
