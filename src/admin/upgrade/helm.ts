/** The real Helm, on the same cluster as the tool. */

import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import type { Helm } from "../../upgrade/engine/step.ts";
import type { Given } from "../main/command.ts";
import type { Host } from "../main/context.ts";
import { HELM_OPTION } from "./options.ts";

/** `undefined` if there is none and none was named: only some upgrades need it. */
export function openHelm(context: Host, { values }: Given): Helm | undefined {
  const named = values.get(HELM_OPTION.name);
  const program = context.findProgram(named ?? "helm");
  if (program === undefined) {
    if (named === undefined) return undefined;
    throw new PluginError("config-invalid", `Cannot run Helm: ${quoted(named)} is not a program`, {
      details: "correct --helm",
    });
  }
  const [kubeconfig, contextName] = [values.get("kubeconfig"), values.get("context")];
  const access = [
    ...(kubeconfig === undefined ? [] : ["--kubeconfig", kubeconfig]),
    ...(contextName === undefined ? [] : ["--kube-context", contextName]),
  ];
  return (args, stdin) => program([...args, ...access], stdin);
}
