/** Why a pod of a component does not run, in words that a person can act on. Pure. */
import { quoted } from "../quote.ts";
import { type LiveObject, listAt, memberAt, numberAt, textAt } from "../release/live-object.ts";

const NOT_PULLED = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "ImageInspectError",
  "RegistryUnavailable",
]);
const NOT_CREATED = new Set(["CreateContainerConfigError", "CreateContainerError", "RunContainerError"]);

/** `undefined` if nothing is wrong with it: it runs, or it is still starting. */
export function podProblem(pod: LiveObject): string | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined;
  const where = `Pod ${quoted(pod.metadata.name)}${placeOf(pod)}`;
  const containers = [...listAt(pod, "status", "initContainerStatuses"), ...listAt(pod, "status", "containerStatuses")];
  for (const container of containers) {
    const problem = containerProblem(pod, container);
    if (problem !== undefined) return `${where}: ${problem}`;
  }
  if (textAt(pod, "status", "phase") !== "Failed") return unschedulable(pod, where);
  const [reason, message] = [textAt(pod, "status", "reason"), textAt(pod, "status", "message")];
  return `${where} has failed: ${[reason, message].filter((text) => text !== "").join(": ") || "no reason given"}`;
}

function placeOf(pod: LiveObject): string {
  const node = textAt(pod, "spec", "nodeName");
  return node === "" ? "" : ` on node ${quoted(node)}`;
}

function containerProblem(pod: LiveObject, container: unknown): string | undefined {
  const waiting = textAt(container, "state", "waiting", "reason");
  const message = textAt(container, "state", "waiting", "message");
  if (NOT_PULLED.has(waiting)) {
    const image = quoted(textAt(container, "image"));
    return `image ${image} cannot be pulled (${waiting}${message === "" ? "" : `: ${message}`}); check registry, imagePath, imagePrefix and imagePullSecrets of the Installation, and whether the node reaches the registry`;
  }
  if (NOT_CREATED.has(waiting)) {
    return `container ${quoted(textAt(container, "name"))} cannot be created (${waiting}${message === "" ? "" : `: ${message}`})`;
  }
  if (waiting === "CrashLoopBackOff") return crashed(pod, container, memberAt(container, "lastState", "terminated"));
  const ended = memberAt(container, "state", "terminated");
  return ended !== undefined && numberAt(ended, "exitCode") !== 0 ? crashed(pod, container, ended) : undefined;
}

function crashed({ metadata }: LiveObject, container: unknown, ended: unknown): string {
  const name = textAt(container, "name");
  const exit = ended === undefined ? "" : `, last exit code ${numberAt(ended, "exitCode")}`;
  const logs = `kubectl logs --namespace ${metadata.namespace ?? ""} ${metadata.name} --container ${name} --previous`;
  return `container ${quoted(name)} crashes again and again (${numberAt(container, "restartCount")} restarts${exit}); see "${logs}"`;
}

/** Whether the scheduler has found no node for it. */
export function fitsNoNode(pod: LiveObject): boolean {
  return textAt(schedulingOf(pod), "reason") === "Unschedulable";
}

function unschedulable(pod: LiveObject, where: string): string | undefined {
  return fitsNoNode(pod) ? `${where} fits no node: ${textAt(schedulingOf(pod), "message")}` : undefined;
}

function schedulingOf(pod: LiveObject): unknown {
  return listAt(pod, "status", "conditions").find((each) => textAt(each, "type") === "PodScheduled");
}
