/**
 * Installation: what the operator installs. `default` describes the whole network; the optional `overlay` overrides
 * some of its fields. Decoded here: the fields and the rules that need nothing of the cluster. Defaults and the rules
 * that depend on them are the operator's.
 */
import * as v from "valibot";
import { OPERATOR_API } from "../../identity.ts";
import type { Problem } from "../problem.ts";
import { defineResource } from "../resource.ts";
import { checkSpec } from "./check.ts";
import { withOwnNames } from "./names.ts";
import { type InstallationSpec, wireSpecSchema } from "./spec.ts";

export const DEFAULT_NAME = "default";
export const OVERLAY_NAME = "overlay";

/** The CRD has a rule with the same message. */
export const NOT_AN_INSTALLATION = `is not used; use "${DEFAULT_NAME}", or "${OVERLAY_NAME}" for what overrides it`;

export const installation = defineResource({
  kind: "Installation",
  api: OPERATOR_API,
  namespaced: false,
  spec: v.optional(wireSpecSchema, {}),
  complete: (spec): InstallationSpec => withOwnNames(Object(spec)),
  check: (spec, { name }) => [...checkName(name), ...checkSpec(spec)],
});

function checkName(name: string): readonly Problem[] {
  if (name === DEFAULT_NAME || name === OVERLAY_NAME) return [];
  return [{ path: "metadata.name", value: name, message: NOT_AN_INSTALLATION }];
}
