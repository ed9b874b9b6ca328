/**
 * Deletes the Installations and waits until the operator has removed the network: before the operator itself is removed. For
 * the hook of the chart and for the admin tool.
 */
import { apiVersionOf, identity, OPERATOR_API } from "../identity.ts";
import type { KubeClient, KubeRequest } from "../kube/api.ts";
import { requireOk } from "../kube/require-ok.ts";
import { DEFAULT_NAME, OVERLAY_NAME } from "../model/installation/installation.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";

export interface DeletionOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  readonly log: (message: string) => void;
}

/** On an Installation that is being deleted: do not wait for nodes that cannot be cleaned up. */
export const SKIP_CLEANUP_ANNOTATION = `${identity.operatorApiGroup}/skip-node-cleanup`;

const PAUSE_MILLISECONDS = 1000;

/** Returns whether they are gone. The deletion goes on if the wait ends before. */
export async function deleteInstallations(options: DeletionOptions): Promise<boolean> {
  await requestDeletion(options, DEFAULT_NAME);
  let said = "";
  while (!options.signal.aborted) {
    const left = await installation(options, DEFAULT_NAME);
    if (left === undefined) {
      // Only now: the removal uses it too.
      await requestDeletion(options, OVERLAY_NAME);
      return true;
    }
    const message = progressOf(left);
    if (message !== said) options.log(message);
    said = message;
    await options.wait(PAUSE_MILLISECONDS, options.signal);
  }
  return false;
}

async function requestDeletion({ client, log }: DeletionOptions, name: string): Promise<void> {
  const request: KubeRequest = { method: "DELETE", path: pathOf(name), attempt: "retry" };
  const response = await client.request(request);
  if (response.status === 404) return;
  requireOk(response, request);
  log(`Installation "${name}" is being deleted`);
}

async function installation({ client }: DeletionOptions, name: string): Promise<unknown> {
  const request: KubeRequest = { method: "GET", path: pathOf(name), attempt: "retry" };
  const response = await client.request(request);
  return response.status === 404 ? undefined : parseJson(requireOk(response, request));
}

/** The message of the condition Ready says what the operator is waiting for. */
function progressOf(object: unknown): string {
  const status = isObject(object) ? object["status"] : undefined;
  const conditions =
    isObject(status) && Array.isArray(status["conditions"]) ? status["conditions"].filter(isObject) : [];
  const ready = conditions.find(({ type }) => type === "Ready");
  return `waiting for the operator: ${ready?.["status"] === "False" ? ready["message"] : "it has not begun"}`;
}

function pathOf(name: string): string {
  return `/apis/${apiVersionOf(OPERATOR_API)}/installations/${name}`;
}
